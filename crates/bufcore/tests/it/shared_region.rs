//! One region that several pools have parts of.

use std::sync::{Arc, Barrier};
use std::thread;

use bufcore::{Region, RegionError, SharedRegion};

const BYTES: usize = 64 << 10;

fn shared() -> SharedRegion {
    SharedRegion::new(Region::heap(BYTES, 4096).expect("the heap has room"))
}

fn fill(part: &Region, value: u8) {
    // SAFETY: all of the part, which is this test's alone.
    unsafe { part.as_ptr().write_bytes(value, part.len()) };
}

fn is_all(part: &Region, value: u8) -> bool {
    // SAFETY: all of the part, initialised, and this test's alone.
    unsafe { std::slice::from_raw_parts(part.as_ptr().as_ptr(), part.len()) }
        .iter()
        .all(|&byte| byte == value)
}

#[test]
fn gaps_join_whatever_the_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let shared = shared();
        let mut parts: Vec<_> = (0..3).map(|at| shared.part(1000 + at, 64).ok()).collect();
        assert!(parts.iter().all(Option::is_some) && shared.spare_bytes() == BYTES - 3 * 1024);
        for at in order {
            parts[at] = None;
        }
        assert_eq!(shared.spare_bytes(), BYTES, "{order:?}");
    }
}

#[test]
fn a_region_that_ends_within_a_line_is_used_up_to_its_end() {
    let shared = SharedRegion::new(Region::heap(1000, 64).expect("the heap has room"));
    for _ in 0..2 {
        let part = shared.part(1000, 64).expect("it is all free");
        assert_eq!(shared.spare_bytes(), 0);
        assert!(is_all(&part, 0));
        fill(&part, 7);
    }
    assert_eq!(shared.spare_bytes(), 1000);
}

#[test]
fn a_start_that_is_not_aligned_is_skipped() {
    let region = Region::heap(BYTES, 4096).expect("the heap has room");
    let odd = SharedRegion::new(region).part(BYTES - 64, 64).expect("there is room");
    // A region of a region, which starts on a line and on no page.
    let inner = SharedRegion::new(odd);
    let _first = inner.part(64, 64).expect("there is room");
    let page = inner.part(4096, 4096).expect("there is room");
    assert!(page.as_ptr().addr().get().is_multiple_of(4096));
    let between = inner.part(4096 - 64, 64).expect("the gap in front of the page is used");
    assert!(between.as_ptr() < page.as_ptr());
}

/// Wherever in a cache line the region starts, and also where it ends within the same line.
#[test]
fn a_part_of_the_spare_bytes_can_be_cut() {
    let mut memory = &mut *Box::leak(vec![0; BYTES].into_boxed_slice());
    for len in [1, 37, 100, 401].into_iter().cycle().take(4 * 64) {
        let (bytes, rest) = memory.split_at_mut(len);
        memory = rest;
        let shared = SharedRegion::new(Region::from_static(bytes));
        let spare = shared.spare_bytes();
        let part = (spare > 0).then(|| shared.part(spare, 1).expect("a part of the spare bytes"));
        assert_eq!(shared.spare_bytes(), 0);
        assert!(shared.part(1, 1).is_err(), "{len} bytes at {:?}, and {spare} spare", shared.as_ptr());
        drop(part);
        assert_eq!(shared.spare_bytes(), spare);
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let shared = shared();
    assert!(matches!(shared.part(0, 64), Err(RegionError::Empty)));
    assert!(matches!(shared.part(64, 3), Err(RegionError::BadAlignment { alignment: 3 })));
    assert!(matches!(shared.part(usize::MAX, 64), Err(RegionError::TooLarge { .. })));
    assert!(matches!(shared.part(isize::MAX as usize, 1), Err(RegionError::OutOfMemory { .. })));
    assert!(matches!(shared.part(64, 1 << (usize::BITS - 14)), Err(RegionError::OutOfMemory { .. }) | Ok(_)));
    assert_eq!(shared.spare_bytes(), BYTES);
}

#[test]
fn parts_keep_the_whole_and_come_zeroed() {
    let shared = shared();
    let part = shared.part(4096, 64).expect("there is room");
    fill(&part, 0xAA);
    let copy = shared.clone();
    drop(shared);
    drop(part);
    let part = copy.part(8192, 64).expect("there is room");
    drop(copy);
    // The last handle is the part itself.
    assert!(is_all(&part, 0));
    fill(&part, 1);
}

#[test]
fn parts_of_many_threads_never_overlap() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
    let (shared, start) = (shared(), Arc::new(Barrier::new(4)));
    let threads: Vec<_> = (1..=4)
        .map(|value| {
            let (shared, start) = (shared.clone(), Arc::clone(&start));
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(value.into());
                let mut parts: Vec<Region> = Vec::new();
                start.wait();
                for _ in 0..ROUNDS {
                    if parts.len() < 12 && random.bool() {
                        let alignment = 1 << random.u32(0..12);
                        if let Ok(part) = shared.part(random.usize(1..3000), alignment) {
                            assert!(is_all(&part, 0));
                            assert!(part.as_ptr().addr().get().is_multiple_of(alignment));
                            fill(&part, value);
                            parts.push(part);
                        }
                    } else if !parts.is_empty() {
                        let part = parts.swap_remove(random.usize(..parts.len()));
                        assert!(is_all(&part, value));
                    }
                }
                assert!(parts.iter().all(|part| is_all(part, value)));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no trial fails"));
    assert_eq!(shared.spare_bytes(), BYTES);
}
