//! Growth by `realloc`: followed in place and to other addresses, into the range of sizes and out
//! of it.

use core::hint::black_box;
use std::path::Path;

use buftrace::{EventKind, start_heap_recording};

use crate::{Temporary, run as run_scenario};

pub(crate) fn run(file: &Path) {
    start_heap_recording(file, "exact,min=1KiB").expect("it starts");
    // From under the range into it.
    let mut grown: Vec<u8> = Vec::with_capacity(100);
    for bytes in [2000, 70_000, 200_003] {
        grown.reserve_exact(black_box(bytes));
    }
    // Out of it.
    let mut shrunk: Vec<u8> = Vec::with_capacity(5001);
    shrunk.push(1);
    shrunk.shrink_to(black_box(10));
    drop(grown);
    buftrace::stop_heap_recording();
    drop(shrunk);
}

#[test]
fn growth_is_followed() {
    let file = Temporary::new("grow");
    run_scenario("grow", &file.0);
    let profile = file.profile();
    let find = |largest| {
        let mut all = (0..).zip(profile.objects());
        all.find(|(_, object)| object.largest == largest).expect("it is recorded")
    };
    let (number, grown) = find(200_003);
    assert_eq!((grown.bytes, grown.grown_from, grown.resizes), (2000, Some(100), 2));
    assert!(grown.released.is_some());
    let steps: Vec<_> = profile
        .resizes()
        .iter()
        .filter(|resize| resize.object == number)
        .map(|resize| resize.bytes)
        .collect();
    assert_eq!(steps, [70_000, 200_003]);
    let (_, shrunk) = find(5001);
    assert!(shrunk.released.is_some() && shrunk.resizes == 0, "{shrunk:?}");

    let trace = profile.expanded_trace(1 << 20, |object| object.largest == 200_003);
    let sizes = trace.events().iter().filter_map(|event| match event.kind {
        EventKind::Acquire { bytes, .. } => Some(bytes),
        EventKind::Release { .. } => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [200_003]);
}
