//! Operations on a bump pool: buffers that are split, moved and released on other threads, handles that come and go.

use std::thread;

use bufbump::{Builder, BumpPool};
use buftest::bytes::Bytes;
use buftest::lockstep::Lockstep;

use crate::drive::{Drive, End};
use crate::hostile::{Baggage, Others};

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let shard_size = bytes.pick([64, 300, 1024, 4096, 8192, 20_000, 70_000]);
    let builder = Builder::new()
        .shard_size(shard_size)
        .max_probes(bytes.below(4))
        .max_idle_bytes(shard_size * bytes.below(6))
        .alignment(1 << bytes.below(9))
        .preallocate(bytes.below(3));
    let flags = bytes.byte();
    let (wipes, end) = (flags & 1 != 0, End::of(flags >> 4));
    let pool = builder.wipe(wipes).build().expect("settings are right");
    let mut lockstep = Lockstep::over(pool, |_| None, false);
    if wipes {
        lockstep.set_zeroed(|buf| !buf.lease().is_fallback());
    }
    let mut drive = Drive::new(lockstep);
    let mut handles: Vec<BumpPool> = Vec::new();
    let (baggage, mut others) = (Baggage::default(), Others::default());
    drive.run(&mut bytes, |drive, bytes| {
        let lockstep = &mut drive.lockstep;
        match bytes.below(16) {
            0..=2 => lockstep.split(bytes.below(256), bytes.size(), true),
            3..=5 => lockstep.split(bytes.below(256), bytes.size(), false),
            6 => lockstep.pool().trim(),
            7 => lockstep.pool().clear(),
            8 => {
                let handle = lockstep.pool().clone();
                handles.push(handle);
                handles.truncate(4);
            }
            9 => drop(handles.pop().map(|handle| std::mem::replace(lockstep.pool(), handle))),
            10..=11 => {
                let (at, ratio) = (bytes.below(256), bytes.below(64));
                lockstep.exchange(at, |pool, buf| pool.detach_if_pinning(buf, ratio));
            }
            12 => {
                let (size, pool) = (bytes.size(), lockstep.pool().clone());
                let buf = thread::spawn(move || pool.acquire(size).expect("the heap serves"));
                lockstep.admit(buf.join().expect("acquiring does not panic"), size, Vec::new());
            }
            13 => {
                if let Some(live) = lockstep.take(bytes.below(256)) {
                    baggage.put(move || live.end());
                }
            }
            // On a thread whose caches go with it.
            14 => {
                let (baggage, pool) = (baggage.clone(), lockstep.pool().clone());
                let errand = thread::spawn(move || {
                    drop(pool.acquire(10));
                    baggage.let_go();
                });
                errand.join().expect("dropping does not panic");
            }
            _ => others.work(bytes.below(4)),
        }
    });
    baggage.clear();
    handles.clear();
    if !end.pool_first && drive.release(end) {
        let stats = drive.lockstep.pool().stats();
        assert_eq!((stats.in_use, stats.pinned_bytes), (0, 0), "all is back: {stats:?}");
    }
    drive.finish(end);
}
