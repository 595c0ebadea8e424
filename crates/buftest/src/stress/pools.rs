//! Rounds of everything that hands out buffers: threads that come and go, buffers that are filled,
//! split, shared, sent, kept and dropped anywhere, pools that end meanwhile.

use std::any::Any;
use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

use bufcore::strategy::orphans;
use bufcore::{Buf, BufferPool, Frozen, Lease, SplitLease, Trim, Writer};
use fastrand::Rng;

use super::Round;
use crate::append::Append;
use crate::model::{Claim, Shadow};
use crate::pattern;

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

/// Splits a buffer, if the strategy can.
pub type Split<L> = fn(&mut Buf<L>, usize) -> Option<Buf<L>>;

/// What a stress program has to know of a pool.
pub struct Subject<P: BufferPool<Lease: SplitLease>, S> {
    /// What the threads of a round share.
    pub shared: fn(&mut Rng) -> S,
    /// A thread's pool: a handle of the one that is shared, or one of its own.
    pub pool: fn(&S) -> P,
    /// Splits a buffer, if the strategy can.
    pub split: Split<P::Lease>,
    /// What only this pool does, such as trims. It drops all that it acquires.
    pub own: fn(&mut P, &mut Rng, Moment),
    /// Fails unless all of a pool is free again, of which nothing is out.
    pub at_rest: fn(&mut P),
}

impl<P: BufferPool<Lease: SplitLease> + Clone> Subject<P, P> {
    /// Makes the subject of a pool whose handles threads share.
    pub fn shared(shared: fn(&mut Rng) -> P, own: fn(&mut P, &mut Rng, Moment), at_rest: fn(&mut P)) -> Self {
        Self { shared, pool: P::clone, split: |buf, at| Some(buf.split_off(at)), own, at_rest }
    }
}

/// Trims a pool, and fails unless nothing of it is out and all its memory went.
pub fn all_goes<P: BufferPool<Lease: SplitLease> + Trim>(pool: &mut P) {
    Trim::trim(pool);
    let stats = BufferPool::stats(pool);
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0), "counted as out");
    assert_eq!(stats.reserved_bytes, 0, "memory that no trim finds");
}

enum Handle<L: Lease> {
    Buf(Buf<L>),
    View(Frozen<L>),
}

/// A buffer or view, and what it must hold. It is looked at when it goes.
struct Parcel<L: Lease> {
    /// In front of the handle: it has to end before the memory does.
    claim: Option<Arc<Claim>>,
    /// `None` once it was taken out.
    handle: Option<Handle<L>>,
    seed: u64,
    position: usize,
    len: usize,
}

impl<L: Lease> Parcel<L> {
    /// Fills a fresh buffer.
    fn filled(mut buf: Buf<L>, bytes: usize, seed: u64, shadow: Option<&Arc<Shadow>>) -> Self {
        assert!(buf.is_empty() && buf.capacity() >= bytes, "{} of {bytes} bytes", buf.capacity());
        let claim = claim(&buf, shadow);
        pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
        buf.commit(bytes);
        Self { claim, handle: Some(Handle::Buf(buf)), seed, position: 0, len: bytes }
    }

    fn part(&self, handle: Handle<L>, from: usize, len: usize) -> Self {
        let (claim, position) = (self.claim.clone(), self.position + from);
        Self { claim, handle: Some(handle), seed: self.seed, position, len }
    }

    /// Makes a parcel of another view. Without bytes it holds nothing.
    fn view(&self, view: Frozen<L>, from: usize, len: usize) -> Self {
        let mut part = self.part(Handle::View(view), from, len);
        if len == 0 {
            part.claim = None;
        }
        part
    }

    fn check(&self) {
        let bytes: &[u8] = match &self.handle {
            Some(Handle::Buf(buf)) => buf,
            Some(Handle::View(view)) => view,
            None => return,
        };
        assert_eq!(bytes.len(), self.len, "bytes of a handle");
        pattern::check(bytes, self.seed, self.position);
    }

    /// Does something to the handle, and returns what comes of it besides.
    fn change(&mut self, split: Split<L>, rng: &mut Rng) -> Option<Self> {
        self.check();
        let at = rng.usize(..=self.len);
        let mut besides = None;
        let handle = match self.handle.take()? {
            Handle::Buf(mut buf) => match rng.u8(..6) {
                0 | 1 => Handle::View(buf.freeze()),
                2 => {
                    // Of a buffer in parts, too: each has its bytes to itself, and its room behind
                    // them.
                    self.seed = rng.u64(..);
                    pattern::fill(&mut buf, self.seed, self.position);
                    pattern::fill(buf.spare_mut(), !self.seed, 0);
                    Handle::Buf(buf)
                }
                3 => {
                    buf.consume(at);
                    (self.position, self.len) = (self.position + at, self.len - at);
                    Handle::Buf(buf)
                }
                _ => {
                    let capacity = buf.capacity();
                    if let Some(back) = split(&mut buf, at) {
                        let mut back = self.part(Handle::Buf(back), at, self.len - at);
                        self.len = at;
                        // A part of no bytes holds nothing.
                        if at == 0 {
                            self.claim = None;
                        } else if at == capacity {
                            back.claim = None;
                        }
                        besides = Some(back);
                    }
                    Handle::Buf(buf)
                }
            },
            Handle::View(mut view) => match rng.u8(..5) {
                0 => {
                    besides = Some(self.view(view.clone(), 0, self.len));
                    Handle::View(view)
                }
                1 => {
                    let to = rng.usize(at..=self.len);
                    besides = Some(self.view(view.slice(at..to), at, to - at));
                    Handle::View(view)
                }
                2 => {
                    besides = Some(self.view(view.split_off(at), at, self.len - at));
                    self.len = at;
                    if at == 0 {
                        self.claim = None;
                    }
                    Handle::View(view)
                }
                _ => match view.try_into_mut() {
                    Ok(mut buf) => {
                        // Its own again.
                        self.seed = rng.u64(..);
                        pattern::fill(&mut buf, self.seed, self.position);
                        Handle::Buf(buf)
                    }
                    Err(view) => Handle::View(view),
                },
            },
        };
        self.handle = Some(handle);
        besides
    }
}

impl<L: Lease> Drop for Parcel<L> {
    fn drop(&mut self) {
        self.check();
    }
}

/// Notes the addresses of a fresh buffer, in rounds that have a map.
fn claim<L: Lease>(buf: &Buf<L>, shadow: Option<&Arc<Shadow>>) -> Option<Arc<Claim>> {
    let claim = shadow?.claim(buf.as_ptr(), buf.capacity());
    // Not shared when it is switched off: its count would order what the views have to.
    (!claim.is_empty()).then(|| Arc::new(claim))
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
    orphans::sweep();
    let before = orphans::pending();
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
    orphans::sweep();
    let pending = orphans::pending();
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
                0..20 => held.extend(self.acquire(&mut pool, limit, &mut rng)),
                20..24 => held.push(self.frame(&mut pool, limit, &mut rng)),
                24..44 if !held.is_empty() => {
                    let at = rng.usize(..held.len());
                    let besides = held[at].change(self.subject.split, &mut rng);
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

    fn acquire(&self, pool: &mut P, limit: usize, rng: &mut Rng) -> Option<Parcel<P::Lease>> {
        let bytes = size(limit, rng);
        let seed = rng.u64(..);
        if rng.u8(..8) > 0 {
            let buf = pool.acquire(bytes).ok()?;
            return Some(Parcel::filled(buf, bytes, seed, self.shadow.as_ref()));
        }
        let mut buf = pool.acquire_zeroed(bytes).ok()?;
        assert!(buf.len() == bytes && buf.iter().all(|&byte| byte == 0), "zeroed bytes that are not");
        buf.clear();
        Some(Parcel::filled(buf, bytes, seed, self.shadow.as_ref()))
    }

    /// Writes a frame in some steps; between them, it acquires buffers that are in the frame's way.
    fn frame(&self, pool: &mut P, limit: usize, rng: &mut Rng) -> Parcel<P::Lease> {
        let seed = rng.u64(..);
        let mut writer = Writer::new(pool);
        let mut filled = 0;
        let mut in_the_way = Vec::new();
        for _ in 0..rng.usize(1..=4) {
            let more = size(limit, rng) / 4;
            match writer.append(more) {
                Ok(room) => pattern::fill(room, seed, filled),
                Err(_) => {
                    pattern::check(writer.filled(), seed, 0);
                    break;
                }
            }
            filled += more;
            if rng.bool() {
                in_the_way.extend(self.acquire(writer.get_mut(), limit, rng));
            }
        }
        let buf = writer.finish();
        let claim = claim(&buf, self.shadow.as_ref());
        let parcel = Parcel { claim, handle: Some(Handle::Buf(buf)), seed, position: 0, len: filled };
        parcel.check();
        parcel
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
