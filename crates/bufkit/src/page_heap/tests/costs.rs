//! What requests cost beside many free spans (T26), by counts of what is looked at and called.

use super::super::system::hooks;
use super::*;

/// Returns how many extents are looked at, and how many calls the system gets, for some requests
/// beside `free` free spans, which the process has or not.
fn cost(free: usize, are_dirty: bool) -> (usize, usize) {
    let heap = PageHeap::new(PageSource::System, 1 << 40);
    let page_bytes = heap.page_bytes();
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    for index in 0..free {
        gone.push(heap.take((1 + index % 3) * page_bytes, 1).unwrap());
        kept.push(heap.take(1, 1).unwrap());
    }
    give(&heap, gone);
    if !are_dirty {
        heap.trim(0);
    }
    let count = || hooks::with(|hooks| (hooks.steps, hooks.calls.iter().sum::<usize>()));
    let before = count();
    for round in 0..200 {
        let spans: Vec<_> = (1..40).map(|pages| heap.take(pages * page_bytes, 1).unwrap()).collect();
        give(&heap, spans);
        if round % 10 == 0 {
            give(&heap, [heap.take(1000 * page_bytes, 1 << 20).unwrap()]);
        }
    }
    let after = count();
    give(&heap, kept);
    (after.0 - before.0, after.1 - before.1)
}

#[cfg_attr(miri, ignore = "100,000 spans")]
#[test]
fn t26_requests_cost_the_same_beside_many_free_spans() {
    if system::page_bytes() == 0 {
        return;
    }
    for are_dirty in [true, false] {
        let (few, many) = (cost(1000, are_dirty), cost(100_000, are_dirty));
        assert!(many.0 <= few.0 * 5 / 4 + 1000, "{few:?} {many:?}");
        assert!(many.1 <= few.1 * 5 / 4 + 100, "{few:?} {many:?}");
    }
}

/// What a trim costs that gives one page back, beside `holes` large runs that the system has.
fn cost_of_a_trim(holes: usize) -> usize {
    let heap = PageHeap::new(PageSource::System, 1 << 40);
    let page_bytes = heap.page_bytes();
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..holes {
        gone.push(heap.take(2000 * page_bytes, 1).unwrap());
        kept.push(heap.take(1, 1).unwrap());
    }
    give(&heap, gone);
    heap.trim(0);
    let count = || hooks::with(|hooks| hooks.calls.iter().sum::<usize>());
    let before = count();
    for _ in 0..100 {
        give(&heap, [heap.take(1, 1).unwrap()]);
        heap.trim(heap.stats().resident_bytes - page_bytes);
    }
    let calls = count() - before;
    give(&heap, kept);
    calls
}

#[test]
fn t26_trims_cost_the_same_beside_large_holes() {
    if system::page_bytes() == 0 {
        return;
    }
    let (few, many) = (cost_of_a_trim(2), cost_of_a_trim(200));
    assert!(many <= few + 100, "{few} calls, and {many}");
}

/// Lengths that vary in a heap: how many moves that takes, and the most that was used and that the
/// process had.
fn churn(limit: usize, is_thrifty: bool) -> (usize, usize, usize) {
    let heap = PageHeap::new(PageSource::System, limit);
    heap.lock().is_thrifty = is_thrifty;
    let (mut held, mut used) = (Vec::new(), 0);
    let moves = || hooks::with(|hooks| hooks.calls[hooks::Call::Move as usize]);
    let before = moves();
    for length in random(1, 4000) {
        if held.len() == 32 {
            give(&heap, [held.remove(0)]);
        }
        // From a page to a quarter of a MiB, small ones more often.
        held.push(heap.take((4 << 10 << (length / 43)) + usize::from(length) * 512, 1).unwrap());
        used = used.max(heap.used());
    }
    give(&heap, held);
    (moves() - before, used, heap.stats().most_resident_bytes)
}

#[test]
fn sizes_that_vary_leave_holes_which_are_not_filled_over_and_over() {
    if system::page_bytes() == 0 {
        return;
    }
    let (moves, used, most) = churn(1 << 40, false);
    assert!(moves < 40 && most < used + used / 8 + (5 << 20), "{moves} moves, {used} {most} bytes");
    // Where there is a limit, nothing more.
    let (_, _, most) = churn(used, false);
    assert!(most <= used, "{used} {most} bytes");
    let (all, ..) = churn(1 << 40, true);
    assert!(all > 10 * (moves + 1) || cfg!(not(target_os = "linux")), "{moves} of {all} moves");
}
