//! Extendable buffers and frames: grown in place, moved, slid down, forgotten.

use std::io::Write;

use bufcore::{AcquireError, ByteSink, ByteSource};
use bufring::RingPool;

fn ring(capacity: usize) -> RingPool {
    RingPool::new(capacity).expect("settings are right")
}

#[test]
fn a_buffer_grows_in_place() {
    let mut ring = ring(2000);
    let mut buffer = ring.extendable(4).expect("room");
    buffer.extend_from_slice(b"head").expect("room");
    let start = buffer.as_ptr();
    for index in 0..90_u8 {
        buffer.extend_from_slice(&[index; 10]).expect("room");
        assert_eq!(buffer.as_ptr(), start);
    }
    buffer[0] = b'H';
    let fixed = buffer.finish();
    assert_eq!((fixed.len(), fixed.capacity(), &fixed[..4]), (904, 904, &b"Head"[..]));
    assert!(fixed[4..].chunks(10).zip(0..).all(|(chunk, index)| chunk.iter().all(|&byte| byte == index)));
    // The memory that it had beyond is free.
    assert!(ring.acquire(1000).is_ok());
}

/// Over the blocks of buffers that came back, but not over one that is held.
#[test]
fn a_buffer_in_the_way_makes_it_move() {
    let mut ring = ring(2000);
    ring.writable(40).expect("room").fill(1);
    let first = ring.filled().as_ptr();
    let small = [(); 4].map(|()| ring.acquire(48).expect("room"));
    let mut held = ring.acquire(48).expect("room");
    held.resize(48, 9).expect("asked for");
    drop(small);
    ring.writable(160).expect("room").fill(1);
    assert_eq!(ring.filled().as_ptr(), first, "it grew over what came back");
    ring.writable(200).expect("room").fill(2);
    assert_ne!(ring.filled().as_ptr(), first, "it moved");
    let fixed = ring.detach().expect("never fails");
    assert_eq!([&fixed[..200], &fixed[200..]], [[1; 200], [2; 200]]);
    assert_eq!(held[..], [9; 48]);
    // Where it was is free again.
    let again: Vec<_> = std::iter::from_fn(|| ring.acquire(200).ok()).collect();
    assert!(again.iter().any(|buf| buf.as_ptr() == first));
}

/// Bytes that overlap where they go.
#[test]
fn a_slide_over_itself() {
    let mut ring = ring(1000);
    let front = ring.acquire(100).expect("room");
    let bytes: Vec<u8> = (0..=255).cycle().take(800).collect();
    ring.writable(800).expect("room").copy_from_slice(&bytes);
    drop(front);
    ring.writable(150).expect("room for all, when it slides").fill(7);
    assert_eq!(ring.filled()[..800], bytes);
    assert_eq!(ring.filled()[800..], [7; 150]);
}

#[test]
fn what_is_refused_leaves_the_bytes() {
    let mut ring = ring(500);
    let limit = ring.capacity();
    let mut buffer = ring.extendable(10).expect("room");
    buffer.extend_from_slice(&[1; 400]).expect("room");
    let available = limit - 400;
    assert_eq!(
        buffer.extend_from_slice(&[2; 200]),
        Err(AcquireError::TooLarge { requested: 200, limit: available })
    );
    let error = buffer.reserve(usize::MAX).expect_err("too much");
    assert_eq!((error.requested, error.available), (usize::MAX, available));
    // A write takes what there is room for, and says so.
    assert_eq!(buffer.write(&[3; 300]).expect("a short write is no error"), available);
    assert_eq!(buffer.write(&[3; 300]).expect("a short write is no error"), 0);
    assert!(buffer.write_all(&[3]).is_err());
    let fixed = buffer.finish();
    assert!(fixed[..400] == [1; 400] && fixed[400..].iter().all(|&byte| byte == 3));
    assert_eq!(fixed.len(), limit);
}

/// In a ring that is full, a refusal is for now, and the bytes stay as well.
#[test]
fn what_is_exhausted_leaves_the_bytes() {
    let mut ring = ring(1000);
    let mut held = ring.acquire(400).expect("room");
    held.resize(400, 5).expect("asked for");
    let exhausted = |error| matches!(error, AcquireError::Exhausted { requested: 700, .. });
    let mut buffer = ring.extendable(100).expect("room");
    buffer.extend_from_slice(&[6; 100]).expect("room");
    assert!(buffer.extend_from_slice(&[7; 700]).is_err_and(exhausted));
    assert_eq!(buffer[..], [6; 100]);
    buffer.extend_from_slice(&[8; 400]).expect("room");
    let fixed = buffer.finish();
    assert_eq!([&fixed[..100], &fixed[100..]], [&[6; 100][..], &[8; 400]]);
    drop(fixed);
    // The same for a frame of the ring.
    ring.writable(100).expect("room").fill(6);
    assert!(ring.writable(700).is_err_and(exhausted));
    assert_eq!(ring.filled(), [6; 100]);
    assert_eq!(held[..], [5; 400]);
    drop(held);
    ring.writable(700).expect("room again").fill(9);
    assert_eq!((&ring.filled()[..100], &ring.filled()[100..]), (&[6; 100][..], &[9; 700][..]));
}

#[test]
fn reserve_then_commit() {
    let mut ring = ring(1000);
    let mut buffer = ring.extendable(0).expect("no bytes");
    assert!(buffer.is_empty() && buffer.spare_capacity() == 0);
    buffer.reserve(10).expect("room")[..5].copy_from_slice(b"hello");
    assert!(buffer.is_empty(), "nothing counts before it is committed");
    buffer.commit(5);
    let mut source = &b", world"[..];
    assert_eq!(bufcore::copy(&mut source, &mut buffer), 7);
    assert!(source.peek().is_empty());
    assert_eq!(&buffer[..], b"hello, world");
    assert_eq!(&buffer.finish()[..], b"hello, world");
}

#[test]
#[should_panic(expected = "of room")]
fn committing_more_than_there_is_room_for_panics() {
    let mut ring = ring(100);
    let mut buffer = ring.extendable(10).expect("room");
    let room = buffer.spare_capacity();
    buffer.commit(room + 1);
}

#[test]
fn dropped_and_forgotten_ones_cost_nothing() {
    let mut ring = ring(1000);
    let capacity = ring.capacity();
    for round in 0..1000 {
        let mut buffer = ring.extendable(1 + round % 300).expect("room");
        buffer.extend_from_slice(&[1; 500]).expect("room");
        if round % 2 == 0 {
            std::mem::forget(buffer);
        } else {
            drop(buffer);
        }
        if round % 3 == 0 {
            assert!(ring.acquire(capacity).is_ok(), "round {round}");
        }
    }
    std::mem::forget(ring.extendable(10));
    let out = ring.acquire(100).expect("room");
    std::mem::forget(ring.extendable(10));
    drop(ring);
    assert!(out.is_empty());
}

/// An empty one becomes an empty buffer.
#[test]
fn nothing_in_it() {
    let mut ring = ring(100);
    for bytes in [0, 50] {
        let fixed = ring.extendable(bytes).expect("room").finish();
        assert!(fixed.is_empty() && fixed.capacity() == 0);
        let view = fixed.freeze();
        assert!(view.clone().is_empty());
    }
    assert!(ring.acquire(100).is_ok());
}

/// Whole buffers, a frame of the ring, and an extendable buffer, all from one region.
#[test]
fn all_kinds_at_the_same_time() {
    let mut ring = ring(4096);
    ring.writable(2).expect("room").copy_from_slice(b"ab");
    let mut buf = ring.acquire(8).expect("room");
    buf.extend_from_slice(b"12345678").expect("asked for");
    let mut growing = ring.extendable(1).expect("room");
    growing.extend_from_slice(&[4; 1000]).expect("room");
    let grown = growing.finish();
    ring.writable(2).expect("room").copy_from_slice(b"cd");
    drop(buf);
    ring.extend_from_slice(b"ef").expect("room");
    assert_eq!(grown[..], [4; 1000]);
    ring.consume(1);
    assert_eq!(&ring.detach().expect("never fails")[..], b"bcdef");
}

/// Its front is discarded, and the room is there again.
#[test]
fn discarded_fronts_are_used_again() {
    let mut ring = ring(300);
    let capacity = ring.capacity();
    for round in 0..50_u8 {
        ring.writable(200).expect("room").fill(round);
        ring.consume(150);
        assert_eq!(ring.filled(), [round; 50]);
        ring.writable(capacity - 50).expect("what was discarded is free").fill(round + 1);
        assert_eq!(ring.filled()[..50], [round; 50]);
        let len = ring.filled().len();
        ring.consume(len);
        assert!(ring.filled().is_empty());
    }
    assert!(ring.detach().expect("never fails").is_empty());
}

/// What was lent and not committed is wiped as well, wherever the buffer was meanwhile.
#[cfg(feature = "wipe")]
#[test]
fn t11_uncommitted_bytes_are_wiped() {
    for way in 0..5 {
        let mut ring =
            RingPool::builder().capacity(4000).buffers(4).wipe(true).build().expect("settings are right");
        let behind = ring.acquire(1000).expect("room");
        let mut buffer = ring.extendable(100).expect("room");
        buffer.extend_from_slice(b"filled").expect("room");
        buffer.reserve(500).expect("room").fill(0xAA);
        buffer.reserve(90).expect("room").fill(0xBB);
        buffer.commit(10);
        match way {
            0 => drop(buffer),
            1 => drop(buffer.finish()),
            2 => std::mem::forget(buffer),
            3 => {
                buffer.extend_from_slice(&[0xCC; 2400]).expect("room");
                drop(buffer);
            }
            _ => {
                drop(buffer.finish());
                let mut moved = ring.extendable(10).expect("room");
                moved.reserve(600).expect("room").fill(0xDD);
            }
        }
        drop(behind);
        let mut all = ring.acquire(ring.capacity()).expect("nothing is out");
        assert_eq!(all.spare_mut().iter().position(|&byte| byte != 0), None, "way {way}");
    }
}

/// A write larger than what is left takes what is left, whether that was reserved or not.
#[test]
fn writes_are_short_when_the_ring_is_full() {
    let mut ring = ring(100);
    let mut buffer = ring.extendable(0).expect("nothing asked for");
    let large = [7; 1000];
    let n = buffer.write(&large).expect("never an error");
    assert!((100..large.len()).contains(&n), "{n} bytes");
    assert_eq!(buffer.write(b"more").expect("never an error"), 0);
    assert_eq!(&buffer[..], &large[..n]);
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn embedded_writes_are_short_and_then_refused() {
    use embedded_io::{Error, ErrorKind, Write};

    let mut ring = ring(100);
    let mut buffer = ring.extendable(0).expect("nothing asked for");
    let large = [7; 1000];
    let n = Write::write(&mut buffer, &large).expect("some fits");
    assert!((100..large.len()).contains(&n), "{n} bytes");
    let error = Write::write(&mut buffer, b"more").expect_err("it is full");
    assert!(matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::InvalidInput), "{error}");
    assert_eq!(Write::write(&mut buffer, b"").expect("nothing to write"), 0);
    assert_eq!(&buffer[..], &large[..n]);
}

/// Whatever there is room for: a message is in the buffer as a whole, or not at all.
#[test]
fn write_all_is_all_or_nothing() {
    let mut ring = ring(500);
    let limit = ring.capacity();
    let mut buffer = ring.extendable(10).expect("room");
    buffer.write_all(&[1; 400]).expect("room");
    let error = buffer.write_all(&[2; 200]).expect_err("no room for all of it");
    assert_eq!(buffer.len(), 400, "a part was appended");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<AcquireError>());
    assert_eq!(cause, Some(&AcquireError::TooLarge { requested: 200, limit: limit - 400 }));
    buffer.write_all(&vec![3; limit - 400]).expect("just so much");
    buffer.write_all(b"").expect("nothing always fits");
    assert_eq!(&buffer.finish()[398..402], [1, 1, 3, 3]);
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn write_all_of_embedded_io_is_all_or_nothing() {
    let mut ring = ring(500);
    let limit = ring.capacity();
    let mut buffer = ring.extendable(10).expect("room");
    embedded_io::Write::write_all(&mut buffer, &[1; 400]).expect("room");
    let refused = embedded_io::Write::write_all(&mut buffer, &[2; 200]);
    assert_eq!(buffer.len(), 400, "a part was appended");
    assert_eq!(refused, Err(AcquireError::TooLarge { requested: 200, limit: limit - 400 }));
    assert_eq!(embedded_io::Write::write_all(&mut buffer, b""), Ok(()));
}

#[cfg(feature = "embedded-io-async-0_7")]
#[test]
fn the_async_writer_does_not_wait() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use embedded_io_async::Write;

    let mut ring = ring(500);
    let mut buffer = ring.extendable(10).expect("room");
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(pin!(Write::write_all(&mut buffer, &[1; 400])).poll(&mut cx), Poll::Ready(Ok(())));
    assert!(matches!(pin!(Write::write_all(&mut buffer, &[2; 200])).poll(&mut cx), Poll::Ready(Err(_))));
    assert!(matches!(pin!(Write::write(&mut buffer, b"ab")).poll(&mut cx), Poll::Ready(Ok(2))));
    assert_eq!(pin!(Write::flush(&mut buffer)).poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(&buffer[399..], [1, b'a', b'b']);
}

/// Through the traits of writers there is nothing to flush, and short writes say how short.
#[test]
fn flushing_and_short_writes() {
    let mut ring = ring(500);
    let capacity = ring.capacity();
    let mut buffer = ring.extendable(4).expect("room");
    Write::flush(&mut buffer).expect("nothing to flush");
    let written = Write::write(&mut buffer, &[1; 5000]).expect("a short write is none that fails");
    assert!((1..=capacity).contains(&written), "{written}");
    assert_eq!(buffer.len(), written);
    assert_eq!(Write::write(&mut buffer, &[]).expect("nothing is always written"), 0);
    #[cfg(feature = "embedded-io-0_7")]
    {
        embedded_io::Write::flush(&mut buffer).expect("nothing to flush");
        let more =
            std::iter::from_fn(|| embedded_io::Write::write(&mut buffer, &[2; 5000]).ok()).sum::<usize>();
        assert_eq!(buffer.len(), written + more);
        let full = embedded_io::Write::write(&mut buffer, &[2]).expect_err("full");
        assert!(matches!(full, AcquireError::Exhausted { .. } | AcquireError::TooLarge { .. }), "{full}");
    }
    assert_eq!(buffer[..written], vec![1; written]);
}

/// A ring's own methods are those of the pools' traits, none of which is in scope here.
#[test]
fn the_own_methods_of_a_ring() {
    let mut ring = ring(2000);
    let mut small = ring.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    ring.grow(&mut small, 100).expect("room");
    assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 100));
    ring.extend_from_slice(b"abcdef").expect("room");
    ring.truncate(9);
    assert_eq!(ring.filled(), b"abcdef");
    ring.consume(1);
    ring.truncate(3);
    ring.filled_mut()[0] = b'B';
    assert_eq!(ring.detach().expect("never fails"), b"Bcd");
    ring.truncate(0);
    assert!(ring.filled().is_empty());
}
