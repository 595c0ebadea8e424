//! Frames that grow in place, slide, move and spill, with their bytes.

use bufcore::{AcquireError, BufferPool, FrameBuffer, Reject};
use bufslot::{Mode, SlotPool};

fn pool(capacity: usize, slots: usize) -> SlotPool {
    SlotPool::new(capacity, slots).expect("settings are right")
}

fn rejecting(capacity: usize, slots: usize) -> SlotPool<Reject> {
    SlotPool::builder().capacity(capacity).slots(slots).build_with(Reject).expect("settings are right")
}

fn write<F: FrameBuffer>(frame: &mut F, bytes: &[u8]) {
    frame.writable(bytes.len()).expect("room").copy_from_slice(bytes);
}

#[test]
fn a_frame_grows_in_place() {
    let mut pool = pool(1000, 4);
    write(&mut pool, b"head");
    let start = pool.filled().as_ptr();
    for index in 0..90_u8 {
        write(&mut pool, &[index; 10]);
        assert_eq!(pool.filled().as_ptr(), start);
    }
    let frame = pool.detach().expect("never fails");
    assert_eq!((frame.len(), frame.capacity(), pool.mode()), (904, 904, Mode::Back));
    assert_eq!(&frame[..4], b"head");
    assert!(frame[4..].chunks(10).zip(0..).all(|(chunk, index)| chunk.iter().all(|&byte| byte == index)));
    assert_eq!(pool.slot_of(&frame), Some(0));
}

#[test]
fn a_buffer_in_the_way_makes_the_frame_move() {
    let mut pool = pool(1000, 4);
    write(&mut pool, &[1; 100]);
    let start = pool.filled().as_ptr();
    let mut in_the_way = pool.acquire(50).expect("room");
    in_the_way.resize(50, 9).expect("asked for");
    write(&mut pool, &[2; 100]);
    assert_ne!(pool.filled().as_ptr(), start);
    let frame = pool.detach().expect("never fails");
    assert!(!frame.lease().is_fallback());
    assert_eq!([&frame[..100], &frame[100..]], [[1; 100], [2; 100]]);
    assert_eq!(in_the_way[..], [9; 50]);
    // Where it was is free again.
    let first = pool.acquire(100).expect("room");
    assert!(pool.slot_of(&first).is_some());
}

#[test]
fn a_frame_at_the_end_slides_to_the_front() {
    let mut pool = rejecting(1000, 4);
    let front = pool.acquire(600).expect("room");
    write(&mut pool, &[1; 300]);
    drop(front);
    write(&mut pool, &[2; 500]);
    assert_eq!(pool.filled().len(), 800);
    let frame = pool.detach().expect("never fails");
    assert_eq!([&frame[..300], &frame[300..]], [&[1; 300][..], &[2; 500]]);
}

/// Bytes that overlap where they go.
#[test]
fn a_slide_over_itself() {
    let mut pool = rejecting(1000, 4);
    let front = pool.acquire(10).expect("room");
    let bytes: Vec<u8> = (0..=255).cycle().take(900).collect();
    write(&mut pool, &bytes);
    drop(front);
    write(&mut pool, &[7; 100]);
    assert_eq!(pool.filled()[..900], bytes);
    assert_eq!(pool.filled()[900..], [7; 100]);
}

#[test]
fn a_frame_that_fits_nowhere_spills_with_its_bytes() {
    let mut pool = pool(1000, 4);
    write(&mut pool, &[1; 900]);
    write(&mut pool, &[2; 200]);
    assert_eq!(pool.mode(), Mode::Fallback);
    write(&mut pool, &[3; 5000]);
    let frame = pool.detach().expect("never fails");
    assert!(frame.lease().is_fallback());
    assert_eq!([&frame[..900], &frame[900..1100], &frame[1100..]], [&[1; 900][..], &[2; 200], &[3; 5000]]);
    // The region is free for the next one.
    write(&mut pool, &[4; 1000]);
    let frame = pool.detach().expect("never fails");
    assert!(!frame.lease().is_fallback() && pool.mode() == Mode::Back);
}

/// No request has seen it yet, but a snapshot does.
#[cfg(feature = "stats")]
#[test]
fn a_frame_in_the_fallback_raises_the_marks() {
    let mut pool = pool(1000, 4);
    write(&mut pool, &[1; 5000]);
    let stats = bufcore::BufferPool::stats(&pool);
    assert!(stats.in_use <= stats.high_water, "{stats:?}");
    assert!(stats.in_use_bytes >= 5000 && stats.in_use_bytes <= stats.high_water_bytes, "{stats:?}");
}

#[test]
fn discarded_fronts() {
    for spills in [false, true] {
        let mut pool = pool(1000, 4);
        write(&mut pool, b"header");
        pool.consume(6);
        assert!(pool.filled().is_empty());
        write(&mut pool, if spills { &[5; 2000] } else { &[5; 200] });
        pool.consume(50);
        pool.filled_mut()[0] = 6;
        let frame = pool.detach().expect("never fails");
        assert_eq!((frame.lease().is_fallback(), frame[0], frame[1]), (spills, 6, 5));
        assert_eq!(frame.len(), if spills { 1950 } else { 150 });
    }
}

#[test]
fn what_a_full_pool_refuses_leaves_the_frame() {
    let mut pool = rejecting(100, 2);
    write(&mut pool, &[1; 80]);
    assert!(matches!(pool.writable(21), Err(AcquireError::Exhausted { .. } | AcquireError::TooLarge { .. })));
    assert!(matches!(pool.writable(usize::MAX), Err(AcquireError::TooLarge { .. })));
    assert_eq!(pool.filled(), [1; 80]);
    write(&mut pool, &[2; 20]);
    assert!(pool.acquire(1).is_err());
    let frame = pool.detach().expect("never fails");
    assert_eq!((&frame[..80], &frame[80..]), (&[1; 80][..], &[2; 20][..]));
    drop(frame);
    // No frame is open now.
    assert!(pool.filled().is_empty() && pool.filled_mut().is_empty());
    assert!(pool.detach().expect("never fails").is_empty());
    assert!(pool.writable(0).expect("no bytes").is_empty());
    assert!(pool.is_idle());
}

/// A frame asks its fallback twice, first for room to grow; that is one request, of what the caller
/// asked for.
#[test]
fn a_refused_frame_is_one_refused_request() {
    // In the region, with a buffer in the way and 180 bytes behind that: no place for 100 + 90
    // bytes.
    let mut pool = rejecting(300, 4);
    write(&mut pool, &[1; 100]);
    let in_the_way = pool.acquire(20).expect("room");
    assert!(matches!(pool.writable(90), Err(AcquireError::Exhausted { requested: 90, .. })));
    assert_eq!(pool.writable(201), Err(AcquireError::TooLarge { requested: 201, limit: 200 }));
    assert_eq!(pool.filled(), [1; 100]);
    assert_eq!(pool.stats().exhausted, u64::from(cfg!(feature = "stats")));
    drop(in_the_way);

    // With a fallback that has a place for the frame, but neither for twice as much nor for more.
    let inner = rejecting(300, 4);
    let mut pool = SlotPool::builder().capacity(100).slots(4).build_with(inner).expect("settings are right");
    write(&mut pool, &[1; 80]);
    write(&mut pool, &[2; 80]);
    assert_eq!(pool.stats().exhausted, 0, "served with less room than was asked for first");
    assert_eq!(pool.writable(200), Err(AcquireError::TooLarge { requested: 200, limit: 140 }));
    assert_eq!(pool.writable(60), Err(AcquireError::Exhausted { requested: 60, available: 0 }));
    assert_eq!((&pool.filled()[..80], &pool.filled()[80..]), (&[1; 80][..], &[2; 80][..]));
    assert_eq!(pool.stats().exhausted, u64::from(cfg!(feature = "stats")));
    let frame = pool.detach().expect("never fails");
    assert!(frame.lease().is_fallback() && frame.len() == 160);
}

/// A frame beside which the only other buffer came back grows in place rather than being refused.
#[test]
fn a_frame_grows_over_what_came_back_behind_it() {
    let mut pool = rejecting(25, 4);
    write(&mut pool, &[1; 10]);
    let behind = pool.acquire(10).expect("room");
    drop(behind);
    write(&mut pool, &[2; 10]);
    assert_eq!((&pool.filled()[..10], &pool.filled()[10..]), (&[1; 10][..], &[2; 10][..]));
}

/// Whole buffers and a frame at the same time, from one region.
#[test]
fn acquiring_while_a_frame_is_open() {
    let mut pool = pool(4096, 8);
    write(&mut pool, b"ab");
    let mut buf = pool.acquire(8).expect("room");
    buf.extend_from_slice(b"12345678").expect("asked for");
    assert_eq!(pool.filled(), b"ab");
    write(&mut pool, b"cd");
    drop(buf);
    write(&mut pool, b"ef");
    assert_eq!(&pool.detach().expect("never fails")[..], b"abcdef");
}

#[test]
#[should_panic(expected = "past the capacity")]
fn advancing_past_the_capacity_panics() {
    pool(100, 2).acquire(10).expect("room").commit(11);
}

#[test]
#[should_panic(expected = "consume(3) of a frame of 2 bytes")]
fn discarding_more_than_the_frame_panics() {
    let mut pool = pool(100, 2);
    write(&mut pool, b"ab");
    pool.consume(3);
}

/// What an open frame's writer appends is what the pool's own methods append, wherever the frame
/// has to go, and so are the errors.
#[test]
fn the_writer_appends_what_the_pool_appends() {
    fn grow<F: BufferPool>(mut plain: SlotPool<F>, mut written: SlotPool<F>) {
        let bytes: Vec<u8> = (0..=255).collect();
        for seed in 0..200_usize {
            // Something in front that goes, and something behind that stays, so that frames slide
            // and move.
            let (front, written_front) = (plain.acquire(40 + seed % 50), written.acquire(40 + seed % 50));
            let mut writer = written.open_frame();
            for step in 0..seed % 12 {
                let chunk = &bytes[step..step + (seed * 7 + step * 13) % 90];
                let pushed = plain.writable(chunk.len()).map(|room| room.copy_from_slice(chunk));
                assert_eq!(writer.extend_from_slice(chunk), pushed);
                if step == seed % 5 {
                    let cut = writer.filled().len() / 3;
                    writer.consume(cut);
                    plain.consume(cut);
                }
                assert_eq!(writer.filled(), plain.filled(), "seed {seed}, step {step}");
            }
            drop(front);
            drop(written_front);
            assert_eq!(writer.extend_from_slice(&bytes), plain.extend_from_slice(&bytes));
            let (written, plain) =
                (writer.detach().expect("never fails"), plain.detach().expect("never fails"));
            assert_eq!(written[..], plain[..], "seed {seed}");
        }
    }
    grow(pool(600, 4), pool(600, 4));
    grow(rejecting(600, 4), rejecting(600, 4));
}
