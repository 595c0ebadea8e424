//! Buffers that grow: in place, and moved.

use std::io::Write;

use bufcore::{AcquireError, ByteSink, ByteSource, Region, Writer};
use bufring::{Builder, RingPool};

fn ring(capacity: usize) -> RingPool {
    RingPool::new(capacity).expect("settings are right")
}

#[test]
fn a_buffer_grows_in_place() {
    let mut ring = ring(2000);
    let mut writer = Writer::with_capacity(&mut ring, 4);
    writer.extend_from_slice(b"head").expect("room");
    let start = writer.filled().as_ptr();
    for index in 0..90_u8 {
        writer.extend_from_slice(&[index; 10]).expect("room");
        assert_eq!(writer.filled().as_ptr(), start);
    }
    writer.filled_mut()[0] = b'H';
    let fixed = writer.finish();
    assert_eq!((fixed.len(), fixed.capacity(), &fixed[..4]), (904, 904, &b"Head"[..]));
    assert!(fixed[4..].chunks(10).zip(0..).all(|(chunk, index)| chunk.iter().all(|&byte| byte == index)));
    // The memory that it had beyond is free.
    assert!(ring.acquire(1000).is_ok());
}

/// Over the blocks of buffers that came back, but not over one that is held.
#[test]
fn a_buffer_in_the_way_makes_it_move() {
    let mut ring = ring(2000);
    let mut buf = ring.acquire(40).expect("room");
    buf.resize(40, 1).expect("asked for");
    let first = buf.as_ptr();
    let small = [(); 4].map(|()| ring.acquire(48).expect("room"));
    let mut held = ring.acquire(48).expect("room");
    held.resize(48, 9).expect("asked for");
    drop(small);
    ring.grow(&mut buf, 160).expect("room");
    assert_eq!(buf.as_ptr(), first, "it grew over what came back");
    buf.resize(200, 1).expect("room");
    ring.grow(&mut buf, 200).expect("room");
    assert_ne!(buf.as_ptr(), first, "it moved");
    buf.resize(400, 2).expect("room");
    assert_eq!([&buf[..200], &buf[200..]], [[1; 200], [2; 200]]);
    assert_eq!(held[..], [9; 48]);
    // Where it was is free again.
    let again: Vec<_> = std::iter::from_fn(|| ring.acquire(200).ok()).collect();
    assert!(again.iter().any(|buf| buf.as_ptr() == first));
}

/// A ring gives a buffer twice its bytes, and the rest stays with the others.
#[test]
fn what_grows_leaves_room_for_others() {
    let mut ring = ring(4000);
    let mut buf = ring.acquire(100).expect("room");
    buf.resize(100, 1).expect("asked for");
    ring.grow(&mut buf, 1).expect("room in place");
    assert!((200..300).contains(&buf.capacity()), "{}", buf.capacity());
    assert!(ring.acquire(3000).is_ok());
    buf.truncate(10);
    ring.shrink(&mut buf);
    assert_eq!((&buf[..], buf.capacity()), (&[1; 10][..], 10));
    assert!(ring.acquire(3900).is_ok());
}

#[test]
fn what_is_refused_leaves_the_bytes() {
    let mut ring = ring(500);
    let limit = ring.capacity();
    let mut writer = Writer::with_capacity(&mut ring, 10);
    writer.extend_from_slice(&[1; 400]).expect("room");
    let available = limit - 400;
    assert_eq!(
        writer.extend_from_slice(&[2; 200]),
        Err(AcquireError::TooLarge { requested: 200, limit: available })
    );
    let error = writer.reserve(usize::MAX).expect_err("too much");
    assert_eq!((error.requested, error.available), (usize::MAX, available));
    assert!(writer.write_all(&[3; 300]).is_err());
    writer.write_all(&vec![3; available]).expect("just so much");
    assert!(writer.write_all(&[3]).is_err());
    let fixed = writer.finish();
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
    let mut writer = Writer::new(&mut ring);
    writer.extend_from_slice(&[6; 100]).expect("room");
    assert!(writer.extend_from_slice(&[7; 700]).is_err_and(exhausted));
    assert_eq!(writer.filled(), [6; 100]);
    writer.extend_from_slice(&[8; 400]).expect("room");
    let fixed = writer.finish();
    assert_eq!([&fixed[..100], &fixed[100..]], [&[6; 100][..], &[8; 400]]);
    drop(fixed);
    assert_eq!(held[..], [5; 400]);
}

#[test]
fn reserve_then_commit() {
    let mut ring = ring(1000);
    let mut writer = Writer::new(&mut ring);
    writer.reserve(10).expect("room")[..5].copy_from_slice(b"hello");
    assert!(writer.filled().is_empty(), "nothing counts before it is committed");
    writer.commit(5);
    let mut source = &b", world"[..];
    assert_eq!(bufcore::copy(&mut source, &mut writer), 7);
    assert!(source.peek().is_empty());
    assert_eq!(writer.filled(), b"hello, world");
    assert_eq!(writer.finish(), "hello, world");
}

#[test]
#[should_panic(expected = "of room")]
fn committing_more_than_there_is_room_for_panics() {
    let mut ring = ring(100);
    let mut writer = Writer::new(&mut ring);
    let room = writer.writable(10).expect("room").len();
    writer.commit(room + 1);
}

/// A writer that is dropped lets its bytes go; one without bytes becomes an empty buffer.
#[test]
fn dropped_and_empty_ones_cost_nothing() {
    let mut ring = ring(1000);
    let capacity = ring.capacity();
    for round in 0..1000 {
        let mut writer = Writer::with_capacity(&mut ring, 1 + round % 300);
        writer.extend_from_slice(&[1; 500]).expect("room");
        if round % 2 == 0 {
            writer.truncate(0);
            let nothing = writer.finish();
            assert_eq!((nothing.len(), nothing.capacity()), (0, 0));
            assert!(nothing.freeze().clone().is_empty());
        }
        drop(writer);
        assert!(ring.acquire(capacity).is_ok(), "round {round}");
    }
}

/// Whole buffers and one that is being filled, all from one region.
#[test]
fn all_kinds_at_the_same_time() {
    let mut writer = Writer::new(ring(4096));
    writer.extend_from_slice(b"ab").expect("room");
    let mut buf = writer.get_mut().acquire(8).expect("room");
    buf.extend_from_slice(b"12345678").expect("asked for");
    let mut growing = Writer::new(writer.get_mut());
    growing.extend_from_slice(&[4; 1000]).expect("room");
    let grown = growing.finish();
    writer.extend_from_slice(b"cd").expect("room");
    drop(buf);
    writer.extend_from_slice(b"ef").expect("room");
    assert_eq!(grown[..], [4; 1000]);
    writer.discard_front(1);
    assert_eq!(writer.finish(), "bcdef");
}

/// Its front is discarded, and the room is there again.
#[test]
fn discarded_fronts_are_used_again() {
    let mut writer = Writer::new(ring(300));
    let capacity = writer.get_ref().capacity();
    for round in 0..50_u8 {
        writer.extend_from_slice(&[round; 200]).expect("room");
        writer.discard_front(150);
        assert_eq!(writer.filled(), [round; 50]);
        writer.extend_from_slice(&vec![round + 1; capacity - 50]).expect("what was discarded is free");
        assert_eq!(writer.filled()[..50], [round; 50]);
        writer.discard_front(capacity);
        assert!(writer.filled().is_empty());
    }
    assert!(writer.finish().is_empty());
}

/// A buffer of another ring moves to the one that is asked.
#[test]
fn a_buffer_of_another_ring_moves() {
    let (mut here, mut there) = (ring(1000), ring(1000));
    let mut buf = there.acquire(100).expect("room");
    buf.extend_from_slice(b"bytes").expect("asked for");
    there.shrink(&mut buf);
    here.grow(&mut buf, 200).expect("room");
    assert_eq!(buf, "bytes");
    assert!(there.is_idle() && !here.is_idle());
    there.shrink(&mut buf);
    assert_eq!((&buf[..], buf.capacity()), (&b"bytes"[..], 5));
}

/// What was lent and not committed is wiped as well, wherever the buffer was meanwhile.
#[cfg(feature = "wipe")]
#[test]
fn t11_uncommitted_bytes_are_wiped() {
    for way in 0..4 {
        let mut ring =
            RingPool::builder().capacity(4000).buffers(4).wipe(true).build().expect("settings are right");
        let behind = ring.acquire(1000).expect("room");
        let mut writer = Writer::with_capacity(&mut ring, 100);
        writer.extend_from_slice(b"filled").expect("room");
        writer.reserve(500).expect("room").fill(0xAA);
        writer.reserve(90).expect("room").fill(0xBB);
        writer.commit(10);
        match way {
            0 => drop(writer),
            1 => drop(writer.finish()),
            2 => {
                writer.extend_from_slice(&[0xCC; 2400]).expect("room");
                drop(writer);
            }
            _ => {
                drop(writer.finish());
                writer.reserve(600).expect("room").fill(0xDD);
                drop(writer);
            }
        }
        drop(behind);
        let mut all = ring.acquire(ring.capacity()).expect("nothing is out");
        assert_eq!(all.spare_mut().iter().position(|&byte| byte != 0), None, "way {way}");
    }
}

/// Whatever there is room for: a message is in the buffer as a whole, or not at all.
#[test]
fn writes_are_all_or_nothing() {
    let mut ring = ring(500);
    let limit = ring.capacity();
    let mut writer = Writer::with_capacity(&mut ring, 10);
    writer.write_all(&[1; 400]).expect("room");
    let error = writer.write_all(&[2; 200]).expect_err("no room for all of it");
    assert_eq!(writer.filled().len(), 400, "a part was appended");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<AcquireError>());
    assert_eq!(cause, Some(&AcquireError::TooLarge { requested: 200, limit: limit - 400 }));
    writer.write_all(&vec![3; limit - 400]).expect("just so much");
    writer.write_all(b"").expect("nothing always fits");
    Write::flush(&mut writer).expect("nothing to flush");
    assert_eq!(&writer.finish()[398..402], [1, 1, 3, 3]);
}

/// The buffers of a ring that lies within a buffer of another ring are between the ends of that one,
/// and are not its own.
#[test]
fn a_ring_within_a_buffer_keeps_its_blocks() {
    let mut outer = ring(64 << 10);
    let place = Box::leak(Box::new(outer.acquire(8192).expect("room")));
    let mut inner = Builder::new().build_in(Region::from_static(place.spare_mut())).expect("room");
    let mut behind = outer.acquire(100).expect("room");
    let mut buf = inner.acquire(100).expect("room");
    buf.extend_from_slice(b"moves").expect("room");
    let (first, start) = (buf.as_ptr().addr() - 100, buf.as_ptr());
    outer.shrink(&mut buf);
    outer.grow(&mut buf, 200).expect("room");
    assert_eq!(buf, "moves");
    assert_ne!(buf.as_ptr(), start, "it grew over the blocks of the inner ring");
    assert!(!(first..first + 8192).contains(&buf.as_ptr().addr()), "in the outer ring, but in use there");
    assert!(inner.is_idle());
    assert_eq!(inner.acquire(inner.capacity()).expect("all of it").capacity(), inner.capacity());
    // The blocks of the outer ring grow and shrink in place as before, the newest and others.
    let mut newest = outer.acquire(100).expect("room");
    for buf in [&mut newest, &mut behind] {
        let start = buf.as_ptr();
        outer.shrink(buf);
        outer.grow(buf, 16).expect("room in place");
        assert_eq!(buf.as_ptr(), start);
    }
}

/// A ring's own methods are those of the pools' traits, none of which is in scope here.
#[test]
fn the_own_methods_of_a_ring() {
    let mut ring = ring(2000);
    let mut small = ring.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    ring.grow(&mut small, 97).expect("room");
    assert_eq!(&small[..], b"abc");
    assert!(small.capacity() >= 100);
    ring.shrink(&mut small);
    assert_eq!(small.capacity(), 3);
}
