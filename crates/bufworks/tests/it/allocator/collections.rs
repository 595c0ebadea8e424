//! Vectors, boxes and maps: generated operations on them and on those of the standard library.

use std::collections::HashMap as StdMap;
use std::pin::Pin;
use std::vec::Vec as StdVec;

use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use testkit::trials::scaled;

use super::{Pool, on_all};

/// A value with padding, and with memory of its own that is freed once.
#[derive(Debug, Clone, PartialEq)]
struct Value {
    tag: u8,
    number: u64,
    text: std::string::String,
}

fn value(random: &mut fastrand::Rng) -> Value {
    let number = random.u64(..);
    Value { tag: random.u8(..), number, text: format!("{number:x}") }
}

fn vectors(name: &str, pool: &impl Pool) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut ours = Vec::new_in(pool);
    let mut theirs = StdVec::new();
    for step in 0..scaled(10_000) {
        let at = random.usize(0..=theirs.len());
        match random.u8(0..12) {
            0..4 => {
                let value = value(&mut random);
                ours.push(value.clone());
                theirs.push(value);
            }
            4 => {
                let value = value(&mut random);
                ours.insert(at, value.clone());
                theirs.insert(at, value);
            }
            5 if at < theirs.len() => assert_eq!(ours.remove(at), theirs.remove(at)),
            6 => assert_eq!(ours.pop(), theirs.pop()),
            7 => {
                let more: StdVec<_> = (0..random.usize(0..20)).map(|_| value(&mut random)).collect();
                ours.extend(more.iter().cloned());
                theirs.extend(more);
            }
            8 if random.u8(0..5) == 0 => {
                ours.truncate(at);
                theirs.truncate(at);
                ours.shrink_to_fit();
            }
            9 => {
                let drained: StdVec<_> = ours.drain(at..).collect();
                assert_eq!(drained, theirs.drain(at..).collect::<StdVec<_>>());
            }
            10 => {
                let tail = ours.split_off(at);
                assert_eq!(tail[..], theirs.split_off(at)[..]);
                if random.bool() {
                    // The vector goes, and the tail is in its place.
                    theirs = tail.to_vec();
                    ours = tail;
                }
            }
            11 => ours.reserve(random.usize(0..200)),
            _ => {}
        }
        assert!(ours[..] == theirs[..], "{name}: step {step}");
    }
}

#[test]
fn vectors_are_as_those_of_the_standard_library() {
    on_all!(vectors);
}

fn maps(name: &str, pool: &impl Pool) {
    let mut random = fastrand::Rng::with_seed(2);
    let mut ours = HashMap::with_hasher_in(DefaultHashBuilder::default(), pool);
    let mut theirs = StdMap::new();
    for step in 0..scaled(20_000) {
        let key = random.u16(0..2000);
        match random.u8(0..10) {
            0..5 => {
                let value = value(&mut random);
                assert_eq!(ours.insert(key, value.clone()), theirs.insert(key, value), "{name}: step {step}");
            }
            5..8 => assert_eq!(ours.remove(&key), theirs.remove(&key), "{name}: step {step}"),
            8 => {
                let (even, bit) = (random.bool(), random.u8(0..60));
                if bit == 0 {
                    ours.retain(|key, _| (key % 2 == 0) == even);
                    theirs.retain(|key, _| (key % 2 == 0) == even);
                    ours.shrink_to_fit();
                }
            }
            _ => {
                let more = random.usize(0..300);
                ours.reserve(more);
                if random.u8(0..50) == 0 {
                    // A copy, in the same pool.
                    ours = ours.clone();
                }
            }
        }
        assert_eq!(ours.get(&key), theirs.get(&key), "{name}: step {step}");
        assert_eq!(ours.len(), theirs.len());
    }
    assert!(ours.iter().all(|(key, value)| theirs.get(key) == Some(value)), "{name}");
}

#[test]
fn maps_are_as_those_of_the_standard_library() {
    on_all!(maps);
}

/// Tables of values with an alignment of their own: their groups lie behind the values.
fn tables(name: &str, pool: &impl Pool) {
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(align(128))]
    struct Line(u64);

    let mut table = HashTable::new_in(pool);
    for number in 0..1000 {
        let line = Line(number);
        assert!(std::ptr::from_ref(table.insert_unique(number, line, |line| line.0).get()).is_aligned());
    }
    for number in 0..1000 {
        let found = table.find(number, |line| line.0 == number).copied();
        assert_eq!(found, Some(Line(number)), "{name}");
    }
}

#[test]
fn tables_of_aligned_values() {
    on_all!(tables);
}

fn boxes(name: &str, pool: &impl Pool) {
    let mut kept = StdVec::new();
    for number in 0..500_u64 {
        kept.push(Box::new_in((number, [number as u8; 40]), pool));
        if number % 3 == 0 {
            kept.swap_remove(kept.len() / 2);
        }
    }
    assert!(kept.iter().all(|one| one.1 == [one.0 as u8; 40]), "{name}");
    let nothing = Box::new_in((), pool);
    let text: Box<dyn Fn(u8) -> u8, _> = Box::unsize_from(Box::new_in(3_u8, pool));
    assert_eq!((*nothing, text(4)), ((), 7), "{name}");
}

/// A closure in a box, since this `Box` cannot be coerced.
trait UnsizeFrom<A: allocator_api2::alloc::Allocator> {
    fn unsize_from(add: Box<u8, A>) -> Self;
}

impl<A: allocator_api2::alloc::Allocator> UnsizeFrom<A> for Box<dyn Fn(u8) -> u8, A> {
    fn unsize_from(add: Box<u8, A>) -> Self {
        let (add, pool) = Box::into_raw_with_allocator(add);
        // SAFETY: the box from above.
        let number = unsafe { *add };
        // SAFETY: as above; it is dropped here, and its allocator lives on.
        drop(unsafe { Box::from_raw_in(add, &pool) });
        let closure = Box::new_in(move |other: u8| number + other, pool);
        let (closure, pool) = Box::into_raw_with_allocator(closure);
        // SAFETY: the same box, whose type is forgotten.
        unsafe { Self::from_raw_in(closure as *mut dyn Fn(u8) -> u8, pool) }
    }
}

#[test]
fn boxes_of_values_and_of_closures() {
    on_all!(boxes);
}

#[test]
fn values_that_are_pinned() {
    let pool = super::shard();
    let pinned: Pin<Box<_, _>> = Box::into_pin(Box::new_in([5_u8; 100], pool.clone()));
    let start = pinned.as_ptr();
    drop(pool);
    let moved = pinned;
    assert_eq!((moved.as_ptr(), *moved), (start, [5; 100]));
}
