//! What a heap does where the system refuses calls.

#![cfg(all(not(miri), any(unix, windows)))]

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::super::system::Outcome;
use super::super::system::hooks::{self, ANOTHERS, CALLS, Call};
use super::*;

fn refuse(calls: &[Call], outcome: Outcome) {
    hooks::with(|hooks| {
        for call in CALLS {
            hooks.is_refused[call as usize] = calls.contains(&call);
            hooks.is_lost[call as usize] = outcome == Outcome::Lost;
        }
    });
}

/// Gives back what others mapped where the heap lost addresses, as they wrote it.
fn check_lost() -> usize {
    let lost = hooks::with(|hooks| core::mem::take(&mut hooks.lost));
    #[cfg(target_os = "linux")]
    for (start, bytes) in &lost {
        // SAFETY: mapped when they were lost, and the other's since.
        unsafe {
            let all = core::slice::from_raw_parts(start.as_ptr(), *bytes);
            assert!(all.iter().all(|byte| *byte == ANOTHERS), "another's mapping was touched");
            assert_eq!(libc::munmap(start.as_ptr().cast(), *bytes), 0);
        }
    }
    lost.len()
}

/// Runs a model while calls are refused from time to time. Returns how many were lost.
fn run_refusing(calls: &[Call], outcome: Outcome, limit: usize, seed: u64) -> usize {
    let heap = PageHeap::new(PageSource::System, limit);
    let bytes = random(seed, STEPS * 4);
    let (mut bytes, mut model) = (Bytes::new(&bytes), Model::new(&heap, limit));
    for step in 0..STEPS / 2 {
        // Half of the time, in turns of 64 steps.
        refuse(if step / 64 % 2 == 1 { calls } else { &[] }, outcome);
        model.step(&mut bytes, true);
        if step % 16 == 0 {
            table::check(&heap);
        }
    }
    refuse(&[], Outcome::Refused);
    // What was lost while it was given back stays counted.
    let lost = table::check(&heap);
    assert!(lost == 0 || outcome == Outcome::Lost);
    for _ in 0..200 {
        model.step(&mut bytes, false);
    }
    model.end(lost);
    table::check(&heap);
    assert!(limit - lost < 1 << 20 || heap.take((limit - lost).min(1 << 20), 1).is_ok());
    drop(heap);
    check_lost()
}

#[test]
fn refused_calls_leave_a_heap_whole() {
    for seed in 0..2 {
        for limit in [4 << 20, 16 << 20] {
            for call in CALLS {
                run_refusing(&[call], Outcome::Refused, limit, seed);
            }
            run_refusing(&CALLS, Outcome::Refused, limit, seed);
        }
    }
}

#[test]
fn lost_addresses_are_left_to_others() {
    let mut lost = 0;
    for seed in 0..8 {
        for call in [Call::Move, Call::GiveBack] {
            lost += run_refusing(&[call], Outcome::Lost, 16 << 20, seed);
        }
    }
    assert!(lost > 0 || cfg!(not(target_os = "linux")));
}

/// Takes a span for each of these numbers of pages.
fn spans<const N: usize>(heap: &PageHeap, pages: [usize; N]) -> [Span; N] {
    pages.map(|pages| heap.take(pages * heap.page_bytes(), 1).unwrap())
}

/// Takes all addresses that are left.
fn rest(heap: &PageHeap) -> Vec<Span> {
    core::iter::from_fn(|| heap.take(1, 1).ok()).collect()
}

#[test]
fn without_more_addresses_free_runs_join() {
    hooks::with(|hooks| hooks.most_reserved = 1 << 20);
    let heap = PageHeap::new(PageSource::System, 1 << 30);
    let [front, between, behind, _kept, largest, _last] = spans(&heap, [1, 6, 1, 1, 2, 1]);
    refuse(&[Call::Reserve], Outcome::Refused);
    let _rest = rest(&heap);
    give(&heap, [between]);
    heap.trim(0);
    give(&heap, [front, behind, largest]);
    // A clean run between two short dirty ones, and a longer dirty one that is alone.
    spans(&heap, [8]);
    table::check(&heap);
    assert_eq!(heap.take(3 * heap.page_bytes(), 1), Err(PageError::OutOfMemory));
    spans(&heap, [2]);
}

#[test]
fn without_more_addresses_all_free_runs_are_looked_at() {
    hooks::with(|hooks| hooks.most_reserved = 4 << 20);
    let heap = PageHeap::new(PageSource::System, 1 << 30);
    let [wanted, _kept] = spans(&heap, [23, 1]);
    let short: Vec<_> = (0..17).map(|_| spans(&heap, [20, 1])[0]).collect();
    refuse(&[Call::Reserve], Outcome::Refused);
    let _rest = rest(&heap);
    for span in core::iter::once(wanted).chain(short) {
        give(&heap, [span]);
        heap.trim(0);
    }
    spans(&heap, [22]);
}

#[test]
fn a_refused_commit_leaves_nothing_committed() {
    let heap = PageHeap::new(PageSource::System, 1 << 30);
    let all = spans(&heap, [2, 2, 2, 1]);
    give(&heap, [all[0], all[2]]);
    heap.trim(0);
    give(&heap, [all[1]]);
    let count = |call: Call| hooks::with(|hooks| hooks.calls[call as usize]);
    let before = (count(Call::Commit), count(Call::GiveBack));
    refuse(&[Call::Commit], Outcome::Refused);
    hooks::with(|hooks| hooks.skip = 1);
    assert_eq!(heap.take(6 * heap.page_bytes(), 1), Err(PageError::OutOfMemory));
    assert_eq!((count(Call::Commit), count(Call::GiveBack)), (before.0 + 2, before.1 + 1));
    table::check(&heap);
    refuse(&[], Outcome::Refused);
    spans(&heap, [6]);
}

#[test]
fn mappings_are_made_anew_once_for_many_requests() {
    use super::super::gather::MOST_MAPPINGS;
    let renewed = || hooks::with(|hooks| hooks.calls[Call::Renew as usize]);
    for used in [100, MOST_MAPPINGS + 10] {
        let heap = PageHeap::new(PageSource::System, 1 << 40);
        let free = spans(&heap, [20, 1, 30, 1, 20, 1, 30, 1]);
        let _used: Vec<_> = (0..used).map(|_| spans(&heap, [1])).collect();
        give(&heap, [free[0], free[2], free[4], free[6]]);
        heap.lock().note_mappings(MOST_MAPPINGS + 1);
        let before = renewed();
        for _ in 0..50 {
            give(&heap, spans(&heap, [200]));
            table::check(&heap);
            heap.trim(0);
        }
        // The four, the one behind all, and no more of them.
        assert_eq!(renewed() - before, 5);
    }
    let heap = PageHeap::new(PageSource::System, 1 << 40);
    let [span, _kept] = spans(&heap, [20, 1]);
    give(&heap, [span]);
    heap.lock().note_mappings(MOST_MAPPINGS + 1);
    refuse(&[Call::Renew], Outcome::Lost);
    let large = spans(&heap, [200]);
    assert!(heap.lock().is_torn);
    table::check(&heap);
    give(&heap, large);
    drop(heap);
    assert!(check_lost() > 0);
}

#[test]
fn pages_may_be_larger() {
    for page_bytes in [16 << 10, 64 << 10] {
        hooks::with(|hooks| hooks.page_bytes = page_bytes);
        let limit = 16 << 20;
        let heap = PageHeap::new(PageSource::System, limit);
        assert_eq!(heap.page_bytes(), page_bytes);
        run(&heap, limit, 1, STEPS);
    }
}

#[test]
fn an_entry_says_all_pages_of_a_segment() {
    use std::sync::Mutex;
    #[derive(Default)]
    struct Sizes(Mutex<usize>);
    // SAFETY: it supplies nothing.
    unsafe impl bufcore::MemoryProvider for Sizes {
        fn allocate(&self, layout: core::alloc::Layout) -> Result<bufcore::Provided, RegionError> {
            *self.0.lock().unwrap() = layout.size();
            Err(RegionError::OutOfMemory { requested: layout.size() })
        }

        unsafe fn deallocate(&self, _: NonNull<u8>, _: core::alloc::Layout) {}
    }
    let sizes = Arc::new(Sizes::default());
    let provider = PoolProvider::new(Arc::clone(&sizes) as Arc<dyn bufcore::MemoryProvider>);
    let heap = PageHeap::new(PageSource::Provider(provider), usize::MAX);
    let most = (u32::MAX as usize).saturating_mul(4096).min(isize::MAX as usize / 4096 * 4096);
    for alignment in [1, 8192, 1 << 20, 1 << (usize::BITS - 2)] {
        assert!(heap.take(most, alignment).is_err());
        assert!(*sizes.0.lock().unwrap() <= most, "{alignment}");
    }
    assert_eq!(heap.used(), 0);
}

#[test]
fn what_is_no_alignment_is_refused() {
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    for alignment in [0, 3, 5000, usize::MAX] {
        assert!(catch_unwind(AssertUnwindSafe(|| heap.take(1, alignment))).is_err(), "{alignment}");
    }
    let shape = |alignment, lead| catch_unwind(|| SlabShape::new(0, 100, alignment, lead)).is_err();
    assert!(shape(0, 0) && shape(8, 0) && shape(48, 0) && shape(8192, 0) && shape(1 << 32, 0));
    assert!(shape(16, 8) && shape(16, 112) && shape(16, usize::MAX - 15) && !shape(4096, 96));
    assert_eq!(heap.stats(), PageStats::default());
}
