//! What a buffer and its views are beyond what every strategy's suite looks at.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read, Write};

use bufcore::{
    AcquireError, Buf, BufferPool, ByteSink, ByteSource, HeapLease, HeapPool, NoFallback, ReserveError,
    SharedBytes, Writer,
};

fn buf(capacity: usize, content: &[u8]) -> Buf<HeapLease> {
    let mut buf = HeapPool::new().acquire(capacity).expect("the heap has room");
    buf.extend_from_slice(content).expect("it fits");
    buf
}

/// Says that it read more than it was lent.
struct Liar;

impl Read for Liar {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(room.len() + 1)
    }
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // A reader may have written before it failed.
        room.fill(0xEE);
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

#[test]
fn writing_through_std_io() {
    let mut target = buf(8, b"ab");
    assert_eq!(target.write(b"cdefghij").expect("short writes are none"), 6);
    assert_eq!(&target[..], b"abcdefgh");
    assert_eq!(target.write(b"x").expect("a full buffer takes nothing"), 0);
    assert_eq!(target.write_all(b"x").expect_err("no room").kind(), io::ErrorKind::StorageFull);
    let mut target = buf(8, b"");
    write!(target, "{}-ab", 12).expect("it fits");
    assert_eq!(&target[..], b"12-ab");
}

#[test]
fn reading_from_std_io() {
    let mut target = buf(8, b"ab");
    assert_eq!(target.read_from(&mut &b"cde"[..]).expect("bytes"), 3);
    assert_eq!(target.read_from(&mut io::empty()).expect("the end"), 0);
    assert_eq!(target.read_from(&mut Failing).expect_err("fails").kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(target.read_from(&mut Liar).expect_err("lies").kind(), io::ErrorKind::InvalidData);
    assert_eq!(&target[..], b"abcde");
    let error = target.read_exact_from(&mut &b"fg"[..], 3).expect_err("too few");
    assert_eq!((error.kind(), &target[..]), (io::ErrorKind::UnexpectedEof, &b"abcde"[..]));
    let error = target.read_exact_from(&mut &b"fghi"[..], 4).expect_err("no room");
    assert_eq!((error.kind(), &target[..]), (io::ErrorKind::StorageFull, &b"abcde"[..]));
    target.read_exact_from(&mut &b"fgh"[..], 3).expect("it fits");
    assert_eq!((&target[..], target.spare_capacity()), (&b"abcdefgh"[..], 0));
}

#[test]
fn streams() {
    let mut sink = buf(4, b"");
    assert_eq!(sink.reserve(5), Err(ReserveError { requested: 5, available: 4 }));
    sink.reserve(3).expect("room").copy_from_slice(b"abc");
    assert!(sink.is_empty(), "nothing counts before it is committed");
    sink.commit(2);
    assert_eq!(sink.peek(), b"ab");
    sink.consume(1);
    assert_eq!(sink.peek(), b"b");
    assert_eq!(sink.capacity(), 3);
    for (source_len, room) in [(0, 5), (5, 0), (3, 5), (5, 3), (5, 5)] {
        let bytes = vec![7; source_len];
        let mut source = &bytes[..];
        let mut sink = buf(room, b"");
        let moved = bufcore::copy(&mut source, &mut sink);
        assert_eq!((moved, source.len(), sink.len()), (source_len.min(room), source_len - moved, moved));
    }
}

#[test]
fn comparing_hashing_printing() {
    let (a, b) = (buf(8, b"same"), buf(16, b"same"));
    assert!(a == b && a == b"same"[..] && a == "same" && a != "else");
    let view = b.freeze();
    assert!(view == "same" && view < buf(8, b"tame").freeze() && a == view);
    assert!(HashSet::from([a]).contains(&b"same"[..]));
    assert!(BTreeSet::from([view.clone()]).contains(&b"same"[..]));
    assert_eq!(
        view.into_iter().map(|&byte| usize::from(byte)).sum::<usize>(),
        b"same".iter().map(|&b| usize::from(b)).sum::<usize>()
    );
    assert_eq!(
        format!("{:?}", buf(8, b"a\"\n\0\xff'")),
        r#"Buf { len: 6, capacity: 8, bytes: b"a\"\n\0\xff'" }"#
    );
    assert_eq!(format!("{:?}", buf(8, b"ab").freeze()), r#"Frozen { len: 2, bytes: b"ab" }"#);
    let long = buf(70, &[b'x'; 65]);
    assert_eq!(
        format!("{long:?}"),
        format!(r#"Buf {{ len: 65, capacity: 70, bytes: b"{}"... }}"#, "x".repeat(64))
    );
    assert_eq!(format!("{:?}", buf(64, &[b'x'; 64]).freeze()).matches('x').count(), 64);
    assert_eq!(format!("{:x} {:#X}", buf(2, b"\x0f\xa0"), buf(2, b"\x0f\xa0").freeze()), "0fa0 0x0FA0");
    assert_eq!(format!("{:X}", SharedBytes::from(buf(2, b"\x0f\xa0").freeze())), "0FA0");
}

#[test]
fn zeroed_and_rejected() {
    let zeroed = HeapPool::new().acquire_zeroed(100).expect("the heap has room");
    assert_eq!(zeroed[..], [0; 100]);
    assert!(matches!(NoFallback.acquire(1), Err(AcquireError::TooLarge { requested: 1, limit: 0 })));
    assert_eq!((NoFallback.max_capacity(), NoFallback.stats().acquired), (0, 0));
}

/// The heap's memory is zeroed, whoever had it before.
#[test]
fn heap_memory_comes_zeroed() {
    let mut pool = HeapPool::new();
    for capacity in [1, 100, 1023, 1024, 1025, 5000] {
        for _ in 0..10 {
            let mut buf = pool.acquire(capacity).expect("the heap has room");
            assert!(buf.spare_mut().iter().all(|byte| *byte == 0), "{capacity}");
            buf.spare_mut().fill(0xff);
        }
    }
}

/// A view that is the only one again can be filled up to the end of its memory, and a cut-off end
/// comes back with it.
#[test]
fn thawing() {
    let mut view = buf(16, b"header body").freeze();
    let body = view.split_off(7);
    assert!(!view.is_unique());
    let view = view.try_into_mut().expect_err("the body shares the memory");
    drop(body);
    let mut header = view.try_into_mut().expect("the only view");
    assert_eq!((&header[..], header.capacity()), (&b"header "[..], 16));
    header.extend_from_slice(b"new body!").expect("nobody else has the rest");
    assert_eq!(&header[..], b"header new body!");
}

#[cfg(feature = "bytes")]
#[test]
fn the_bytes_crate() {
    use bytes::{BufMut, Bytes};
    let mut target = buf(8, b"ab");
    assert_eq!(target.remaining_mut(), 6);
    target.put_u16(0x6364);
    target.put_slice(b"ef");
    let start = target.as_ptr();
    let shared = Bytes::from(target);
    assert_eq!((&shared[..], shared.as_ptr()), (&b"abcdef"[..], start));
    let part = shared.slice(2..4);
    drop(shared);
    assert_eq!(&part[..], b"cd");
    let view = buf(4, b"view").freeze();
    let clone = view.clone();
    assert_eq!(Bytes::from(view), clone[..]);
    assert!(clone.is_unique(), "the bytes were dropped");
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn the_embedded_io_crate() {
    use embedded_io::{Error, ErrorKind, Write};
    let mut target = buf(4, b"ab");
    assert_eq!(Write::write(&mut target, b"cde").expect("room for two"), 2);
    assert_eq!(Write::write(&mut target, b"").expect("nothing is always written"), 0);
    let error = Write::write(&mut target, b"e").expect_err("full");
    assert_eq!((error.kind(), &target[..]), (ErrorKind::WriteZero, &b"abcd"[..]));
    Write::flush(&mut target).expect("nothing to flush");
}

#[cfg(feature = "track")]
#[test]
fn the_leak_tracker() {
    let mut pool = HeapPool::new();
    let (first, line) = (pool.acquire(10).expect("room"), line!());
    let second = pool.acquire_zeroed(20).expect("room").freeze();
    let out = pool.outstanding();
    assert_eq!(out.iter().map(|entry| entry.capacity).collect::<Vec<_>>(), [10, 20]);
    assert_eq!((out[0].location.file(), out[0].location.line()), (file!(), line));
    assert!(out[0].to_string().contains("10 bytes acquired at"));
    let clone = second.clone();
    drop((first, second));
    assert_eq!(pool.outstanding().len(), 1, "a view is out");
    let thawed = clone.try_into_mut().expect("the only view");
    assert_eq!(pool.outstanding().len(), 1);
    std::thread::spawn(move || drop(thawed)).join().expect("dropping does not panic");
    assert!(pool.outstanding().is_empty());
}

/// A pool that refuses everything serves no bytes, as all pools do.
#[test]
fn reject_serves_no_bytes() {
    let empty = NoFallback.acquire(0).expect("no bytes are always there");
    assert_eq!((empty.len(), empty.capacity()), (0, 0));
    let view = empty.freeze();
    assert_eq!(view.clone().slice(..).len(), 0);
    assert_eq!(view.try_into_mut().expect("the only view").capacity(), 0);
    assert_eq!(NoFallback.acquire_zeroed(0).expect("no bytes are always there").len(), 0);
    assert_eq!(NoFallback.acquire(1).map(drop), Err(AcquireError::TooLarge { requested: 1, limit: 0 }));
}

/// A buffer is a slice to whatever asks for one.
#[test]
fn as_slices() {
    use std::borrow::{Borrow, BorrowMut};
    let mut target = buf(8, b"abc");
    AsMut::<[u8]>::as_mut(&mut target)[0] = b'x';
    BorrowMut::<[u8]>::borrow_mut(&mut target)[1] = b'y';
    assert_eq!((AsRef::<[u8]>::as_ref(&target), Borrow::<[u8]>::borrow(&target)), (&b"xyc"[..], &b"xyc"[..]));
    for byte in &mut target {
        *byte = byte.to_ascii_uppercase();
    }
    assert!((&target).into_iter().eq(b"XYC"));
    let view = bufcore::Frozen::from(target);
    assert_eq!(AsRef::<[u8]>::as_ref(&view), b"XYC");
    assert!(HashSet::from([view.clone()]).contains(&b"XYC"[..]), "it hashes as its bytes");
}

/// Through `&mut`, pools, sinks and sources are what they are themselves.
#[test]
fn by_reference() {
    fn acquires(mut pool: impl BufferPool) -> (usize, usize, Vec<u8>) {
        let mut small = pool.acquire(3).expect("room");
        small.extend_from_slice(b"abc").expect("room");
        pool.grow(&mut small, 7).expect("room");
        pool.shrink(&mut small);
        (small.capacity(), pool.max_capacity(), pool.acquire_zeroed(2).expect("room").to_vec())
    }
    let mut pool = HeapPool::new();
    let limit = pool.max_capacity();
    assert_eq!(acquires(&mut pool), (3, limit, vec![0, 0]));
    assert_eq!(BufferPool::stats(&&mut pool).acquired, if cfg!(feature = "stats") { 3 } else { 0 });

    let mut writer = Writer::new(&mut pool);
    writer.writable(2).expect("room")[..2].copy_from_slice(b"xx");
    writer.commit(2);
    writer.extend_from_slice(b"abcdef").expect("room");
    writer.discard_front(2);
    writer.truncate(4);
    writer.filled_mut()[0] = b'A';
    assert_eq!(writer.filled(), b"Abcd");
    assert_eq!(writer.finish(), b"Abcd");
    assert!(writer.filled().is_empty(), "it was finished");

    fn sinks(mut sink: impl ByteSink) -> Result<(), ReserveError> {
        sink.reserve(2)?.copy_from_slice(b"de");
        sink.commit(2);
        sink.reserve(9).map(drop)
    }
    let mut target = buf(6, b"abc");
    assert_eq!(sinks(&mut target), Err(ReserveError { requested: 9, available: 1 }));
    assert_eq!(target, b"abcde");

    fn sources(mut source: impl ByteSource) -> Vec<u8> {
        source.consume(2);
        source.peek().to_vec()
    }
    assert_eq!(sources(&mut target), b"cde");
    let mut view = target.freeze();
    assert_eq!((sources(&mut view), view), (b"e".to_vec(), buf(1, b"e").freeze()));
}

/// Through `std::io`'s traits a buffer has nothing to flush, and a view is read in place.
#[test]
fn flushing_and_reading_in_place() {
    let mut target = buf(8, b"one\ntwo");
    Write::flush(&mut target).expect("nothing to flush");
    let mut view = target.freeze();
    assert_eq!(io::BufRead::fill_buf(&mut view).expect("never fails"), b"one\ntwo");
    io::BufRead::consume(&mut view, 4);
    assert_eq!(view, "two");
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| io::BufRead::consume(&mut view, 4)))
        .expect_err("over the length");
    assert_eq!(view, "two");
    #[cfg(feature = "embedded-io-0_7")]
    {
        assert_eq!(embedded_io::BufRead::fill_buf(&mut view), Ok(&b"two"[..]));
        embedded_io::BufRead::consume(&mut view, 2);
        assert_eq!(view, "o");
    }
}

/// A pool's own methods are those of its traits.
#[test]
fn the_own_methods_of_a_pool() {
    let mut pool = HeapPool::new();
    let mut small = pool.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    pool.grow(&mut small, 7).expect("room");
    assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 10));
    let limit = pool.max_capacity();
    let refused = pool.grow(&mut small, limit + 1).expect_err("too large");
    assert_eq!(refused, AcquireError::TooLarge { requested: limit + 1, limit: limit - 3 });
    assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 10));
}

#[test]
fn ordered_as_their_bytes() {
    let mut bufs = [buf(9, b"b"), buf(3, b"ab"), buf(5, b"a")];
    bufs.sort();
    assert_eq!(bufs, [buf(1, b"a"), buf(2, b"ab"), buf(1, b"b")]);
    let mut views = bufs.map(Buf::freeze);
    views.sort_by(|a, b| b.cmp(a));
    assert_eq!(views.map(|view| view[0]), *b"baa");
}
