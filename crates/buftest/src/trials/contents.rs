//! T14 and T15: where buffers are, and what the mutators of a buffer do.

use std::fmt::Debug;
use std::mem;

use bufcore::{Buf, BufferPool, Frozen, Lease, SplitLease, Writer};

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

/// Checks that many live buffers of every small size are disjoint, and each keeps its bytes (T14).
pub fn disjoint<P: BufferPool>(kit: &Kit<P>) {
    let mut pool = (kit.make)();
    let shadow = Shadow::new();
    let mut bufs = Vec::new();
    for size in 0..400_usize {
        let Ok(mut buf) = pool.acquire(size) else {
            assert!(kit.rejects);
            continue;
        };
        let claim = shadow.claim(buf.as_ptr(), buf.capacity());
        // All of the capacity, not only what was asked for, belongs to the buffer.
        buf.spare_mut().fill(size as u8);
        let room = buf.capacity();
        buf.commit(room);
        bufs.push((claim, buf, size as u8));
        if size % 3 == 0 {
            bufs.swap_remove(size / 3 % bufs.len());
        }
    }
    for (_claim, buf, value) in &bufs {
        assert!(buf.iter().all(|byte| byte == value), "a neighbour wrote into a buffer of {}", buf.len());
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

/// Compares every mutator with `Vec`, at every index, for lengths 0 to 64 (T15).
pub fn mutators<P: BufferPool>(kit: &Kit<P>) {
    const ROOM: usize = 80;
    let mut pool = (kit.make)();
    for len in 0..=64_usize {
        let content: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        // One buffer and one vector with the same content; `consume` before it, so that the start
        // is not the memory's.
        let mut fresh = |cut: usize| {
            let mut buf = pool.acquire(ROOM + cut).expect("a small request");
            buf.resize(cut, 0xAA).expect("there is room");
            buf.consume(cut);
            buf.extend_from_slice(&content).expect("there is room");
            buf
        };
        for at in 0..=len {
            let apply = |buf: &mut Buf<P::Lease>, vec: &mut Vec<u8>, op: usize| match op {
                0 => {
                    buf.truncate(at);
                    vec.truncate(at);
                }
                1 => {
                    buf.consume(at);
                    vec.drain(..at);
                }
                2 => {
                    let more = vec![at as u8; at.min(ROOM - len)];
                    buf.extend_from_slice(&more).expect("there is room");
                    vec.extend_from_slice(&more);
                }
                3 => {
                    buf.resize(at, 5).expect("there is room");
                    vec.resize(at, 5);
                }
                4 => {
                    buf.resize(ROOM.min(len + at), 6).expect("there is room");
                    vec.resize(ROOM.min(len + at), 6);
                }
                5 => {
                    buf[..at].reverse();
                    vec[..at].reverse();
                }
                6 => {
                    buf.push(at as u8).expect("there is room");
                    vec.push(at as u8);
                }
                _ => {
                    buf.clear();
                    vec.clear();
                }
            };
            for (first, second) in (0..8).flat_map(|a| [(a, 4), (a, 6)]) {
                let mut buf = fresh(at % 5);
                let mut vec = content.clone();
                apply(&mut buf, &mut vec, first);
                same(&buf, &vec);
                if vec.len() < at || buf.spare_capacity() < at + 1 {
                    continue;
                }
                let target = vec.len() + 1;
                match second {
                    4 => {
                        buf.resize(target, 8).expect("there is room");
                        vec.resize(target, 8);
                    }
                    _ => {
                        buf.push(9).expect("there is room");
                        vec.push(9);
                    }
                }
                same(&buf, &vec);
            }
            // Views: cut at every index, put together again.
            let mut front = fresh(0).freeze();
            let back = front.split_off(at);
            assert_eq!((&front[..], &back[..]), content.split_at(at));
            assert_eq!(front.is_unique(), front.is_empty() || back.is_empty());
            drop(back);
            let thawed = front.try_into_mut().expect("the only view");
            same(&thawed, &content[..at]);
            let mut back = fresh(0).freeze();
            let front = back.split_to(at);
            assert_eq!((&front[..], &back[..]), content.split_at(at));
            drop(front);
            let mut thawed = back.try_into_mut().expect("the only view");
            same(&thawed, &content[at..]);
            // A view that has given all of itself away has nothing left to fill.
            assert_eq!(thawed.push(1).is_ok(), at < len || len == 0);
            for to in at..=len {
                let view = fresh(0).freeze();
                assert_eq!(view.slice(at..to), content[at..to]);
            }
        }
    }
}

#[track_caller]
fn same<L: Lease>(buf: &Buf<L>, vec: &[u8]) {
    assert_eq!(&buf[..], vec);
    assert_eq!((buf.len(), buf.is_empty()), (vec.len(), vec.is_empty()));
    assert!(buf.capacity() >= buf.len());
    assert_eq!(buf.spare_capacity(), buf.capacity() - buf.len());
}
