//! The books of the global allocator. Everything that a pool takes goes back, exactly once, with
//! the layout that it was taken with, not while a buffer is out. Nothing is taken in the steady
//! state.
//!
//! For binaries without the test harness, which allocates too, with a [`Ledger`] as global
//! allocator.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use bufcore::{Buf, BufferPool, Lease, SplitLease, Writer, strategy::orphans};

use crate::Kit;
use crate::alloc::Ledger;
use crate::append::Append;
use crate::pattern;

/// Pools of one kind, and the ledger that watches them.
#[allow(missing_debug_implementations, reason = "leases need not have it")]
pub struct Books<P: BufferPool<Lease: SplitLease>> {
    ledger: &'static Ledger,
    /// Its pools are of 64 KiB at least, and serve up to 20 buffers of 1000 bytes from those.
    kit: Kit<P>,
    /// Bytes of a pool's region.
    capacity: usize,
}

impl<P: BufferPool<Lease: SplitLease> + 'static> Books<P> {
    /// Makes the trials of pools of `capacity` bytes each.
    pub fn new(ledger: &'static Ledger, kit: Kit<P>, capacity: usize) -> Self {
        Self { ledger, kit, capacity }
    }

    /// Runs everything, and `special` among it: what only this strategy does. `counts` is whether
    /// the steady state is to be looked at, which is no use when the leak tracker allocates.
    pub fn check(&self, special: impl Fn(), counts: bool) {
        self.balanced("pools that go last", || self.pool_last());
        self.balanced("pools that go first", || self.pool_first());
        self.balanced("views that go last", || self.views_last());
        self.balanced("pools and buffers that race", || self.races());
        self.balanced("what is special", special);
        if counts {
            self.steady_state();
        }
        // Once more with freed blocks kept back, so that none is used again by chance.
        self.ledger.keep(true);
        self.balanced("pools that go first, blocks kept", || self.pool_first());
        self.balanced("views that go last, blocks kept", || self.views_last());
    }

    fn pool(&self) -> P {
        (self.kit.make)()
    }

    #[track_caller]
    fn balanced(&self, what: &str, body: impl Fn()) {
        self.ledger.balanced(what, orphans::sweep, body);
    }

    #[track_caller]
    fn holds_memory(&self, base: usize, what: &str) {
        let (_, bytes) = self.ledger.outstanding();
        assert!(
            bytes >= base + self.capacity,
            "the region went while {what}: {} bytes are out",
            bytes - base
        );
    }

    fn pool_last(&self) {
        let mut pool = self.pool();
        let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(100).expect("room"));
        bufs.map(drop_elsewhere).into_iter().for_each(join);
        // More than there is: the fallback's, if there is one.
        drop(pool.acquire(2 * self.capacity));
    }

    fn pool_first(&self) {
        let (_, base) = self.ledger.outstanding();
        let mut pool = self.pool();
        let mut bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(1000).expect("room"));
        for (seed, buf) in (0..).zip(&mut bufs) {
            pattern::fill(&mut buf.spare_mut()[..1000], seed, 0);
            buf.commit(1000);
        }
        let spilled = pool.acquire(2 * self.capacity);
        let mut writer = Writer::new(pool);
        writer.append(50).expect("room").fill(1);
        drop(writer);
        drop(spilled);
        for (seed, buf) in (0..).zip(bufs) {
            self.holds_memory(base, "a buffer is out");
            pattern::check(&buf, seed, 0);
            join(drop_elsewhere(buf));
        }
        let (_, bytes) = self.ledger.outstanding();
        assert!(
            bytes < base + self.capacity,
            "the region stays after the last buffer: {} bytes are out",
            bytes - base
        );
    }

    fn views_last(&self) {
        let (_, base) = self.ledger.outstanding();
        let mut pool = self.pool();
        let mut buf = pool.acquire(1000).expect("room");
        buf.resize(1000, 7).expect("asked for");
        let mut view = buf.freeze();
        let parts = [view.split_to(10), view.clone(), view.slice(5..6), view];
        drop(pool);
        for part in parts {
            self.holds_memory(base, "a view is out");
            assert!(part.iter().all(|&byte| byte == 7));
            join(drop_elsewhere(part));
        }
    }

    /// Drops the pool and its buffers at the same moment.
    fn races(&self) {
        for round in 0..300 {
            let mut pool = self.pool();
            let bufs: Vec<_> = (0..round % 5 + 1).map(|_| pool.acquire(100).expect("room")).collect();
            let ending: Vec<_> = bufs.into_iter().map(drop_elsewhere).collect();
            drop(pool);
            ending.into_iter().for_each(join);
        }
    }

    /// Checks that no operation calls the allocator, on either side of a hand-over.
    fn steady_state(&self) {
        const ROUNDS: usize = 10_000;
        let mut pool = self.pool();
        let before = self.ledger.calls();
        for round in 0..ROUNDS {
            let mut buf = pool.acquire(64 + round % 1000).expect("room");
            buf.extend_from_slice(b"bytes").expect("room");
            let other = pool.acquire(1).expect("room");
            let mut writer = Writer::new(&mut pool);
            writer.append(8).expect("room").fill(1);
            writer.append(100).expect("room").fill(2);
            let view = writer.finish().freeze();
            let part = view.slice(2..5);
            drop((view, part));
            let thawed = buf.freeze().try_into_mut().expect("the only view");
            drop((thawed, other));
        }
        assert_eq!(self.ledger.calls(), before, "calls of the allocator in {ROUNDS} rounds on one thread");
        hand_over(self.ledger, [0, ROUNDS], 0, || {
            pool.acquire(100).expect("at most sixteen are on their way")
        });
        println!("steady state: ok");
    }
}

/// Freezes buffers from `acquire` and drops them on another thread, through a queue that was made
/// before: first as many as `rounds` says first, which take the memory that goes round then, and
/// then the others, for which the allocator is called at most `most` times.
pub(crate) fn hand_over<L: Lease>(
    ledger: &Ledger,
    rounds: [usize; 2],
    most: usize,
    mut acquire: impl FnMut() -> Buf<L>,
) {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(16);
    let started = AtomicBool::new(false);
    thread::scope(|scope| {
        let started = &started;
        let other = scope.spawn(move || {
            // ORDER: SeqCst, for ease.
            started.store(true, SeqCst);
            let mut got = 0;
            while got < rounds[0] + rounds[1] {
                got += usize::from(consumer.pop().is_ok());
            }
        });
        // ORDER: SeqCst, for ease.
        while !started.load(SeqCst) {
            hint::spin_loop();
        }
        let [_, calls] = rounds.map(|rounds| {
            let before = ledger.calls();
            for _ in 0..rounds {
                let mut item = acquire().freeze();
                while let Err(rtrb::PushError::Full(back)) = producer.push(item) {
                    item = back;
                    thread::yield_now();
                }
            }
            ledger.calls() - before
        });
        // Not by the end of the scope, which does not wait until the thread has let go of
        // everything.
        other.join().expect("dropping does not panic");
        assert!(calls <= most, "{calls} calls of the allocator in {} rounds across threads", rounds[1]);
    });
}

/// Drops `value` on another thread. Joined, not scoped: a scope ends a little before its threads
/// have let go of everything.
pub fn drop_elsewhere<T: Send + 'static>(value: T) -> JoinHandle<()> {
    thread::spawn(move || drop(value))
}

/// Waits for it.
pub(crate) fn join(handle: JoinHandle<()>) {
    handle.join().expect("dropping does not panic");
}
