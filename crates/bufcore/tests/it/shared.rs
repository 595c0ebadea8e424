//! The handle that erases its strategy: where bytes come from, where they go, and what each costs
//! in memory.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use bufcore::{ByteSource, HeapLease, HeapPool, NoLease, SharedBytes};

fn of_heap(bytes: &[u8]) -> SharedBytes {
    let mut buf = HeapPool::new().acquire(bytes.len()).expect("room");
    buf.extend_from_slice(bytes).expect("room");
    buf.into()
}

/// Bytes whose owners can be counted.
struct Counted(Vec<u8>, #[expect(dead_code, reason = "there to be counted")] Arc<()>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        assert_ne!(self.0, b"panic", "as the test asked for");
        &self.0
    }
}

#[test]
fn an_owner_is_dropped_once() {
    let token = Arc::new(());
    let counted = |bytes: &[u8]| Counted(bytes.to_vec(), Arc::clone(&token));
    let owners = || Arc::strong_count(&token) - 1;
    let shared = SharedBytes::from_owner(counted(b"abc"));
    let parts = [shared.clone(), shared.slice(1..), shared.slice(..0)];
    drop(shared);
    assert_eq!(owners(), 1, "parts of it are there");
    parts.into_iter().for_each(|part| std::thread::spawn(move || drop(part)).join().expect("no panic"));
    assert_eq!(owners(), 0);
    let empty = SharedBytes::from_owner(counted(b""));
    assert_eq!((empty.is_static(), owners()), (true, 0), "an owner of no bytes is not kept");
    panic::catch_unwind(AssertUnwindSafe(|| SharedBytes::from_owner(counted(b"panic"))))
        .expect_err("it panics");
    assert_eq!(owners(), 0, "an owner that panics is not leaked");
}

/// Handles of no bytes hold nothing, however they came to have none.
#[test]
fn an_empty_handle_lets_its_buffer_go() {
    let emptied: [fn(&mut SharedBytes); 7] = [
        SharedBytes::clear,
        |shared| shared.truncate(0),
        |shared| shared.consume(3),
        |shared| drop(shared.split_to(3)),
        |shared| drop(shared.split_off(0)),
        |shared| *shared = shared.slice(1..1),
        |shared| *shared = shared.slice_ref(&[]),
    ];
    for (number, empty) in emptied.into_iter().enumerate() {
        let kept = of_heap(b"abc");
        let mut other = kept.clone();
        assert!(!kept.is_unique());
        empty(&mut other);
        assert!(other.is_empty() && other.is_static(), "way {number}");
        assert!(kept.is_unique(), "way {number} keeps the buffer in use");
    }
    let view = HeapPool::new().acquire(100).expect("room").freeze();
    let kept = view.clone();
    assert!(SharedBytes::from(view).is_static());
    assert!(kept.try_into_mut().is_ok(), "the empty handle holds the buffer");
}

#[test]
fn back_to_its_strategy_alone() {
    let shared = of_heap(b"abc");
    let shared = shared.downcast::<NoLease>().expect_err("another strategy's");
    let clone = shared.clone();
    let view = shared.downcast::<HeapLease>().expect("a heap pool's");
    let view = view.try_into_mut().expect_err("there is a clone");
    drop(clone);
    assert_eq!(view.try_into_mut().expect("the only one"), b"abc");
    for other in [SharedBytes::from(vec![1]), SharedBytes::from_static(b"a"), SharedBytes::new()] {
        assert_eq!(other.clone().downcast::<HeapLease>().expect_err("no pool's"), other);
    }
}

#[test]
fn compared_hashed_and_shown() {
    let shared = of_heap(b"abc");
    assert_eq!(shared, b"abc");
    assert_eq!(shared, "abc");
    assert_eq!(*b"abc", shared);
    assert_eq!(b"abc", shared);
    assert_eq!(b"abc"[..], shared);
    assert_eq!("abc", shared);
    assert_eq!(vec![b'a', b'b', b'c'], shared);
    assert_eq!(SharedBytes::from(String::from("abc")), shared);
    assert_eq!(SharedBytes::from(Box::<[u8]>::from(*b"abc")), shared);
    assert_eq!("abc".bytes().collect::<SharedBytes>(), shared);
    assert_eq!(SharedBytes::copy_from_slice(b"abc"), shared);
    let map = HashMap::from([(shared.clone(), 1)]);
    assert_eq!(map.get(&b"abc"[..]), Some(&1));
    let set = BTreeSet::from([of_heap(b"b"), "a".into(), vec![b'c'].into()]);
    assert!(set.iter().flatten().eq(b"abc"));
    assert_eq!(format!("{:?}", of_heap(b"a\"\n\xff")), r#"b"a\"\n\xff""#);
    assert_eq!(format!("{:?}", of_heap(&[b'x'; 65])), format!("b\"{}\"...", "x".repeat(64)));
}

/// What a pool wipes is not printed, whatever the handle's size.
#[cfg(feature = "wipe")]
#[test]
fn secrets_are_not_shown() {
    let mut buf = HeapPool::new().with_wipe(true).acquire(6).expect("room");
    buf.extend_from_slice(b"secret").expect("room");
    let shared = SharedBytes::from(buf);
    assert_eq!(format!("{:?}", shared.slice(1..)), "SharedBytes { len: 5, .. }");
}

#[test]
fn read_front_first() {
    let mut shared = of_heap(b"one\ntwo");
    let mut line = String::new();
    shared.read_line(&mut line).expect("it is text");
    assert_eq!((line.as_str(), &shared[..]), ("one\n", &b"two"[..]));
    let mut two = [0; 2];
    shared.read_exact(&mut two).expect("there are three");
    assert_eq!((&two, ByteSource::peek(&mut shared)), (b"tw", &b"o"[..]));
    ByteSource::consume(&mut shared, 1);
    assert_eq!(Read::read(&mut shared, &mut two).expect("never fails"), 0);
}

#[test]
fn bounds_are_checked() {
    let fails: [fn(SharedBytes); 6] = [
        |mut shared| shared.consume(4),
        |mut shared| drop(shared.split_to(4)),
        |mut shared| drop(shared.split_off(4)),
        |shared| drop(shared.slice(..4)),
        |shared| drop(shared.slice(4..)),
        |shared| drop(shared.slice_ref(b"elsewhere")),
    ];
    for (number, fails) in fails.into_iter().enumerate() {
        for shared in [of_heap(b"abc"), SharedBytes::from_static(b"abc")] {
            panic::catch_unwind(|| fails(shared)).expect_err(&format!("way {number} out of the bytes"));
        }
    }
    let (long, short) = (of_heap(b"abcdef"), of_heap(b"abcdef").slice(1..3));
    let around = panic::catch_unwind(|| drop(short.slice_ref(&long[..2])));
    around.expect_err("another's bytes");
}

/// What is static is not copied, and counts nothing.
#[test]
fn of_static_bytes() {
    static TEXT: [u8; 6] = *b"static";
    for shared in [SharedBytes::from(&TEXT), SharedBytes::from(&TEXT[..]), SharedBytes::from_static(&TEXT)] {
        assert_eq!((shared.as_ptr(), shared.is_static(), &shared[..]), (TEXT.as_ptr(), true, &TEXT[..]));
        assert!(!shared.is_empty());
    }
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn read_by_embedded_io() {
    use embedded_io::{BufRead, Read};
    let mut shared = of_heap(b"abcdef");
    let mut two = [0; 2];
    assert_eq!((Read::read(&mut shared, &mut two), two), (Ok(2), *b"ab"));
    assert_eq!(BufRead::fill_buf(&mut shared), Ok(&b"cdef"[..]));
    BufRead::consume(&mut shared, 3);
    assert_eq!(shared, b"f");
    assert_eq!((Read::read(&mut shared, &mut two), two[0]), (Ok(1), b'f'));
    assert!(shared.is_static(), "what was read to its end keeps no buffer");
    assert_eq!(Read::read(&mut shared, &mut two), Ok(0));
}

#[cfg(feature = "serde")]
#[test]
fn written_by_serde() {
    let shared = of_heap(b"ab");
    assert_eq!(serde_json::to_string(&shared.slice(1..)).expect("numbers"), "[98]");
}

#[cfg(feature = "bytes")]
#[test]
fn bytes_of_it() {
    use bytes::{Buf, Bytes};

    static TEXT: &[u8] = b"static";
    let shared = of_heap(b"abcdef");
    let bytes = Bytes::from(shared.clone());
    assert_eq!(bytes.as_ptr(), shared.as_ptr(), "no copy");
    let of_static = Bytes::from(SharedBytes::from_static(TEXT));
    assert_eq!((of_static.as_ptr(), of_static.is_unique()), (TEXT.as_ptr(), false));
    drop((shared, of_static));
    let mut back = SharedBytes::from(bytes.clone());
    assert_eq!(back.as_ptr(), bytes.as_ptr(), "no copy");
    drop(bytes);
    assert_eq!(back.get_u16(), u16::from_be_bytes(*b"ab"));
    let rest = back.as_ptr();
    let front = back.copy_to_bytes(3);
    assert_eq!((&front[..], front.as_ptr(), &back[..]), (&b"cde"[..], rest, &b"f"[..]), "no copy");
}
