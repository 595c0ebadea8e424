//! Samples: totals are estimated within their error, by size, by place and over time.

use core::hint::black_box;
use std::path::Path;

use buftrace::{EventKind, Profile, hooks, start_heap_recording};

use crate::{Temporary, run as run_scenario};

const RATE: u64 = 64 << 10;
const SMALL: usize = 1000;
const LARGE: usize = 40_000;
const SMALL_COUNT: usize = 200_000;
const LARGE_COUNT: usize = 8_000;

#[inline(never)]
fn small() {
    black_box(Vec::<u8>::with_capacity(black_box(SMALL)));
}

#[inline(never)]
fn large() {
    black_box(vec![0_u8; black_box(LARGE)]);
}

pub(crate) fn run(file: &Path) {
    start_heap_recording(file, &format!("rate={RATE}")).expect("it starts");
    // Also in a thread: its first distance is drawn as all others are.
    std::thread::spawn(|| (0..SMALL_COUNT).for_each(|_| small())).join().unwrap();
    (0..LARGE_COUNT).for_each(|_| large());
    buftrace::stop_heap_recording();
}

#[test]
fn estimates_are_within_their_error() {
    let file = Temporary::new("sampling");
    run_scenario("sampling", &file.0);
    let profile = file.profile();
    assert!(!profile.is_exact());
    for (bytes, count, zeroed) in [(SMALL, SMALL_COUNT, false), (LARGE, LARGE_COUNT, true)] {
        let objects = profile.objects().iter().filter(|object| object.bytes == bytes as u64);
        let samples = objects.clone().count();
        assert!(samples < count / 2, "{samples} samples of {count}");
        let estimate: f64 = objects.clone().map(|object| object.weight()).sum();
        // Independent draws of the probability p, each weighing 1 / p: five standard deviations.
        let share = 1.0 - (-(bytes as f64) / RATE as f64).exp();
        let error = (count as f64 * (1.0 - share) / share).sqrt();
        let off = (estimate - count as f64).abs();
        assert!(off < 5.0 * error, "{bytes}: {estimate} for {count}, error {error}");
        assert!(objects.clone().all(|object| object.zeroed == zeroed && object.released.is_some()));

        let sites = profile.sites();
        let site = sites.iter().find(|site| site.largest == bytes as u64).expect("a place");
        assert!((site.count_error / error - 1.0).abs() < 0.2, "{} for {error}", site.count_error);

        let trace = profile.expanded_trace(usize::MAX, |object| object.bytes == bytes as u64);
        let acquires = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Acquire { .. }));
        let off = (acquires.count() as f64 - estimate).abs();
        assert!(off <= 2.0, "{off}");
    }
    let cut = profile.expanded_trace(1001, |_| true);
    assert!(cut.events().len() <= 1001 && cut.meta().made_by.contains("sampled"));
}

/// Samples that stand for thousands of objects each, and grow and shrink a thousand times.
pub(crate) fn expanded(file: &Path) {
    const EVENTS: usize = 1 << 13;
    let memory = |number: usize| core::ptr::without_provenance(number << 12);
    start_heap_recording(file, "rate=1MiB,depth=0,min=256").expect("it starts");
    (1..20_000).for_each(|number| hooks::allocated(memory(number), 512, false));
    for round in 0..1000 {
        for number in 1..20_000 {
            hooks::Reallocation::begin(memory(number)).end(memory(number), 512, 511 + round % 2);
        }
    }
    buftrace::stop_heap_recording();
    let profile = Profile::load(file).expect("a recording");
    assert!(profile.resizes().len() > 1000);
    let limit = libc::rlimit { rlim_cur: 512 << 20, rlim_max: 512 << 20 };
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let trace = profile.expanded_trace(EVENTS, |_| true);
    assert!(trace.meta().cut && (EVENTS / 2..=EVENTS).contains(&trace.events().len()));
}

/// However often an object was resized.
#[test]
fn expanded_traces_take_memory_for_their_events() {
    let file = Temporary::new("expanded");
    run_scenario("expanded", &file.0);
}
