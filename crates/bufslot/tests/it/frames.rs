//! Writers over a slot pool: frames that grow in place, move and spill, with their bytes.

use bufcore::{AcquireError, BufferPool, NoFallback, SplitLease, Writer};
use bufslot::{Mode, SlotPool};

fn pool(capacity: usize, slots: usize) -> SlotPool {
    SlotPool::new(capacity, slots).expect("settings are right")
}

fn rejecting(capacity: usize, slots: usize) -> SlotPool<NoFallback> {
    SlotPool::builder().capacity(capacity).slots(slots).build_with(NoFallback).expect("settings are right")
}

fn write<P: BufferPool<Lease: SplitLease>>(writer: &mut Writer<P>, bytes: &[u8]) {
    writer.extend_from_slice(bytes).expect("room");
}

#[test]
fn a_frame_grows_in_place() {
    let mut writer = Writer::new(pool(1000, 4));
    write(&mut writer, b"head");
    let start = writer.filled().as_ptr();
    for index in 0..90_u8 {
        write(&mut writer, &[index; 10]);
        assert_eq!(writer.filled().as_ptr(), start);
    }
    let frame = writer.finish();
    let pool = writer.get_mut();
    assert_eq!((frame.len(), frame.capacity(), pool.mode()), (904, 904, Mode::Back));
    assert_eq!(&frame[..4], b"head");
    assert!(frame[4..].chunks(10).zip(0..).all(|(chunk, index)| chunk.iter().all(|&byte| byte == index)));
    assert_eq!(pool.slot_of(&frame), Some(0));
    // The memory that it had beyond is free.
    assert!(!pool.acquire(96).expect("room").lease().is_fallback());
}

/// A buffer grows in place over the slot behind it exactly when that is free.
#[test]
fn a_buffer_grows_over_a_free_neighbour_alone() {
    let mut pool = rejecting(1000, 8);
    let mut first = pool.acquire(100).expect("room");
    first.resize(100, 1).expect("asked for");
    let start = first.as_ptr();
    let mut neighbour = pool.acquire(50).expect("room");
    neighbour.resize(50, 9).expect("asked for");
    let behind = pool.acquire(50).expect("room");
    pool.grow(&mut first, 40).expect("room elsewhere");
    assert_ne!(first.as_ptr(), start, "it grew over a live neighbour");
    first.resize(first.capacity(), 2).expect("room");
    assert_eq!(neighbour[..], [9; 50]);
    drop((first, neighbour, behind));
    let mut pool = rejecting(1000, 8);
    let mut first = pool.acquire(100).expect("room");
    let start = first.as_ptr();
    let neighbour = pool.acquire(50).expect("room");
    let _behind = pool.acquire(50).expect("room");
    drop(neighbour);
    pool.grow(&mut first, 150).expect("room in place");
    assert_eq!(first.as_ptr(), start);
    assert_eq!(first.capacity(), 150, "all that is in front of what is held");
}

#[test]
fn what_shrinks_gives_its_room_back() {
    let mut pool = rejecting(1000, 4);
    let mut buf = pool.acquire(1000).expect("all of it");
    buf.resize(300, 3).expect("asked for");
    assert!(pool.acquire(700).is_err());
    pool.shrink(&mut buf);
    let other = pool.acquire(700).expect("what was given back");
    assert_eq!((&buf[..], buf.capacity()), (&[3; 300][..], 300));
    drop(other);
    // All of it: a byte stays, which is the slot's.
    buf.clear();
    pool.shrink(&mut buf);
    assert_eq!(buf.capacity(), 0);
    assert!(pool.acquire(999).is_ok());
}

#[test]
fn a_buffer_in_the_way_makes_the_frame_move() {
    let mut writer = Writer::new(pool(1000, 4));
    write(&mut writer, &[1; 100]);
    let start = writer.filled().as_ptr();
    let mut in_the_way = writer.get_mut().acquire(50).expect("room");
    in_the_way.resize(50, 9).expect("asked for");
    write(&mut writer, &[2; 100]);
    assert_ne!(writer.filled().as_ptr(), start);
    let frame = writer.finish();
    assert!(!frame.lease().is_fallback());
    assert_eq!([&frame[..100], &frame[100..]], [[1; 100], [2; 100]]);
    assert_eq!(in_the_way[..], [9; 50]);
    // Where it was is free again.
    let first = writer.get_mut().acquire(100).expect("room");
    assert!(writer.get_ref().slot_of(&first).is_some());
}

#[test]
fn a_frame_that_fits_nowhere_spills_with_its_bytes() {
    let mut writer = Writer::new(pool(1000, 4));
    write(&mut writer, &[1; 900]);
    write(&mut writer, &[2; 200]);
    assert_eq!(writer.get_ref().mode(), Mode::Fallback);
    write(&mut writer, &[3; 5000]);
    let frame = writer.finish();
    assert!(frame.lease().is_fallback());
    assert_eq!([&frame[..900], &frame[900..1100], &frame[1100..]], [&[1; 900][..], &[2; 200], &[3; 5000]]);
    // The region is free for the next one.
    write(&mut writer, &[4; 1000]);
    let frame = writer.finish();
    assert!(!frame.lease().is_fallback() && writer.get_ref().mode() == Mode::Back);
}

#[test]
fn discarded_fronts() {
    for spills in [false, true] {
        let mut writer = Writer::new(pool(1000, 4));
        write(&mut writer, b"header");
        writer.discard_front(6);
        assert!(writer.filled().is_empty());
        write(&mut writer, if spills { &[5; 2000] } else { &[5; 200] });
        writer.discard_front(50);
        writer.filled_mut()[0] = 6;
        let frame = writer.finish();
        assert_eq!((frame.lease().is_fallback(), frame[0], frame[1]), (spills, 6, 5));
        assert_eq!(frame.len(), if spills { 1950 } else { 150 });
    }
}

#[test]
fn what_a_full_pool_refuses_leaves_the_frame() {
    let mut writer = Writer::new(rejecting(100, 2));
    write(&mut writer, &[1; 80]);
    assert!(matches!(
        writer.writable(21),
        Err(AcquireError::Exhausted { .. } | AcquireError::TooLarge { .. })
    ));
    assert!(matches!(writer.writable(usize::MAX), Err(AcquireError::TooLarge { .. })));
    assert_eq!(writer.filled(), [1; 80]);
    write(&mut writer, &[2; 20]);
    assert!(writer.get_mut().acquire(1).is_err());
    let frame = writer.finish();
    assert_eq!((&frame[..80], &frame[80..]), (&[1; 80][..], &[2; 20][..]));
    drop(frame);
    assert!(writer.filled().is_empty() && writer.filled_mut().is_empty());
    assert!(writer.finish().is_empty());
    assert!(writer.writable(0).expect("no bytes").is_empty());
    assert!(writer.get_ref().is_idle());
}

/// A frame asks its fallback twice, first for room to grow; that is one request, of what the caller
/// asked for.
#[test]
fn a_refused_frame_is_one_refused_request() {
    // In the region, with a buffer in the way and 180 bytes behind that: no place for 100 + 90
    // bytes.
    let mut writer = Writer::new(rejecting(300, 4));
    write(&mut writer, &[1; 100]);
    let in_the_way = writer.get_mut().acquire(20).expect("room");
    assert!(matches!(writer.writable(90), Err(AcquireError::Exhausted { requested: 90, .. })));
    assert_eq!(
        writer.writable(201).map(|room| room.len()),
        Err(AcquireError::TooLarge { requested: 201, limit: 200 })
    );
    assert_eq!(writer.filled(), [1; 100]);
    assert_eq!(writer.get_ref().stats().exhausted, u64::from(cfg!(feature = "stats")));
    drop(in_the_way);
}

/// Whole buffers and a frame at the same time, from one region.
#[test]
fn acquiring_while_a_frame_is_open() {
    let mut writer = Writer::new(pool(4096, 8));
    write(&mut writer, b"ab");
    let mut buf = writer.get_mut().acquire(8).expect("room");
    assert!(!buf.lease().is_fallback(), "the frame has given its room back");
    buf.extend_from_slice(b"12345678").expect("asked for");
    assert_eq!(writer.filled(), b"ab");
    write(&mut writer, b"cd");
    drop(buf);
    write(&mut writer, b"ef");
    assert_eq!(writer.finish(), "abcdef");
}

/// A buffer of another pool moves to the one that is asked.
#[test]
fn a_buffer_of_another_pool_moves() {
    let (mut here, mut there) = (rejecting(1000, 4), rejecting(1000, 4));
    let mut buf = there.acquire(100).expect("room");
    buf.extend_from_slice(b"bytes").expect("asked for");
    here.grow(&mut buf, 200).expect("room");
    assert_eq!((&buf[..], here.slot_of(&buf)), (&b"bytes"[..], Some(0)));
    assert!(there.is_idle());
    // Nor does the other pool take anything of it.
    there.shrink(&mut buf);
    assert_eq!((&buf[..], buf.capacity()), (&b"bytes"[..], 5));
    assert!(here.acquire(900).is_err());
}

/// What a wiping pool's buffers leave behind when they grow, move and shrink is zero.
#[cfg(feature = "wipe")]
#[test]
fn t11_what_is_given_back_is_wiped() {
    let mut pool = SlotPool::builder()
        .capacity(1000)
        .slots(8)
        .wipe(true)
        .build_with(NoFallback)
        .expect("settings are right");
    let mut buf = pool.acquire(200).expect("room");
    buf.resize(200, 0xAA).expect("asked for");
    pool.grow(&mut buf, 300).expect("room in place");
    assert!(buf.spare_mut().iter().all(|&byte| byte == 0), "what it grew into");
    buf.resize(500, 0xBB).expect("room");
    buf.truncate(50);
    pool.shrink(&mut buf);
    let mut rest = pool.acquire(900).expect("what was given back");
    assert!(rest.spare_mut().iter().all(|&byte| byte == 0), "what it gave back");
    drop(rest);
    let in_the_way = pool.acquire(10).expect("room");
    let start = buf.as_ptr();
    pool.grow(&mut buf, 100).expect("room elsewhere");
    assert_ne!(buf.as_ptr(), start);
    let mut old = pool.acquire(50).expect("where it was");
    assert!(old.spare_mut().iter().all(|&byte| byte == 0), "what it left");
    drop(in_the_way);
}

#[test]
#[should_panic(expected = "past the capacity")]
fn advancing_past_the_capacity_panics() {
    pool(100, 2).acquire(10).expect("room").commit(11);
}

#[test]
#[should_panic(expected = "discard_front(3) of 2 filled bytes")]
fn discarding_more_than_the_frame_panics() {
    let mut writer = Writer::new(pool(100, 2));
    write(&mut writer, b"ab");
    writer.discard_front(3);
}
