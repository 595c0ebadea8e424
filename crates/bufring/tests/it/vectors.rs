//! Typed vectors: T14's element types, and T15 against `Vec`.

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use bufcore::AcquireError;
use bufring::{PushError, RingPool, RingVec};
use testkit::model::Shadow;

fn ring() -> RingPool {
    RingPool::new(1 << 18).expect("settings are right")
}

/// Counts what is alive, and panics in `drop` or `clone` when told to.
struct Counted {
    alive: Rc<Cell<isize>>,
    id: u32,
    drop_panics: bool,
    clone_panics: bool,
}

impl Counted {
    fn new(alive: &Rc<Cell<isize>>, id: u32) -> Self {
        alive.set(alive.get() + 1);
        Self { alive: Rc::clone(alive), id, drop_panics: false, clone_panics: false }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!self.clone_panics, "clone of {} panics", self.id);
        Self::new(&self.alive, self.id)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
        assert!(!self.drop_panics || std::thread::panicking(), "drop of {} panics", self.id);
    }
}

/// Twelve of them in any way that a vector can come and go; all that were created are dropped.
#[test]
fn t14_counted_values() {
    let alive = Rc::new(Cell::new(0));
    let mut ring = ring();
    for way in 0..9 {
        let mut vec = ring.acquire_vec(12).expect("room");
        for id in 0..12 {
            vec.push(Counted::new(&alive, id)).expect("room");
        }
        let refused = vec.push(Counted::new(&alive, 99)).expect_err("it is full");
        assert_eq!((refused.0.id, refused.to_string()), (99, "vector is full".to_owned()));
        drop(refused);
        assert_eq!(alive.get(), 12);
        let end = |mut vec: RingVec<Counted>| match way {
            0 => drop(vec),
            1 => vec.clear(),
            2 => vec.truncate(5),
            3 => drop((vec.remove(0), vec.swap_remove(3), vec.pop())),
            4 => drop(vec.into_iter()),
            5 => {
                let mut values = vec.into_iter();
                let ids = (values.next().map(|v| v.id), values.next_back().map(|v| v.id), values.len());
                assert_eq!((ids, values.as_slice()[0].id), ((Some(0), Some(11), 10), 1));
            }
            6 => assert_eq!(vec.into_iter().map(|value| value.id).sum::<u32>(), 66),
            7 => {
                drop(vec.remove(11));
                vec.try_insert(0, Counted::new(&alive, 50)).expect("room");
                vec.extend_from_slice(&[]).expect("nothing");
                assert_eq!((vec[0].id, vec[11].id), (50, 10));
            }
            _ => {
                vec.truncate(6);
                let more: Vec<_> = vec.iter().cloned().collect();
                vec.extend_from_slice(&more).expect("room");
                assert!(vec.extend_from_slice(&more).is_err());
                assert_eq!(vec.len(), 12);
            }
        };
        end(vec);
        assert_eq!(alive.get(), 0, "way {way}");
    }
    assert!(ring.is_idle());
}

#[test]
fn t14_panicking_drops() {
    let alive = Rc::new(Cell::new(0));
    let mut ring = ring();
    for (bad, way) in (0..6).flat_map(|bad| (0..4).map(move |way| (bad, way))) {
        let mut vec = ring.acquire_vec(6).expect("room");
        for id in 0..6 {
            let mut value = Counted::new(&alive, id);
            value.drop_panics = id == bad;
            vec.push(value).expect("room");
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| match way {
            0 => drop(vec),
            1 => {
                let mut vec = vec;
                vec.clear();
                assert!(vec.is_empty());
            }
            2 => drop(vec.into_iter()),
            _ => vec.into_iter().for_each(drop),
        }));
        assert!(panicked.is_err());
        assert_eq!(alive.get(), 0, "value {bad} panics, way {way}");
        assert!(ring.is_idle(), "the memory was released");
    }
}

#[test]
fn t14_panicking_clones() {
    let alive = Rc::new(Cell::new(0));
    let mut ring = ring();
    for bad in 0..6 {
        let mut values: Vec<_> = (0..6).map(|id| Counted::new(&alive, id)).collect();
        values[bad as usize].clone_panics = true;
        let mut vec = ring.acquire_vec(6).expect("room");
        let panicked = catch_unwind(AssertUnwindSafe(|| vec.extend_from_slice(&values)));
        assert!(panicked.is_err());
        assert!(vec.iter().map(|value| value.id).eq(0..bad), "those before it stay");
        drop(vec);
        assert_eq!(alive.get(), 6);
        drop(values);
    }
    assert_eq!(alive.get(), 0);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(16))]
struct Aligned16(u8);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Aligned64(u8);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(4096))]
struct Aligned4096(u8);

/// Values of one type in several vectors at once: aligned, disjoint, and as they were written.
fn placed<T: PartialEq + Debug>(make: impl Fn(u8) -> T) {
    for alignment in [1, 64, 4096] {
        let mut ring = RingPool::builder()
            .capacity(1 << 18)
            .alignment(alignment)
            .buffers(20)
            .build()
            .expect("settings are right");
        let shadow = Shadow::new();
        let mut vecs = Vec::new();
        for round in 0..60_u8 {
            let capacity = usize::from(round % 7);
            let Ok(mut vec) = ring.acquire_vec::<T>(capacity) else {
                vecs.clear();
                continue;
            };
            let _between = ring.acquire(1 + usize::from(round));
            assert_eq!(vec.as_ptr().addr() % align_of::<T>(), 0);
            let claim = shadow.claim(vec.as_ptr().cast(), capacity * size_of::<T>());
            while vec.push(make(round)).is_ok() {}
            assert_eq!((vec.len(), vec.capacity()), (capacity, capacity));
            vecs.push((claim, vec, round));
            if vecs.len() > 8 {
                vecs.swap_remove(usize::from(round) % 8);
            }
            for (_, vec, round) in &vecs {
                assert!(vec.iter().all(|value| *value == make(*round)));
            }
        }
    }
}

#[test]
fn t14_sizes_and_alignments() {
    placed(|_| ());
    placed(|value| value);
    placed(|value| [value; 3]);
    placed(|value| [value; 1000]);
    placed(|value| (value, u64::from(value)));
    placed(u128::from);
    placed(Aligned16);
    placed(Aligned64);
    placed(Aligned4096);
    placed(|_| [Aligned64(1); 0]);
    placed(|value| value.to_string());
}

#[test]
fn t14_values_of_no_size() {
    let mut ring = ring();
    let mut vec = ring.acquire_vec(usize::MAX).expect("no bytes are needed");
    for _ in 0..1000 {
        vec.push(()).expect("room");
    }
    assert_eq!((vec.len(), vec.pop(), vec.iter().count()), (1000, Some(()), 999));
    vec.truncate(5);
    vec.try_insert(2, ()).expect("room");
    assert_eq!(vec.into_iter().count(), 6);
    let mut none = ring.acquire_vec::<u64>(0).expect("no bytes are needed");
    assert_eq!((none.push(1), none.pop()), (Err(PushError(1)), None));
}

#[test]
fn t05_absurd_counts() {
    let mut ring = ring();
    let limit = ring.capacity();
    for count in [limit, usize::MAX / 8, usize::MAX / 8 + 1, usize::MAX] {
        let error = ring.acquire_vec::<u64>(count).expect_err("too many");
        assert!(
            matches!(error, AcquireError::TooLarge { requested, limit: of } if of == limit && requested > limit)
        );
        assert!(ring.acquire_vec::<Aligned4096>(count).is_err());
    }
    assert!(ring.acquire_vec::<u64>(limit / 8).is_ok());
}

/// What a vector's memory was used for is zero when it is handed out again: values may have
/// padding, which is not initialised.
#[test]
fn used_memory_comes_back_zeroed() {
    let mut ring = ring();
    let bytes = 40 * size_of::<(u8, u64)>();
    for way in 0..8 {
        // Nothing of an earlier buffer.
        let mut clean = ring.acquire(bytes).expect("room");
        clean.spare_mut().fill(0);
        drop(clean);
        let mut vec = ring.acquire_vec(40).expect("room");
        for index in 0..40 {
            vec.push((0xFF_u8, u64::MAX - index)).expect("room");
        }
        match way {
            0 => {}
            1 => vec.clear(),
            2 => vec.truncate(3),
            3 => while vec.pop().is_some() {},
            4 => drop((vec.remove(0), vec.swap_remove(5))),
            5 => {
                vec.truncate(10);
                vec.push((1, 2)).expect("room");
            }
            6 => drop(vec.into_iter().nth(20)),
            _ => assert_eq!(vec.into_iter().rev().count(), 40),
        }
        let mut buf = ring.acquire(bytes).expect("room");
        let found = buf.spare_mut().iter().position(|&byte| byte != 0);
        assert_eq!(found, None, "way {way}");
    }
}

/// One vector and one `Vec` with the same content.
fn pair<T: Clone>(ring: &mut RingPool, content: &[T]) -> (RingVec<T>, Vec<T>) {
    let mut vec = ring.acquire_vec(content.len() + 2).expect("room");
    vec.extend_from_slice(content).expect("room");
    (vec, content.to_vec())
}

#[track_caller]
fn same<T: PartialEq + Debug>(vec: &RingVec<T>, expected: &[T]) {
    assert_eq!(&vec[..], expected);
    assert_eq!((vec.len(), vec.is_empty()), (expected.len(), expected.is_empty()));
    assert_eq!(vec.is_full(), vec.len() == vec.capacity());
}

fn against_vec<T: Clone + PartialEq + Debug>(make: impl Fn(usize) -> T) {
    let mut ring = ring();
    for len in 0..=64 {
        let content: Vec<T> = (0..len).map(&make).collect();
        let other = || make(1000 + len);
        for at in 0..=len {
            let (mut vec, mut expected) = pair(&mut ring, &content);
            vec.try_insert(at, other()).expect("room");
            expected.insert(at, other());
            same(&vec, &expected);
            vec.push(other()).expect("room");
            expected.push(other());
            same(&vec, &expected);
            assert_eq!(vec.try_insert(at, other()), Err(PushError(other())));
            assert_eq!(vec.push(other()), Err(PushError(other())));
            same(&vec, &expected);
            vec.truncate(at);
            expected.truncate(at);
            same(&vec, &expected);
            assert_eq!(vec.pop(), expected.pop());
            same(&vec, &expected);
            let (mut vec, mut expected) = pair(&mut ring, &content);
            if at < len {
                assert_eq!(vec.remove(at), expected.remove(at));
                same(&vec, &expected);
                let (mut vec, mut expected) = pair(&mut ring, &content);
                assert_eq!(vec.swap_remove(at), expected.swap_remove(at));
                same(&vec, &expected);
                vec[..at].reverse();
                expected[..at].reverse();
                same(&vec, &expected);
            } else {
                for wrong in [at, at + 1, usize::MAX] {
                    assert!(catch_unwind(AssertUnwindSafe(|| vec.remove(wrong))).is_err());
                    assert!(catch_unwind(AssertUnwindSafe(|| vec.swap_remove(wrong))).is_err());
                }
                assert!(catch_unwind(AssertUnwindSafe(|| vec.try_insert(at + 1, other()))).is_err());
                same(&vec, &expected);
            }
            let (mut vec, mut expected) = pair(&mut ring, &content[..at]);
            let more = [other(), other()];
            vec.extend_from_slice(&more).expect("room");
            expected.extend_from_slice(&more);
            same(&vec, &expected);
            assert!(vec.extend_from_slice(&more).is_err());
            same(&vec, &expected);
            vec.iter_mut().zip(&mut expected).for_each(|(left, right)| {
                *left = other();
                *right = other();
            });
            same(&vec, &expected);
            let (vec, expected) = pair(&mut ring, &content);
            let (mut left, mut right) = (vec.into_iter(), expected.into_iter());
            for step in 0..at {
                let forwards = step % 3 != 0;
                let pair = if forwards {
                    (left.next(), right.next())
                } else {
                    (left.next_back(), right.next_back())
                };
                assert_eq!(pair.0, pair.1);
                assert_eq!((left.len(), left.as_slice()), (right.len(), right.as_slice()));
            }
            assert!(left.eq(right));
        }
        let (mut vec, expected) = pair(&mut ring, &content);
        assert_eq!(format!("{vec:?}"), format!("{expected:?}"));
        assert_eq!((&vec).into_iter().count() + (&mut vec).into_iter().count(), 2 * len);
        vec.clear();
        same(&vec, &[]);
    }
}

#[test]
fn t15_every_mutator_against_vec() {
    against_vec(|index| index as u8);
    against_vec(|index| (index as u8, index as u64));
    against_vec(|index| index.to_string());
    against_vec(|index| Aligned64(index as u8));
    against_vec(|_| ());
}

/// Vectors go to other threads, with their values, and after their ring.
#[test]
fn vectors_on_other_threads() {
    let mut ring = ring();
    let vecs: Vec<_> = (0..4)
        .map(|index| {
            let mut vec = ring.acquire_vec(3).expect("room");
            vec.push(format!("number {index}")).expect("room");
            vec
        })
        .collect();
    drop(ring);
    let threads = vecs
        .into_iter()
        .zip(0..)
        .map(|(vec, index)| std::thread::spawn(move || assert_eq!(vec[0], format!("number {index}"))));
    threads.for_each(|thread| thread.join().expect("the value is right"));
}

/// A vector is a slice to whatever asks for one.
#[test]
fn as_slices() {
    let mut ring = RingPool::new(4096).expect("settings are right");
    let mut vec = ring.acquire_vec::<u16>(4).expect("room");
    (1..4).for_each(|value| vec.push(value).expect("room"));
    AsMut::<[u16]>::as_mut(&mut vec)[0] = 9;
    assert_eq!(AsRef::<[u16]>::as_ref(&vec), [9, 2, 3]);
    assert!(vec == [9, 2, 3] && vec != [9, 2] && vec == *[9, 2, 3].as_slice());
}
