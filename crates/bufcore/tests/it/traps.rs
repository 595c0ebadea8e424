//! What compiles for people who come from `bytes`, `Vec` and `std::io`, and means what they expect.

use std::io::{self, Read, Write};

use bufcore::{Buf, HeapLease, HeapPool, ReserveError};

fn buf(capacity: usize, content: &[u8]) -> Buf<HeapLease> {
    let mut buf = HeapPool::new().acquire(capacity).expect("the heap has room");
    buf.extend_from_slice(content).expect("it fits");
    buf
}

/// A reader that must not be asked.
struct Untouchable;

impl Read for Untouchable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("read with no room")
    }
}

/// What an error of `std::io` says about room.
#[track_caller]
fn room(error: &io::Error) -> ReserveError {
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    let inner = error.get_ref().expect("an error within");
    assert!(inner.source().is_none());
    *inner.downcast_ref().expect("of this crate")
}

/// A loop of `while buf.read_from(&mut socket)? > 0` ends at the end of the stream only.
#[test]
fn a_full_buffer_is_not_the_end() {
    for mut full in [buf(4, b"abcd"), buf(0, b"")] {
        let before = full.to_vec();
        let error = full.read_from(&mut &b"more"[..]).expect_err("there is no room");
        assert_eq!(room(&error), ReserveError { requested: 1, available: 0 });
        full.read_from(&mut Untouchable).expect_err("there is no room");
        // Nor is a full one at the end: nobody looked.
        full.read_from(&mut io::empty()).expect_err("there is no room");
        assert_eq!(full[..], before);
    }
    let mut target = buf(4, b"abc");
    assert_eq!(target.read_from(&mut io::empty()).expect("the end"), 0);
    assert_eq!(target.read_from(&mut &b"de"[..]).expect("room for one"), 1);
    let error = target.read_exact_from(&mut Untouchable, 1).expect_err("full");
    assert_eq!(room(&error), ReserveError { requested: 1, available: 0 });
    target.read_exact_from(&mut &b""[..], 0).expect("nothing fits");
}

/// All or nothing, as `extend_from_slice`.
#[test]
fn what_does_not_fit_is_not_begun() {
    let mut target = buf(4, b"ab");
    let error = target.write_all(b"cde").expect_err("one too many");
    assert_eq!((room(&error), &target[..]), (ReserveError { requested: 3, available: 2 }, &b"ab"[..]));
    target.write_all(b"cd").expect("it fits");
    assert_eq!(target.write(b"e").expect("as of a full slice"), 0);
}

/// A handle without bytes keeps nobody from writing, and no buffer in use.
#[test]
fn empty_views_hold_nothing() {
    let view = || buf(16, b"header body").freeze();
    let alone = |view: bufcore::Frozen<HeapLease>, len: usize, capacity: usize| {
        let thawed = view.try_into_mut().expect("no other view has bytes");
        assert_eq!((thawed.len(), thawed.capacity()), (len, capacity));
    };
    for at in [0, 5, 11] {
        let whole = view();
        let empty = whole.slice(at..at);
        let of_empty = (empty.clone(), empty.slice(..));
        alone(whole, 11, 16);
        assert!(empty.is_empty() && of_empty.0.is_empty() && of_empty.1.is_empty());
    }
    let mut whole = view();
    let front = whole.split_to(0);
    let back = whole.split_off(11);
    assert!(front.is_empty() && back.is_empty());
    alone(whole, 11, 16);

    // What is left of a view that was taken whole.
    let mut rest = view();
    alone(rest.split_to(11), 11, 16);
    let mut rest_too = view();
    alone(rest_too.split_off(0), 11, 16);
    assert!(rest.is_empty() && rest_too.is_empty());
    assert!(rest.split_to(0).is_empty() && rest_too.split_off(0).is_empty());

    // What was read to its end.
    let mut read = view();
    let whole = read.clone();
    read.consume(11);
    alone(whole, 11, 16);
    let mut read = view();
    let whole = read.clone();
    io::copy(&mut read, &mut io::sink()).expect("a view is read");
    alone(whole, 11, 16);
    assert!(read.is_empty());
}

/// A buffer without bytes that is frozen comes back whole.
#[test]
fn empty_buffers_thaw() {
    let view = buf(16, b"").freeze();
    let clone = view.clone();
    assert_eq!(view.try_into_mut().expect("the clone has nothing").capacity(), 16);
    assert!(clone.is_empty());
}
