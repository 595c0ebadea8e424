//! Rounds of everything that hands out buffers: threads that come and go, buffers that are filled,
//! split, shared, sent, kept and dropped anywhere, pools that end meanwhile.

use std::any::Any;
use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

use bufcore::{BufferPool, SplitLease};
use bufkeeper::Trim;
use bufkit::orphan;
use fastrand::Rng;

use super::Round;
use crate::model::Shadow;
use crate::parcel::Parcel;

/// The largest ordinary request.
const MAX_BYTES: usize = 64 << 10;
/// The most handles that a thread holds.
const MAX_HELD: usize = 24;
/// Handles that lie about between threads.
const SHELF: usize = 48;
/// How long nobody looks whether a thread has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// When [`Subject::own`] is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// In the midst of a thread's life: it holds buffers, so it must not wait for others to release
    /// theirs without an end.
    Amid,
    /// At the end of its life: it holds none, and what lies about between threads is taken away as
    /// often as it takes.
    End,
}

/// What a stress program has to know of a pool.
pub struct Subject<P: BufferPool<Lease: SplitLease>, S> {
    /// What the threads of a round share.
    pub shared: fn(&mut Rng) -> S,
    /// A thread's pool: a handle of the one that is shared, or one of its own.
    pub pool: fn(&S) -> P,
    /// What only this pool does, such as trims. It drops all that it acquires.
    pub own: fn(&mut P, &mut Rng, Moment),
    /// Fails unless all of a pool is free again, of which nothing is out.
    pub at_rest: fn(&mut P),
}

impl<P: BufferPool<Lease: SplitLease> + Clone> Subject<P, P> {
    /// Makes the subject of a pool whose handles threads share.
    pub fn shared(shared: fn(&mut Rng) -> P, own: fn(&mut P, &mut Rng, Moment), at_rest: fn(&mut P)) -> Self {
        Self { shared, pool: P::clone, own, at_rest }
    }
}

/// Trims a pool, and fails unless nothing of it is out and all its memory went.
pub fn all_goes<P: BufferPool<Lease: SplitLease> + Trim>(pool: &mut P) {
    Trim::trim(pool);
    let stats = BufferPool::stats(pool);
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0), "counted as out");
    assert_eq!(stats.reserved_bytes, 0, "memory that no trim finds");
}

/// Where threads leave handles for others, by an exchange: it orders the two that meet there, and
/// nobody else.
struct Shelf<T>([AtomicPtr<T>; SHELF]);

impl<T> Shelf<T> {
    fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; SHELF])
    }

    /// Puts something there, or nothing, and takes what was there.
    fn exchange(&self, at: usize, value: Option<T>) -> Option<T> {
        let new = value.map_or(ptr::null_mut(), |value| Box::into_raw(Box::new(value)));
        // ORDER: AcqRel pairs with itself: what was done with a handle by who left it happened
        // before.
        let old = self.0[at % SHELF].swap(new, Ordering::AcqRel);
        if old.is_null() {
            return None;
        }
        // SAFETY: all pointers on the shelf came from `Box::into_raw`, and the exchange made this
        // one ours.
        Some(*unsafe { Box::from_raw(old) })
    }

    fn clear(&self) {
        (0..SHELF).for_each(|at| drop(self.exchange(at, None)));
    }
}

impl<T> Drop for Shelf<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

thread_local! {
    /// What a thread still holds when it ends, for its destructors: made before those of the pools,
    /// or after them.
    static LAST: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// What the threads of a round have in common.
struct Crowd<'a, P: BufferPool<Lease: SplitLease>, S> {
    subject: &'a Subject<P, S>,
    round: &'a Round,
    shelf: Shelf<Parcel<P::Lease>>,
    shadow: Option<Arc<Shadow>>,
}

/// Runs one round: pools, and threads that use them until it is over.
///
/// # Panics
///
/// When anything is not as it has to be.
pub fn round<P, S>(subject: &Subject<P, S>, round: &Round)
where
    P: BufferPool<Lease: SplitLease> + Send,
    S: Sync + Send,
{
    let mut rng = round.rng(u64::MAX);
    orphan::sweep();
    let before = orphan::pending();
    let shared = (subject.shared)(&mut rng);
    let shadow = (round.is_mapped && !Shadow::is_off()).then(Shadow::new);
    let crowd = Crowd { subject, round, shelf: Shelf::new(), shadow };
    let mut left = Vec::new();
    thread::scope(|scope| {
        let mut started = 0;
        let mut threads = Vec::new();
        loop {
            let is_over = round.is_over();
            while !is_over && threads.len() < round.threads() {
                let (crowd, shared, number) = (&crowd, &shared, started);
                threads.push(scope.spawn(move || crowd.life(shared, number)));
                started += 1;
            }
            // Joined, since a scope does not wait for the destructors of its threads' variables.
            for at in (0..threads.len()).rev() {
                if threads[at].is_finished() {
                    left.extend(threads.swap_remove(at).join().expect("the process ends with a panic"));
                }
            }
            if is_over {
                if threads.is_empty() {
                    break;
                }
                // Somebody may wait for it.
                crowd.shelf.clear();
            }
            thread::sleep(PAUSE);
        }
    });
    let Crowd { shelf, shadow, .. } = crowd;
    if rng.bool() {
        // All that is out is dropped, then the pools are looked at, then they end.
        drop(shelf);
        left.push((subject.pool)(&shared));
        for pool in &mut left {
            round.step();
            (subject.at_rest)(pool);
        }
        for mut pool in left {
            // It ends with a buffer out, or without.
            let buf = if rng.bool() { pool.acquire(rng.usize(..2000)).ok() } else { None };
            drop(pool);
            drop(buf);
        }
        drop(shared);
    } else {
        drop((left, shared));
        drop(shelf);
    }
    if let Some(shadow) = shadow {
        assert_eq!(shadow.live(), 0, "addresses that are taken when nothing is out");
    }
    orphan::sweep();
    let pending = orphan::pending();
    assert!(pending <= before, "{pending} pools stay after their last buffer, {before} before");
}

impl<P: BufferPool<Lease: SplitLease>, S> Crowd<'_, P, S> {
    /// Runs the life of one thread. What it returns of its pools is looked at when nothing is out.
    fn life(&self, shared: &S, number: u64) -> Option<P> {
        let mut rng = self.round.rng(number);
        if rng.bool() {
            LAST.with_borrow(|_| ());
        }
        let mut pool = (self.subject.pool)(shared);
        let limit = pool.max_capacity();
        let mut held: Vec<Parcel<P::Lease>> = Vec::new();
        for _ in 0..rng.usize(20..2000) {
            if self.round.is_over() {
                break;
            }
            self.round.step();
            match rng.u8(..64) {
                0..20 => held.extend(
                    Parcel::acquired(&mut pool, size(limit, &mut rng), self.shadow.as_ref(), &mut rng).ok(),
                ),
                20..24 => held.extend(
                    Parcel::framed(&mut pool, size(limit, &mut rng), self.shadow.as_ref(), &mut rng).ok(),
                ),
                24..44 if !held.is_empty() => {
                    let at = rng.usize(..held.len());
                    let besides = held[at].change(&mut rng);
                    held.extend(besides);
                }
                44..52 => {
                    let given =
                        if held.is_empty() { None } else { Some(held.swap_remove(rng.usize(..held.len()))) };
                    held.extend(self.shelf.exchange(rng.usize(..), given));
                }
                52 => {
                    // The pool ends, or this handle of it, with buffers out.
                    drop(pool);
                    pool = (self.subject.pool)(shared);
                }
                53 => (self.subject.own)(&mut pool, &mut rng, Moment::Amid),
                54 => thread::yield_now(),
                _ if !held.is_empty() => drop(held.swap_remove(rng.usize(..held.len()))),
                _ => {}
            }
            while held.len() > MAX_HELD {
                drop(held.swap_remove(rng.usize(..held.len())));
            }
        }
        match rng.u8(..4) {
            0 => {
                drop(pool);
                LAST.with_borrow_mut(|last| held.into_iter().for_each(|parcel| last.push(Box::new(parcel))));
                None
            }
            1 => {
                held.into_iter().for_each(|parcel| drop(self.shelf.exchange(rng.usize(..), Some(parcel))));
                Some(pool)
            }
            2 => {
                drop(held);
                self.shelf.clear();
                (self.subject.own)(&mut pool, &mut rng, Moment::End);
                Some(pool)
            }
            _ => {
                drop(pool);
                None
            }
        }
    }
}

/// Draws a size as traffic has them: mostly small, some large, some of no bytes.
fn size(limit: usize, rng: &mut Rng) -> usize {
    let most = match rng.u8(..32) {
        0 => return 0,
        1..20 => 512,
        20..31 => 8 << 10,
        _ => MAX_BYTES,
    };
    rng.usize(1..=most.min(limit.max(1)))
}
