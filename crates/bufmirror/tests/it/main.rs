//! The tests of mirrored rings, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod batches;
mod borders;
mod channel;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod header;
#[cfg(target_os = "linux")]
mod hostile;
mod io;
mod messages;
mod model;
mod program;
mod refusals;
mod reservations;
mod ring;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod shared;
mod static_channel;
#[cfg(target_os = "linux")]
mod system;
#[cfg(all(feature = "tokio", feature = "bytes"))]
mod tokio;
#[cfg(all(feature = "tokio", feature = "bytes"))]
mod turns;
mod waits;
mod woken;
mod words;

use bufmirror::bufcore::Region;
use bufmirror::{Builder, MirrorRing};

/// A ring of the system's best kind.
fn mapped(bytes: usize) -> MirrorRing {
    let ring = MirrorRing::new(bytes).expect("the system maps");
    assert_eq!(ring.is_mapped(), cfg!(any(unix, windows)) && !cfg!(miri));
    ring
}

/// A ring of just `bytes` that copies.
fn copying(bytes: usize) -> MirrorRing {
    let region = Region::heap(2 * bytes, 1).expect("the heap has room");
    let ring = Builder::new().build_in(region).expect("there is enough of it");
    assert_eq!((ring.capacity(), ring.is_mapped()), (bytes, false));
    ring
}
