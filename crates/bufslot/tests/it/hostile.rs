//! Users' parts that lie, panic and come back in, and writers that are forgotten.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use bufcore::{AcquireError, Buf, BufferPool, FrameBuffer, HeapLease, HeapPool, PoolStats};
use bufslot::{SlotLease, SlotPool};
use buftest::hostile::{Answer, Call, Scripted};
use buftest::trials::fallbacks;

fn over(fallback: Scripted) -> SlotPool<Scripted> {
    SlotPool::builder().capacity(4096).build_with(fallback).expect("settings are right")
}

/// A small pool whose fallback does what the script says.
fn scripted(script: impl FnMut(Call) -> Answer + Send + 'static) -> SlotPool<Scripted> {
    SlotPool::builder().capacity(1024).slots(4).build_with(Scripted::new(script)).expect("settings are right")
}

/// One whose fallback panics at each such call.
fn panicking(at: fn(Call) -> bool) -> SlotPool<Scripted> {
    scripted(
        move |call| if at(call) { panic!("the fallback panics, as it was told to") } else { Answer::Honest },
    )
}

#[test]
fn t21_lying_fallback_of_a_writer() {
    fallbacks::t21_lies(over, |pool, body| body(&mut pool.open_frame()));
}

#[test]
fn t22_panicking_fallback_of_a_writer() {
    fallbacks::t22_panics(over, |pool, body| body(&mut pool.open_frame()), |buf| buf.lease().is_fallback());
}

#[test]
fn t23_reentering_fallback_of_a_writer() {
    fallbacks::t23_reentered(
        over,
        |pool, body| body(&mut pool.open_frame()),
        |buf| buf.lease().is_fallback(),
    );
}

/// A fallback that is too short lends nothing behind its memory, by any way to write.
#[test]
fn a_fallback_that_is_too_short() {
    let refused = |asked| AcquireError::Exhausted { requested: asked, available: 1024 };
    let mut pool = scripted(|_| Answer::Buffer { capacity: 10, filled: 5 });
    assert_eq!(pool.acquire(2000).map(|buf| buf.capacity()), Err(refused(2000)));
    assert_eq!(pool.acquire_zeroed(2000).map(|buf| buf.len()), Err(refused(2000)));
    assert_eq!(pool.writable(2000).map(|room| room.len()), Err(refused(2000)));
    assert_eq!(pool.extend_from_slice(&[1; 2000]), Err(refused(2000)));
    let mut writer = pool.open_frame();
    assert_eq!(writer.writable(2000).map(|room| room.len()), Err(refused(2000)));
    assert_eq!(writer.extend_from_slice(&[1; 2000]), Err(refused(2000)));
    assert!(writer.filled().is_empty());
    // A request that the region has room for is not refused.
    writer.extend_from_slice(&[2; 1000]).expect("there is room");
    assert_eq!(writer.extend_from_slice(&[3; 2000]).map_err(|error| error.to_string()).unwrap_err(), {
        "pool is exhausted: 2000 bytes requested, 24 bytes available"
    });
    assert_eq!(writer.detach().expect("never fails")[..], [2; 1000]);
}

/// A fallback that gives a buffer of the pool back while it is asked, and refuses: there is room in
/// the region by then.
#[test]
fn t23_room_that_comes_while_the_fallback_is_asked() {
    let kept = Arc::new(Mutex::new(None));
    let released = Arc::clone(&kept);
    let mut pool = scripted(move |call| {
        if matches!(call, Call::Acquire(_)) {
            drop(released.lock().expect("nobody panics").take());
        }
        Answer::Error(AcquireError::OutOfMemory { requested: 7 })
    });
    pool.extend_from_slice(&[1; 100]).expect("there is room");
    let first = pool.filled().as_ptr();
    let behind: Buf<SlotLease<HeapLease>> = pool.acquire(800).expect("there is room");
    *kept.lock().expect("nobody panics") = Some(behind);
    pool.extend_from_slice(&[2; 700]).expect("what was behind it came back");
    assert_eq!(pool.filled().as_ptr(), first, "it grew where it is");
    let frame = pool.detach().expect("it has its place");
    assert!(frame[..100] == [1; 100] && frame[100..] == [2; 700] && !frame.lease().is_fallback());
    // Nothing came back, and nothing is open.
    assert_eq!(pool.acquire(2000).map(drop), Err(AcquireError::OutOfMemory { requested: 2000 }));
    assert!(pool.detach().expect("no frame is open").is_empty());
}

/// A writer whose pool panicked in the midst of making room has no room that another has by then.
#[test]
fn a_panic_while_a_writer_grows() {
    let mut pool = panicking(|call| matches!(call, Call::Acquire(_)));
    let mut writer = pool.open_frame();
    writer.extend_from_slice(&[1; 100]).expect("there is room");
    let grown = catch_unwind(AssertUnwindSafe(|| writer.writable(2000).map(|room| room.len())));
    assert!(grown.is_err());
    writer.extend_from_slice(&[1; 50]).expect("there is room");
    drop(writer);
    let mut buf = pool.acquire(500).expect("that is left");
    buf.resize(500, 2).expect("asked for");
    assert_eq!(pool.filled(), [1; 150]);

    // Once more, in a frame that has to move.
    let mut writer = pool.open_frame();
    for more in [24, 30] {
        let grown = catch_unwind(AssertUnwindSafe(|| writer.writable(2000).map(|room| room.len())));
        assert!(grown.is_err());
        writer.writable(more).expect("that is left").fill(3);
    }
    assert_eq!(writer.filled().len(), 204);
    assert_eq!(buf[..], [2; 500]);
    let frame = writer.detach().expect("never fails");
    assert!(frame[..150] == [1; 150] && frame[150..] == [3; 54]);
    assert_eq!(buf[..], [2; 500]);
}

/// Statistics that panic while a frame is detached leave it open.
#[cfg(feature = "stats")]
#[test]
fn statistics_that_panic_while_a_frame_is_detached() {
    for bytes in [100, 2000] {
        let mut pool = panicking(|call| call == Call::Stats);
        let mut writer = pool.open_frame();
        writer.extend_from_slice(&vec![7; bytes]).expect("there is room");
        assert!(catch_unwind(AssertUnwindSafe(|| writer.detach().map(drop))).is_err());
        let mut writer = pool.open_frame();
        assert!(writer.filled_mut().len() == bytes && writer.filled().iter().all(|&byte| byte == 7));
        let detached = catch_unwind(AssertUnwindSafe(|| FrameBuffer::detach(&mut writer).map(drop)));
        assert!(detached.is_err());
        assert_eq!(writer.filled().len(), bytes);
    }
}

/// A wiping pool shows nothing that a forgotten writer wrote.
#[cfg(feature = "wipe")]
#[test]
fn t11_forgotten_writers() {
    const SECRET: u8 = 0xA5;
    let clean = |bytes: &[u8], what: &str| {
        assert!(!bytes.contains(&SECRET), "{what} of {} bytes shows a secret", bytes.len());
    };
    // In the region, with a buffer behind and without, and with the fallback.
    for (opens_with, behind) in [(50, false), (50, true), (3000, false)] {
        for ways in 0..6 {
            let mut pool =
                SlotPool::builder().capacity(2048).slots(4).wipe(true).build().expect("settings are right");
            pool.writable(opens_with).expect("there is room").fill(1);
            if opens_with > 2048 {
                // With room to grow into.
                pool.writable(1).expect("there is room").fill(1);
            }
            let behind = behind.then(|| pool.acquire(100).expect("there is room"));
            if behind.is_some() {
                pool.writable(100).expect("there is room").fill(1);
            }
            let mut writer = pool.open_frame();
            writer.writable(4).expect("there is room").fill(1);
            if ways % 2 == 0 {
                // The pool hears of the writer in between.
                assert!(!writer.filled_mut().is_empty());
            }
            writer.writable(600).expect("there is room").fill(SECRET);
            std::mem::forget(writer);
            let len = pool.filled().len();
            clean(pool.filled(), "the frame");
            match ways / 2 {
                0 => clean(pool.writable(700).expect("there is room"), "the frame's room"),
                1 => clean(pool.open_frame().writable(300).expect("there is room"), "a writer's room"),
                _ => {}
            }
            assert!(pool.filled().len() >= len);
            let mut frame = pool.detach().expect("never fails");
            clean(frame.spare_mut(), "a detached frame's spare part");
            drop((frame, behind));
            let mut all = pool.acquire(pool.capacity()).expect("all was released");
            clean(all.spare_mut(), "the region");
        }
    }
}

/// A fallback that hands out twice what it is asked for.
struct Generous(HeapPool);

impl BufferPool for Generous {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        self.0.acquire(2 * capacity)
    }

    fn max_capacity(&self) -> usize {
        self.0.max_capacity() / 2
    }

    fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

/// T31: what a buffer can hold is what the pool was asked for, also where the fallback gives more.
#[test]
fn t31_generous_fallback() {
    let mut pool = SlotPool::builder()
        .slots(1)
        .capacity(8)
        .build_with(Generous(HeapPool::new()))
        .expect("settings are right");
    assert_eq!(pool.acquire(100).expect("the heap serves").capacity(), 100);
    assert_eq!(pool.acquire_zeroed(100).expect("the heap serves").capacity(), 100);
    pool.extend_from_slice(&[1; 100]).expect("the heap serves");
    assert_eq!(FrameBuffer::detach(&mut pool).expect("it has a place").capacity(), 100);
}
