//! T14: where buffers are, and what those without bytes hold.

use std::fmt::Debug;
use std::mem;

use bufcore::{BufferPool, Frozen, SplitLease, Writer};

use crate::Kit;
use crate::append::Append;
use crate::model::Shadow;

/// Checks that each view of a buffer of no bytes becomes a buffer again once the others are gone,
/// whichever it is (T14).
pub fn views_of_nothing<P: BufferPool>(kit: &Kit<P>) {
    for kept in 0..3 {
        let mut pool = (kit.make)();
        let view = pool.acquire(0).expect("no bytes are always there").freeze();
        let mut views = vec![view.clone(), view.slice(..), view];
        let view = views.swap_remove(kept);
        drop(views);
        assert!(view.is_unique() && view.is_empty(), "view {kept}");
        let buf = view
            .try_into_mut()
            .unwrap_or_else(|_| panic!("view {kept} of three is the last, and does not thaw"));
        assert_eq!((buf.len(), buf.capacity()), (0, 0));
        drop(pool);
        drop(buf);
    }
}

/// Checks that a view without bytes, however it came to that, keeps no buffer in use, and keeps no
/// other view from thawing (T14).
pub fn empty_views<P: BufferPool>(kit: &Kit<P>) {
    type Empties<L> = fn(&mut Frozen<L>) -> Frozen<L>;
    let ways: [Empties<P::Lease>; 9] = [
        |view| view.slice(..0),
        |view| view.slice(7..7),
        |view| view.slice(view.len()..).clone(),
        |view| view.split_to(0),
        |view| view.split_off(view.len()),
        |view| {
            let all = view.split_to(view.len());
            mem::replace(view, all)
        },
        |view| {
            let all = view.split_off(0);
            mem::replace(view, all)
        },
        |view| {
            let mut read = view.clone();
            read.consume(10);
            read.consume(read.len() - 1);
            read.consume(1);
            read
        },
        |view| {
            let mut cut = view.clone();
            cut.truncate(0);
            cut.clear();
            cut
        },
    ];
    for (way, empty_of) in ways.into_iter().enumerate() {
        let mut pool = (kit.make)();
        let mut buf = pool.acquire(100).expect("a small request");
        buf.resize(90, 1).expect("asked for");
        let mut view = buf.freeze();
        let empty = empty_of(&mut view);
        assert!(empty.is_empty() && view.len() == 90, "way {way}");
        let buf = view.try_into_mut().unwrap_or_else(|_| panic!("a view is empty, and in the way ({way})"));
        assert!(buf.capacity() >= 100 && buf[..] == [1; 90], "way {way}");
        drop(buf);
        assert_eq!(pool.stats().in_use, 0, "way {way}");
        drop(pool);
        assert!(empty.clone().is_unique(), "way {way}");
        let buf = empty.try_into_mut().unwrap_or_else(|_| panic!("a buffer of nothing (way {way})"));
        assert_eq!((buf.len(), buf.capacity()), (0, 0), "way {way}");
    }
}

/// Checks that a writer that has no bytes when it is finished leaves an empty buffer, which keeps
/// none of the pool's memory (T14).
pub fn empty_frames<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    for way in 0..4 {
        let mut pool = (kit.make)();
        let mut kept = Vec::new();
        for _ in 0..100 {
            let mut writer = Writer::new(&mut pool);
            if way > 0 {
                writer.append(90).expect("a small frame").fill(1);
            }
            match way {
                1 => writer.truncate(0),
                2 => writer.discard_front(90),
                3 => {
                    writer.discard_front(40);
                    writer.truncate(0);
                }
                _ => {}
            }
            let buf = writer.finish();
            assert_eq!((buf.len(), buf.capacity()), (0, 0), "way {way}");
            kept.push(buf);
        }
        assert_eq!(pool.stats().in_use, 0, "way {way}");
        if kit.rejects {
            let largest = pool.max_capacity();
            let all = pool.acquire(largest);
            assert!(all.is_ok(), "empty buffers are in the way ({way}): {all:?}");
        }
    }
}

/// Checks that buffers start at a multiple of what was asked for, wherever they come from (T14).
pub fn alignment<P: BufferPool, E: Debug>(aligned: impl Fn(usize) -> Result<P, E>) {
    for alignment in [1, 2, 16, 64, 256, 4096] {
        let mut pool = aligned(alignment).expect("an ordinary alignment");
        let shadow = Shadow::new();
        let mut bufs = Vec::new();
        let mut rng = fastrand::Rng::with_seed(alignment as u64);
        for _ in 0..500 {
            let bytes = rng.usize(1..3 * alignment + 100);
            if let Ok(buf) = pool.acquire(bytes) {
                assert_eq!(buf.as_ptr().addr() % alignment, 0, "{bytes} bytes aligned to {alignment}");
                bufs.push((shadow.claim(buf.as_ptr(), buf.capacity()), buf));
            }
            while bufs.len() > rng.usize(..20) {
                bufs.swap_remove(rng.usize(..bufs.len()));
            }
        }
    }
    for wrong in [0, 3, 48, usize::MAX] {
        assert!(aligned(wrong).is_err(), "an alignment of {wrong}");
    }
}
