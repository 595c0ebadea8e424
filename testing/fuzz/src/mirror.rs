//! Programs on mirrored rings, mapped and copying, and on both ends of a channel, as in the suite of `bufmirror`.

use bufcore::Region;
use bufmirror::{Builder, MirrorRing};
use testkit::bytes::Bytes;

#[path = "../../../crates/bufmirror/tests/it/program.rs"]
mod program;
#[path = "../../../crates/bufmirror/tests/it/ring.rs"]
mod ring;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let pages = 1 + bytes.below(3);
    match bytes.below(4) {
        0 => program::run(MirrorRing::new(4096 * pages).expect("the system maps"), &mut bytes),
        1 => program::run(ring::ends(4096 * pages), &mut bytes),
        _ => {
            let region = Region::heap(2 + usize::from(bytes.number()) % 6000, 1).expect("the heap has room");
            if let Ok(ring) = Builder::new().build_in(region) {
                program::run(ring, &mut bytes);
            }
        }
    }
}
