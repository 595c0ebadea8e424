//! The books of the global allocator. Everything that a pool takes goes back, exactly once, with
//! the layout that it was taken with, not while a buffer is out. Nothing is taken in the steady
//! state.
//!
//! For binaries without the test harness, which allocates too, with a [`Ledger`] as global
//! allocator.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bufcore::{Buf, BufferPool, Lease, SplitLease, Writer};
use bufkit::orphan;

use super::filled;
use crate::alloc::Ledger;
use crate::append::Append;
use crate::pattern;

/// A request that any pool serves.
const SMALL: usize = 100;

/// What a strategy does in its own way, and how: leaves nothing out.
pub type Special<P> = (&'static str, fn(&Books<P>));

/// Pools of one kind, and the ledger that watches them.
pub struct Books<P> {
    /// The global allocator.
    pub ledger: &'static Ledger,
    /// A pool.
    pub make: fn() -> P,
    /// Another handle of a pool, where threads share them.
    pub handle: fn(&P) -> Option<P>,
    /// Bytes of the pieces of memory that a pool takes for `usual` requests; much more than all
    /// bookkeeping.
    pub piece: usize,
    /// A request that is served from a piece.
    pub usual: usize,
    /// How many pieces a number of `usual` buffers takes.
    pub pieces: fn(usize) -> usize,
    /// Requests of which forty take more memory than a pool keeps.
    pub many: fn(usize) -> usize,
    /// A request that is an allocation of its own.
    pub single: usize,
    /// Rounds after which a thread alone has all that it needs, beside the first buffer.
    pub warm_up: usize,
    /// The most bytes that a sleeping thread keeps of a pool that it used and that is gone.
    pub kept: usize,
    /// Calls of the allocator that a steady traffic between threads may still need.
    pub late_calls: usize,
}

impl<P: BufferPool<Lease: SplitLease> + Send + 'static> Books<P> {
    /// Pools of one thread, each with a region of `capacity` bytes: of 64 KiB at least, which serves
    /// up to 40 buffers of 1000 bytes.
    pub fn of_regions(ledger: &'static Ledger, make: fn() -> P, capacity: usize) -> Self {
        Self {
            ledger,
            make,
            handle: |_| None,
            piece: capacity,
            usual: 1000,
            pieces: |buffers| buffers.min(1),
            many: |_| 1000,
            single: 2 * capacity,
            warm_up: 0,
            kept: 0,
            late_calls: 0,
        }
    }

    /// Runs everything, and `special` among it: what this strategy does in its own way. `counts` is
    /// whether the steady state is to be looked at, which is no use when the leak tracker
    /// allocates.
    pub fn check(&self, special: &[Special<P>], counts: bool) {
        wait_once();
        self.balanced("pools that go last", || self.pool_last());
        self.balanced("pools and buffers that race", || self.races());
        self.balanced("pools that end while a thread sleeps", || self.sleepers());
        self.each(special, "");
        if counts {
            self.steady_state();
        }
        // Once more with freed blocks kept back, so that none is used again by chance.
        self.ledger.keep(true);
        self.each(special, ", blocks kept");
    }

    /// Ends many pools elsewhere while a thread that used each of them sleeps: next to nothing is
    /// kept of each.
    fn sleepers(&self) {
        const POOLS: usize = 1000;
        if (self.handle)(&self.pool()).is_none() {
            return;
        }
        let base = self.bytes();
        let (to_here, from_there) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let mut pools: Vec<P> = (0..POOLS).map(|_| self.pool()).collect();
        let sleeper = thread::spawn(move || {
            pools.iter_mut().for_each(|pool| drop(pool.acquire(SMALL)));
            to_here.send(pools).expect("the other side waits");
            wait.recv().expect("the other side sends");
        });
        drop(from_there.recv().expect("the other side sends"));
        let kept = self.bytes().saturating_sub(base) / POOLS;
        assert!(kept <= self.kept, "{kept} bytes are kept of each pool that ended while its user slept");
        go.send(()).expect("the other side waits");
        join(sleeper);
    }

    fn each(&self, special: &[Special<P>], how: &str) {
        self.balanced(&format!("pools that go first{how}"), || self.pool_first());
        self.balanced(&format!("parts and views that go last{how}"), || self.parts_and_views_last());
        for (what, body) in special {
            self.balanced(&format!("{what}{how}"), || body(self));
        }
    }

    /// Makes a pool.
    pub fn pool(&self) -> P {
        (self.make)()
    }

    #[track_caller]
    fn balanced(&self, what: &str, body: impl Fn()) {
        // The thread lets go of the bookkeeping of pools that ended elsewhere when it uses others.
        let settle = || {
            for _ in 0..64 {
                drop(self.pool().acquire(1));
            }
            orphan::sweep();
        };
        self.ledger.balanced(what, settle, body);
    }

    /// Counts the bytes that are out.
    pub fn bytes(&self) -> usize {
        self.ledger.outstanding().1
    }

    /// Asserts that `pieces` pieces of memory are out, beside `base` bytes.
    #[track_caller]
    pub fn holds(&self, base: usize, pieces: usize, when: &str) {
        let bytes = self.bytes();
        // Bookkeeping comes, and that of earlier pools goes.
        let held = (bytes + self.piece / 4).saturating_sub(base) / self.piece;
        assert_eq!(held, pieces, "{bytes} bytes are out, {base} were before: {when}");
    }

    /// Asserts that a pool with one thread, which had one buffer, takes at most `of_pool` bytes
    /// beside its pieces of memory, and each further thread `of_thread`. When the leak tracker
    /// allocates, it only says what they take.
    pub fn cost(&self, of_pool: usize, of_thread: usize, counts: bool) {
        let ledger = self.ledger;
        let beside = |pool: &P| ledger.outstanding().1 - pool.stats().reserved_bytes;
        let base = self.bytes();
        let mut pool = self.pool();
        drop(pool.acquire(SMALL).expect("room"));
        let pool_takes = beside(&pool) - base;
        let mut theirs = (self.handle)(&pool).expect("threads share it");
        let other = thread::spawn(move || {
            let base = beside(&theirs);
            drop(theirs.acquire(SMALL).expect("room"));
            beside(&theirs) - base
        });
        let thread_takes = other.join().expect("the thread ends well");
        println!("a pool takes {pool_takes} bytes, and each further thread {thread_takes}");
        if counts {
            assert!(pool_takes <= of_pool, "a pool with one thread takes {pool_takes} bytes");
            assert!(thread_takes <= of_thread, "a thread takes {thread_takes} bytes");
        }
    }

    fn pool_last(&self) {
        let mut pool = self.pool();
        let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(100).expect("room"));
        bufs.map(drop_elsewhere).into_iter().for_each(join);
        let bufs: [_; 40] = std::array::from_fn(|n| pool.acquire((self.many)(n)).expect("room"));
        drop(bufs);
        drop(pool.acquire(self.single));
    }

    fn pool_first(&self) {
        let base = self.bytes();
        let mut pool = self.pool();
        let bufs: [_; 4] =
            std::array::from_fn(|seed| filled(&mut pool, self.usual, seed as u64).expect("room"));
        drop(pool.acquire(self.usual).expect("room"));
        self.holds(base, (self.pieces)(5), "while the pool is there");
        let single = pool.acquire(self.single);
        let mut writer = Writer::new(pool);
        writer.append(50).expect("room").fill(1);
        drop(writer);
        drop(single);
        for ((seed, buf), left) in (0..).zip(bufs).zip((1..=4).rev()) {
            self.holds(base, (self.pieces)(left), "while they are buffers");
            pattern::check(&buf, seed, 0);
            join(drop_elsewhere(buf));
        }
        self.holds(base, 0, "after the last buffer");
    }

    fn parts_and_views_last(&self) {
        let base = self.bytes();
        let mut pool = self.pool();
        let mut buf = pool.acquire(self.usual).expect("room");
        buf.resize(1000, 7).expect("asked for");
        let front = buf.split_to(300);
        let mut view = buf.freeze();
        let parts = [front.freeze(), view.split_to(10), view.clone(), view.slice(5..6), view];
        drop(pool);
        for part in parts {
            self.holds(base, 1, "while a view is");
            assert!(part.iter().all(|&byte| byte == 7));
            join(drop_elsewhere(part));
        }
        self.holds(base, 0, "after the last view");
    }

    /// Drops the pool and its buffers at the same moment, on the thread that acquired and on
    /// others.
    fn races(&self) {
        for round in 0..300 {
            let mut pool = self.pool();
            let mut bufs: Vec<_> = (0..round % 5 + 1).map(|_| pool.acquire(100).expect("room")).collect();
            let mine = bufs.pop();
            let many = self.many;
            let owner = (self.handle)(&pool).map(|mut theirs| {
                thread::spawn(move || {
                    let bufs: Vec<_> =
                        (0..round % 7).map(|n| theirs.acquire(many(n)).expect("room")).collect();
                    drop(theirs);
                    drop(bufs);
                })
            });
            let ending: Vec<_> = bufs.into_iter().map(drop_elsewhere).collect();
            drop(pool);
            drop(mine);
            ending.into_iter().chain(owner).for_each(join);
        }
    }

    /// Checks that no operation calls the allocator, on either side of a hand-over.
    fn steady_state(&self) {
        const ROUNDS: usize = 10_000;
        let mut pool = self.pool();
        drop(pool.acquire(1));
        let mut round = |round: usize| {
            let mut buf = pool.acquire(64 + round % 1000).expect("room");
            buf.extend_from_slice(b"bytes of a chunk").expect("room");
            let other = pool.acquire(1).expect("room");
            let front = buf.split_to(5);
            let view = front.freeze();
            let part = view.slice(2..5);
            drop((view, other));
            drop(part);
            let mut writer = Writer::new(&mut pool);
            writer.append(8).expect("room").fill(1);
            writer.append(100).expect("room").fill(2);
            drop(writer.finish());
            let thawed = buf.freeze().try_into_mut().expect("the only handle");
            drop(thawed);
        };
        (0..self.warm_up).for_each(&mut round);
        let before = self.ledger.calls();
        (0..ROUNDS).for_each(&mut round);
        assert_eq!(self.ledger.calls(), before, "calls of the allocator in {ROUNDS} rounds on one thread");
        // Pieces that the traffic between threads may need, which it would take whenever the other
        // thread is first behind.
        let bufs: [_; 4] = std::array::from_fn(|n| pool.acquire((self.many)(n)).expect("room"));
        drop(bufs);
        hand_over(self.ledger, [ROUNDS / 2; 2], self.late_calls, || {
            pool.acquire(100).expect("at most sixteen are on their way")
        });
        println!("steady state: ok");
    }
}

/// Makes this thread wait in a channel: the standard library keeps a block for that from then on,
/// and would take it at whichever wait is the first that really has to.
fn wait_once() {
    let (sender, receiver) = mpsc::channel::<()>();
    assert!(receiver.recv_timeout(Duration::from_millis(1)).is_err());
    drop(sender);
}

/// Freezes buffers from `acquire` and drops them on another thread, through a queue that was made
/// before: first as many as `rounds` says first, which take the memory that goes round then, and
/// then the others, for which the allocator is called at most `most` times.
fn hand_over<L: Lease>(
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
fn join(handle: JoinHandle<()>) {
    handle.join().expect("dropping does not panic");
}
