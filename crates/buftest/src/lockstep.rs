//! A pool and the oracle in lockstep: each step is taken by both, and all that can be seen is compared.

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Once};
use std::thread;

use bufcore::{AcquireError, Buf, BufferPool, Frozen, Lease, SplitLease};

use crate::Kit;
use crate::conformance::Frames;
use crate::model::{Claim, Expected, Shadow};
use crate::ops::Op;
use crate::pattern;

enum Handle<L: Lease> {
    Buf(Buf<L>),
    View(Frozen<L>),
}

/// A handle and what the oracle says about it.
pub struct Live<L: Lease> {
    // Declared first and so dropped first: the claim ends before the memory does.
    expected: Expected,
    handle: Handle<L>,
}

impl<L: Lease> Live<L> {
    /// Drops it.
    ///
    /// # Panics
    ///
    /// When its bytes are not those that it must have.
    #[track_caller]
    pub fn end(self) {
        let bytes = match &self.handle {
            Handle::Buf(buf) => &buf[..],
            Handle::View(view) => &view[..],
        };
        assert!(bytes == self.expected.bytes, "a handle of {} bytes differs", self.expected.bytes.len());
    }
}

impl<L: Lease> fmt::Debug for Live<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("len", &self.expected.bytes.len()).finish_non_exhaustive()
    }
}

/// What looks at the error of a refused request for so many bytes.
pub type Refusal = fn(AcquireError, usize);

/// A pool, its handles, and what the oracle says about them.
///
/// A step that panics because users' code did, such as a fallback or a waker, has changed nothing but what went by then: it can be caught,
/// and [`compare`](Self::compare) holds.
pub struct Lockstep<P: BufferPool> {
    pool: P,
    frames: fn(&mut P) -> Frames<'_, P>,
    rejects: bool,
    refusal: Option<Refusal>,
    zeroed: fn(&Buf<P::Lease>) -> bool,
    shadow: Arc<Shadow>,
    live: Vec<Live<P::Lease>>,
    frame: Vec<u8>,
    /// Bytes that the frame had before its front was discarded; its place may have as many more.
    forgotten: usize,
    /// Whether the open frame may have a place of its own, which need not be of any bytes that it shows.
    has_place: bool,
}

impl<P: BufferPool> fmt::Debug for Lockstep<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lockstep").field("live", &self.live).finish_non_exhaustive()
    }
}

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    /// A pool of the kit's.
    #[must_use]
    pub fn new(kit: &Kit<P>) -> Self {
        Self::over((kit.make)(), kit.frames, kit.rejects)
    }

    /// This pool, with nothing out. `frames` and `rejects` as in [`Kit`].
    #[must_use]
    pub fn over(pool: P, frames: fn(&mut P) -> Frames<'_, P>, rejects: bool) -> Self {
        Self {
            pool,
            frames,
            rejects,
            refusal: None,
            zeroed: |_| false,
            shadow: Shadow::new(),
            live: Vec::new(),
            frame: Vec::new(),
            forgotten: 0,
            has_place: false,
        }
    }

    /// From now on this looks at errors, instead of what holds for pools whose fallback keeps its promises and whom nobody else uses.
    pub fn set_refusal(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// Which fresh buffers have nothing but zeroes in them: those of a pool that wipes.
    pub fn set_zeroed(&mut self, zeroed: fn(&Buf<P::Lease>) -> bool) {
        self.zeroed = zeroed;
    }

    /// The pool. Buffers that are taken from it elsewhere are the caller's, or are [admitted](Self::admit).
    pub fn pool(&mut self) -> &mut P {
        &mut self.pool
    }

    /// The pool, what is to be in its open frame, and how many bytes more that has had, which are gone.
    pub fn pool_and_frame(&mut self) -> (&mut P, &mut Vec<u8>, &mut usize) {
        (&mut self.pool, &mut self.frame, &mut self.forgotten)
    }

    /// The frame was closed, and none is open.
    pub fn frame_is_closed(&mut self) {
        self.frame.clear();
        self.forgotten = 0;
        self.has_place = false;
    }

    /// Notes memory that something else of the pool has.
    #[track_caller]
    pub fn claim(&self, start: *const u8, len: usize) -> Claim {
        self.shadow.claim(start, len)
    }

    /// Whether nothing is out, nor was forgotten.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.live.is_empty() && self.shadow.live() == 0 && !self.has_place
    }

    /// Bytes of the buffers that are out and that `is_fallback` does not say are a fallback's. Views are not counted.
    pub fn own_bytes(&self, is_fallback: fn(&Buf<P::Lease>) -> bool) -> usize {
        let bytes = |live: &Live<P::Lease>| match &live.handle {
            Handle::Buf(buf) if !is_fallback(buf) => buf.capacity(),
            _ => 0,
        };
        self.live.iter().map(bytes).sum()
    }

    /// Hands one of the handles over, which `at` picks.
    pub fn take(&mut self, at: usize) -> Option<Live<P::Lease>> {
        if self.live.is_empty() {
            return None;
        }
        let at = at % self.live.len();
        Some(self.live.swap_remove(at))
    }

    /// Drops all handles, the newest first.
    pub fn drop_all(&mut self) {
        while let Some(live) = self.live.pop() {
            live.end();
        }
    }

    /// Exchanges a buffer, if it is one that `at` picks, for what `exchange` makes of it, with the same bytes and at least the capacity.
    pub fn exchange(&mut self, at: usize, exchange: impl FnOnce(&mut P, Buf<P::Lease>) -> Buf<P::Lease>) {
        let Some(Live { mut expected, handle }) = self.take(at) else { return };
        let handle = match handle {
            Handle::Buf(buf) => {
                let before = buf.as_ptr();
                let buf = exchange(&mut self.pool, buf);
                if buf.as_ptr() != before {
                    assert!(buf.capacity() >= expected.capacity);
                    expected.capacity = buf.capacity();
                    expected.memory = Arc::new(self.shadow.claim(buf.as_ptr(), buf.capacity()));
                }
                Handle::Buf(buf)
            }
            view => view,
        };
        self.live.push(Live { expected, handle });
    }

    /// Takes one step.
    pub fn step(&mut self, op: Op) {
        match op {
            Op::Acquire { bytes } => self.acquire(bytes),
            Op::AcquireZeroed { bytes } => self.acquire_zeroed(bytes),
            Op::Writable { bytes, seed } => self.writable(bytes, seed),
            Op::FilledMut { seed } => self.filled_mut(seed),
            Op::FrameConsume { bytes } => self.frame_consume(bytes),
            Op::FrameTruncate { len } => self.frame_truncate(len),
            Op::Unsplit { at, other } => self.unsplit(at, other),
            Op::Grow { at, bytes } => self.grow(at, bytes),
            Op::Detach => self.detach(),
            Op::Fill { at, .. }
            | Op::Extend { at, .. }
            | Op::Push { at, .. }
            | Op::Advance { at, .. }
            | Op::WriteSpare { at, .. }
            | Op::Resize { at, .. }
            | Op::Truncate { at, .. }
            | Op::Clear { at }
            | Op::DiscardFront { at, .. }
            | Op::Freeze { at }
            | Op::CloneView { at }
            | Op::Slice { at, .. }
            | Op::SplitTo { at, .. }
            | Op::SplitOff { at, .. }
            | Op::Compact { at }
            | Op::ShrinkTo { at, .. }
            | Op::Thaw { at }
            | Op::Drop { at }
            | Op::DropElsewhere { at }
            | Op::Forget { at } => {
                if !self.live.is_empty() {
                    let at = at % self.live.len();
                    let live = self.live.swap_remove(at);
                    self.handle(live, op);
                }
            }
        }
    }

    /// A step on one handle.
    fn handle(&mut self, live: Live<P::Lease>, op: Op) {
        let Live { mut expected, handle } = live;
        match op {
            Op::Drop { .. } => return drop_in_order(expected, handle),
            Op::DropElsewhere { .. } => {
                let gone = thread::scope(|scope| scope.spawn(move || drop_in_order(expected, handle)).join());
                return gone.unwrap_or_else(|panic| resume_unwind(panic));
            }
            Op::Forget { .. } => {
                mem::forget(expected.memory);
                return mem::forget(handle);
            }
            _ => {}
        }
        let handle = match handle {
            Handle::Buf(buf) => match op {
                Op::Freeze { .. } => Handle::View(buf.freeze()),
                Op::SplitTo { index, .. } => self.split_buf(buf, &mut expected, index, false),
                Op::SplitOff { index, .. } => self.split_buf(buf, &mut expected, index, true),
                _ => {
                    let mut buf = buf;
                    mutate(&mut buf, &mut expected, op);
                    Handle::Buf(buf)
                }
            },
            Handle::View(view) => self.view(view, &mut expected, op),
        };
        self.live.push(Live { expected, handle });
    }

    fn view(&mut self, mut view: Frozen<P::Lease>, expected: &mut Expected, op: Op) -> Handle<P::Lease> {
        let len = view.len();
        let (part, of_part) = match op {
            Op::CloneView { .. } => (view.clone(), expected.view(0, len)),
            Op::Slice { from, to, .. } => {
                let (from, to) = (from % (len + 1), to % (len + 1));
                let (from, to) = (from.min(to), from.max(to));
                for outside in [len + 1, usize::MAX] {
                    assert!(panics(|| drop(view.slice(from..outside))));
                }
                (view.slice(from..to), expected.view(from, to))
            }
            Op::SplitTo { index, .. } => {
                let index = index % (len + 1);
                (view.split_to(index), expected.split_view_to(index))
            }
            Op::SplitOff { index, .. } => {
                let index = index % (len + 1);
                (view.split_off(index), expected.split_view_off(index))
            }
            Op::Truncate { len: target, .. } => {
                expected.bytes.truncate(target);
                if target == 0 {
                    expected.let_go();
                }
                view.truncate(target);
                return Handle::View(view);
            }
            Op::Clear { .. } => {
                expected.let_go();
                view.clear();
                return Handle::View(view);
            }
            Op::DiscardFront { bytes, .. } => {
                let bytes = bytes % (len + 1);
                expected.consume(bytes);
                if expected.bytes.is_empty() {
                    expected.let_go();
                }
                view.consume(bytes);
                return Handle::View(view);
            }
            Op::Thaw { .. } => {
                let unique = expected.is_unique();
                // Views of no memory are not counted: each may or may not thaw, as its pool has buffers of nothing or not.
                let uncounted = expected.memory.is_empty();
                return match view.try_into_mut() {
                    Ok(buf) => {
                        assert!(unique || uncounted, "thawed while other views exist");
                        Handle::Buf(buf)
                    }
                    Err(view) => {
                        assert!(!unique || uncounted, "the only view did not thaw");
                        Handle::View(view)
                    }
                };
            }
            _ => return Handle::View(view),
        };
        self.live.push(Live { expected: of_part, handle: Handle::View(part) });
        Handle::View(view)
    }

    fn acquire(&mut self, bytes: usize) {
        match self.pool.acquire(bytes) {
            Ok(buf) => {
                assert!(buf.is_empty(), "a fresh buffer has {} bytes", buf.len());
                self.admit(buf, bytes, Vec::new());
            }
            Err(error) => self.refused(error, bytes),
        }
    }

    fn acquire_zeroed(&mut self, bytes: usize) {
        match self.pool.acquire_zeroed(bytes) {
            Ok(buf) => self.admit(buf, bytes, vec![0; bytes]),
            Err(error) => self.refused(error, bytes),
        }
    }

    /// Takes a buffer over that was acquired elsewhere: for `asked` bytes, and with these in it.
    #[track_caller]
    pub fn admit(&mut self, mut buf: Buf<P::Lease>, asked: usize, bytes: Vec<u8>) {
        let capacity = buf.capacity();
        if (self.zeroed)(&buf) {
            assert!(buf.spare_mut().iter().all(|&byte| byte == 0), "a pool that wipes lends what was there");
        }
        assert_eq!(capacity, asked, "what a buffer can hold is what was asked for");
        let memory: Arc<Claim> = Arc::new(self.shadow.claim(buf.as_ptr(), capacity));
        self.live.push(Live { expected: Expected { bytes, capacity, memory }, handle: Handle::Buf(buf) });
    }

    #[track_caller]
    fn refused(&self, error: AcquireError, bytes: usize) {
        if let Some(refusal) = self.refusal {
            return refusal(error, bytes);
        }
        let max_capacity = self.pool.max_capacity();
        match error {
            AcquireError::TooLarge { requested, limit } => {
                assert!(requested == bytes && limit < requested, "{error}");
                assert!(
                    limit <= max_capacity && bytes + self.frame.len() + self.forgotten > max_capacity,
                    "{error}"
                );
            }
            AcquireError::Exhausted { requested, .. } => {
                assert!(self.rejects && requested >= bytes && bytes > 0, "{error}");
                let taken = !self.live.is_empty() || self.shadow.live() > 0;
                assert!(taken || self.frame.len() + self.forgotten > 0, "{error}");
            }
            _ => panic!("{error}"),
        }
    }

    fn writable(&mut self, bytes: usize, seed: u64) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        match frames.writable(bytes) {
            Ok(room) => {
                assert_eq!(room.len(), bytes);
                self.has_place = true;
                pattern::fill(room, seed, 0);
                let from = self.frame.len();
                self.frame.resize(from + bytes, 0);
                pattern::fill(&mut self.frame[from..], seed, 0);
                // The frame's place is taken as any buffer's is. Its claim ends here, since it may move.
                drop(self.shadow.claim(frames.filled().as_ptr(), frames.filled().len()));
            }
            Err(error) => {
                if let Some(refusal) = self.refusal {
                    return refusal(error, bytes);
                }
                let wanted = bytes + self.frame.len();
                assert!(self.rejects && wanted > 0, "{error}");
            }
        }
    }

    fn filled_mut(&mut self, seed: u64) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        pattern::fill(frames.filled_mut(), seed, 0);
        pattern::fill(&mut self.frame, seed, 0);
    }

    fn frame_consume(&mut self, bytes: usize) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        let bytes = bytes % (self.frame.len() + 1);
        frames.consume(bytes);
        self.frame.drain(..bytes);
        self.forgotten += bytes;
    }

    fn frame_truncate(&mut self, len: usize) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        // Up to a few more than there are, which changes nothing.
        let len = len % (self.frame.len() + 3);
        frames.truncate(len);
        self.frame.truncate(len);
    }

    fn grow(&mut self, at: usize, bytes: usize) {
        let Some(Live { mut expected, handle }) = self.take(at) else { return };
        let handle = match handle {
            Handle::Buf(mut buf) => {
                let (before, capacity) = (buf.as_ptr(), buf.capacity());
                match self.pool.grow(&mut buf, bytes) {
                    Ok(()) if bytes > capacity => {
                        assert_eq!(buf.capacity(), bytes, "what a buffer can hold is what was asked for");
                        expected.capacity = bytes;
                        expected.memory = Arc::new(self.shadow.claim(buf.as_ptr(), bytes));
                    }
                    Ok(()) => assert_eq!((buf.as_ptr(), buf.capacity()), (before, capacity)),
                    Err(error) => {
                        assert_eq!(
                            (buf.as_ptr(), buf.capacity()),
                            (before, capacity),
                            "changed by a failed call"
                        );
                        assert!(bytes > capacity, "{error}");
                        // A handle is out.
                        self.live.push(Live { expected, handle: Handle::Buf(buf) });
                        return self.refused(error, bytes);
                    }
                }
                Handle::Buf(buf)
            }
            view => view,
        };
        self.live.push(Live { expected, handle });
    }

    /// Joins two handles, where they are neighbours.
    fn unsplit(&mut self, at: usize, other: usize) {
        let Some(Live { expected: mut first, handle }) = self.take(at) else { return };
        let Some(Live { expected: second, handle: other }) = self.take(other) else {
            return self.live.push(Live { expected: first, handle });
        };
        let is_one = Arc::ptr_eq(&first.memory, &second.memory);
        let (handle, rest) = match (handle, other) {
            (Handle::Buf(mut buf), Handle::Buf(other)) => {
                let is_next = buf.as_ptr().addr() + buf.capacity() == other.as_ptr().addr();
                let is_joined = is_one && is_next && (buf.spare_capacity() == 0 || other.is_empty());
                let (has_room, others_room) = (buf.capacity() > 0, other.capacity() > 0);
                let rest = buf.unsplit(other).err().map(Handle::Buf);
                assert_eq!(rest.is_none(), is_joined || !has_room || !others_room, "joined, or not");
                if rest.is_none() && others_room {
                    if has_room {
                        first.bytes.extend_from_slice(&second.bytes);
                        first.capacity += second.capacity;
                    } else {
                        first = second.clone();
                    }
                }
                (Handle::Buf(buf), rest)
            }
            (Handle::View(mut view), Handle::View(other)) => {
                let is_joined = is_one && view.as_ptr().addr() + view.len() == other.as_ptr().addr();
                let (has_bytes, others_bytes) = (!view.is_empty(), !other.is_empty());
                let rest = view.unsplit(other).err().map(Handle::View);
                assert_eq!(rest.is_none(), is_joined || !has_bytes || !others_bytes, "joined, or not");
                if rest.is_none() && others_bytes {
                    if has_bytes {
                        first.capacity = first.capacity.max(first.bytes.len() + second.capacity);
                        first.bytes.extend_from_slice(&second.bytes);
                    } else {
                        first = second.clone();
                    }
                }
                (Handle::View(view), rest)
            }
            (handle, other) => (handle, Some(other)),
        };
        self.live.push(Live { expected: first, handle });
        self.live.extend(rest.map(|handle| Live { expected: second, handle }));
    }

    fn detach(&mut self) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        let buf = match frames.detach() {
            Ok(buf) => buf,
            Err(error) => {
                assert!(self.rejects, "{error}");
                return;
            }
        };
        assert!(frames.filled().is_empty(), "a frame is open after `detach`");
        let bytes = mem::take(&mut self.frame);
        (self.forgotten, self.has_place) = (0, false);
        let len = bytes.len();
        self.admit(buf, len, bytes);
    }

    /// Looks whether everything that can be seen is as the oracle says.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn compare(&mut self) {
        for live in &self.live {
            let (bytes, capacity) = match &live.handle {
                Handle::Buf(buf) => (&buf[..], Some(buf.capacity())),
                Handle::View(view) => (&view[..], None),
            };
            assert!(bytes == live.expected.bytes, "a handle of {} bytes differs", live.expected.bytes.len());
            assert!(
                capacity.is_none_or(|capacity| capacity == live.expected.capacity),
                "capacity {capacity:?}"
            );
        }
        if let Some(frames) = (self.frames)(&mut self.pool) {
            assert!(frames.filled() == self.frame, "the open frame of {} bytes differs", self.frame.len());
        }
    }

    /// Drops all handles and the pool.
    pub fn finish(mut self, pool_first: bool) {
        if pool_first {
            let Self { pool, live, .. } = self;
            drop(pool);
            for Live { expected, handle } in live {
                let bytes = match &handle {
                    Handle::Buf(buf) => &buf[..],
                    Handle::View(view) => &view[..],
                };
                assert!(bytes == expected.bytes, "a handle differs after its pool was dropped");
                drop_in_order(expected, handle);
            }
        } else {
            while let Some(Live { expected, handle }) = self.live.pop() {
                drop_in_order(expected, handle);
                self.compare();
            }
        }
    }
}

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    /// Splits a buffer, if it is one that `at` picks: in front of `index`, modulo what there is, as `split_off` does, or as `split_to`.
    pub fn split(&mut self, at: usize, index: usize, off: bool) {
        let Some(Live { mut expected, handle }) = self.take(at) else { return };
        let handle = match handle {
            Handle::Buf(buf) => self.split_buf(buf, &mut expected, index, off),
            view => view,
        };
        self.live.push(Live { expected, handle });
    }

    /// Splits a buffer in front of `index`, modulo what there is; returns the front.
    fn split_buf(
        &mut self,
        mut buf: Buf<P::Lease>,
        expected: &mut Expected,
        index: usize,
        off: bool,
    ) -> Handle<P::Lease> {
        let limit = if off { buf.capacity() } else { buf.len() };
        let index = index % (limit + 1);
        let len = expected.bytes.len();
        let mut of_back = expected.slice(index.min(len), len);
        of_back.capacity = expected.capacity - index;
        expected.bytes.truncate(index);
        expected.capacity = index;
        // Of two parts, the one that has no bytes has no share in the memory; the front, if both have none.
        if expected.capacity == 0 {
            expected.memory = Arc::new(Claim::nothing());
        } else if of_back.capacity == 0 {
            of_back.memory = Arc::new(Claim::nothing());
        }
        let (front, back) = if off {
            let back = buf.split_off(index);
            (buf, back)
        } else {
            (buf.split_to(index), buf)
        };
        self.live.push(Live { expected: of_back, handle: Handle::Buf(back) });
        Handle::Buf(front)
    }
}

/// Whether `call` panics, as it has to: without a message, let alone a backtrace, since programs do this often.
pub fn panics(call: impl FnOnce()) -> bool {
    thread_local!(static ON_PURPOSE: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !ON_PURPOSE.get() {
                usual(info);
            }
        }));
    });
    ON_PURPOSE.set(true);
    let panicked = catch_unwind(AssertUnwindSafe(call)).is_err();
    ON_PURPOSE.set(false);
    panicked
}

/// The claim ends before the memory does.
fn drop_in_order<L: Lease>(expected: Expected, handle: Handle<L>) {
    drop(expected);
    drop(handle);
}

/// A step on a buffer, on both sides. Steps for views change nothing.
fn mutate<L: Lease>(buf: &mut Buf<L>, expected: &mut Expected, op: Op) {
    let (len, room) = (buf.len(), buf.spare_capacity());
    let vec = &mut expected.bytes;
    match op {
        Op::Fill { seed, .. } => {
            pattern::fill(buf, seed, 0);
            pattern::fill(vec, seed, 0);
        }
        Op::Extend { bytes, seed, .. } => {
            let mut more = vec![0; bytes];
            pattern::fill(&mut more, seed, 0);
            match buf.extend_from_slice(&more) {
                Ok(()) => vec.extend_from_slice(&more),
                Err(error) => assert!(bytes > room && (error.requested, error.available) == (bytes, room)),
            }
        }
        Op::Push { value, .. } => match buf.push(value) {
            Ok(()) => vec.push(value),
            Err(_) => assert_eq!(room, 0),
        },
        Op::Advance { bytes, .. } => {
            let bytes = bytes % (room + 1);
            let shown = buf.spare_mut()[..bytes].to_vec();
            buf.commit(bytes);
            vec.extend_from_slice(&shown);
            let past = buf.spare_capacity() + 1;
            assert!(panics(|| buf.commit(past)), "advanced past the end");
        }
        Op::WriteSpare { seed, .. } => pattern::fill(buf.spare_mut(), seed, 0),
        Op::Resize { len: target, value, .. } => match buf.resize(target, value) {
            Ok(()) => vec.resize(target, value),
            Err(error) => assert!(target > len + room && error.available == room),
        },
        Op::Truncate { len: target, .. } => {
            buf.truncate(target);
            vec.truncate(target);
        }
        Op::Clear { .. } => {
            buf.clear();
            vec.clear();
        }
        Op::DiscardFront { bytes, .. } => {
            let bytes = bytes % (len + 1);
            buf.consume(bytes);
            expected.consume(bytes);
        }
        Op::Compact { .. } => {
            let (before, capacity) = (buf.as_ptr().addr(), buf.capacity());
            buf.compact();
            // What comes back is in front.
            let gained = buf.capacity() - capacity;
            assert_eq!(before - buf.as_ptr().addr(), gained);
            assert!(gained == 0 || expected.is_unique(), "another handle shares the memory");
            expected.capacity += gained;
        }
        Op::ShrinkTo { bytes, .. } => {
            let bytes = bytes % (len + room + 1);
            buf.shrink_to(bytes);
            expected.capacity = bytes.max(len);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use bufcore::HeapPool;

    use super::*;
    use crate::bytes::Bytes;

    /// Any bytes are a program that a sound pool passes, with buffers that are exchanged.
    #[test]
    fn bytes_are_programs() {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let program: Vec<u8> = (0..600).map(|_| rng.u8(..)).collect();
            let mut bytes = Bytes::new(&program);
            let mut lockstep = Lockstep::over(HeapPool::new(), |_| None, false);
            while !bytes.is_empty() {
                match bytes.below(8) {
                    0 => lockstep.exchange(bytes.below(256), |pool, buf| {
                        let mut other = pool.acquire(buf.capacity()).expect("the heap serves");
                        other.extend_from_slice(&buf).expect("as much room");
                        other
                    }),
                    _ => lockstep.step(Op::decode(&mut bytes)),
                }
                lockstep.compare();
            }
            lockstep.drop_all();
            assert!(lockstep.is_clear());
            lockstep.finish(seed % 2 == 0);
        }
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn other_bytes_are_seen() {
        let mut lockstep = Lockstep::over(HeapPool::new(), |_| None, false);
        let mut buf = lockstep.pool().acquire(10).expect("the heap serves");
        buf.resize(10, 1).expect("asked for");
        lockstep.admit(buf, 10, vec![2; 10]);
        lockstep.compare();
    }
}
