//! Pages of a region that go back to the system while the pool is in use: what goes, what stays,
//! and what it costs.
//!
//! Trials of resident memory run in a process of their own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bufcore::{BufferPool, SplitLease, Writer};
use bufkeeper::{Keeper, PressureSource, Trim};

use super::filled;
use crate::append::Append;
use crate::pattern;
use crate::process::{resident_bytes, steady_allocator};

const MIB: usize = 1 << 20;
/// What the process may keep on top of what a trial counts.
const SLACK_BYTES: usize = 2 * MIB;
const PAGE_BYTES: usize = 4096;

/// Checks that after a burst that filled `bytes` bytes, all goes with a trim, and not before; and
/// all can be used again.
pub fn after_a_burst<P: BufferPool + Trim>(mut pool: P, bytes: usize) {
    steady_allocator();
    let before = resident_bytes();
    let near = |now: usize| now < before + SLACK_BYTES;
    for round in 0..3 {
        let burst: Vec<_> =
            (0..bytes / MIB).map(|n| filled(&mut pool, MIB, n as u64).expect("there is room")).collect();
        assert!(resident_bytes() > before + bytes - SLACK_BYTES, "nothing was left for it");
        drop(burst);
        assert!(resident_bytes() > before + bytes - SLACK_BYTES, "it went unasked");
        pool.trim();
        assert!(near(resident_bytes()), "{} bytes stay in round {round}", resident_bytes() - before);
        // A queue goes round in the first of it.
        let mut queue = VecDeque::with_capacity(32);
        for _ in 0..2 * bytes / 1500 {
            queue.push_back(filled(&mut pool, 1500, 1).expect("there is room"));
            if queue.len() == 32 {
                queue.pop_front();
            }
        }
        assert!(near(resident_bytes()), "{} bytes for a queue of 32", resident_bytes() - before);
    }
}

/// Checks that buffers that stay keep their pages and their bytes, and what is between them goes.
pub fn around_survivors<P: BufferPool + Trim>(mut pool: P, bytes: usize) {
    steady_allocator();
    let each = 60_000;
    let before = resident_bytes();
    let mut burst: Vec<_> = (0..bytes / (each + 4096))
        .map(|n| Some((n as u64, filled(&mut pool, each, n as u64).expect("there is room"))))
        .collect();
    let kept: Vec<_> = burst.iter_mut().step_by(8).filter_map(Option::take).collect();
    drop(burst);
    pool.trim();
    let held = kept.len() * (each + 2 * PAGE_BYTES);
    let stays = resident_bytes() - before;
    assert!(stays < held + SLACK_BYTES, "{stays} bytes stay for {held}");
    for (seed, buf) in &kept {
        assert_eq!(pattern::mismatch(buf, *seed, 0), None, "a buffer differs");
    }
    // Between them there is room for as many as before.
    let more: Vec<_> =
        (0..kept.len() * 6).map(|n| filled(&mut pool, each, n as u64).expect("there is room")).collect();
    for (seed, buf) in kept {
        assert_eq!(pattern::mismatch(&buf, seed, 0), None, "a buffer differs");
    }
    drop(more);
}

/// Checks that a keeper's thread trims a pool that is in a mutex, and waits for nobody who has the
/// lock.
pub fn kept_in_a_mutex<P: BufferPool + Trim + Send + 'static>(pool: P, bytes: usize) {
    steady_allocator();
    let pool = Arc::new(Mutex::new(pool));
    let keeper = Keeper::new().purge_delay(Duration::from_millis(20)).pressure(PressureSource::none());
    let _keeper = keeper.watch(&pool).spawn().expect("a thread starts");
    let before = resident_bytes();
    let until = |what: &str, is_so: &dyn Fn(usize) -> bool| {
        let started = Instant::now();
        while !is_so(resident_bytes()) {
            assert!(started.elapsed() < Duration::from_secs(30), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    for _ in 0..3 {
        let mut held = pool.lock().expect("nothing panics");
        drop(
            (0..bytes / MIB).map(|_| filled(&mut *held, MIB, 1).expect("there is room")).collect::<Vec<_>>(),
        );
        thread::sleep(Duration::from_millis(100));
        assert!(resident_bytes() > before + bytes - SLACK_BYTES, "somebody else has the lock");
        drop(held);
        until("the memory stays", &|now| now < before + SLACK_BYTES);
    }
}

/// Checks that a trim takes nothing from anyone: no request is refused that a pool without trims
/// would serve.
pub fn nothing_is_refused<P: BufferPool<Lease: SplitLease> + Trim>(pool: P, capacity: usize) {
    let mut writer = Writer::new(pool);
    for round in 0..4_usize {
        writer.get_mut().trim();
        let all = writer.get_mut().acquire(capacity).expect("all of it");
        assert_eq!(all.capacity(), capacity);
        drop(all);
        writer.get_mut().trim();
        // A frame that grows by little steps takes all that there is, wherever it began.
        let first = writer.get_mut().acquire(capacity / 4).expect("a quarter");
        let mut len = 0;
        while len + 1000 <= capacity / 2 {
            if len % 64_000 == 0 {
                writer.get_mut().trim();
            }
            pattern::fill(writer.append(1000).expect("room for a frame"), 3, len);
            len += 1000;
        }
        if round % 2 == 0 {
            drop(first);
            writer.get_mut().trim();
        }
        assert_eq!(pattern::mismatch(writer.filled(), 3, 0), None, "the frame differs");
        let frame = writer.finish();
        assert_eq!(frame.len(), len);
        writer.get_mut().trim();
        assert_eq!(pattern::mismatch(&frame, 3, 0), None, "the frame differs");
        drop(frame);
        assert_eq!(BufferPool::stats(writer.get_ref()).in_use, round % 2, "one for each that is out");
    }
}
