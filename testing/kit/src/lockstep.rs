//! A pool and the oracle in lockstep: each step is taken by both, and all that can be seen is
//! compared.

use std::cell::Cell;
use std::mem;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, Frozen, Lease, SplitLease, Writer};

use crate::Kit;
use crate::model::{Claim, Expected, Shadow};
use crate::ops::{Change, Op};

use self::mutate::mutate;

mod frames;
mod mutate;
mod parts;
#[cfg(test)]
mod tests;

enum Handle<L: Lease> {
    Buf(Buf<L>),
    View(Frozen<L>),
}

impl<L: Lease> Handle<L> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Buf(buf) => buf,
            Self::View(view) => view,
        }
    }
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
        self.check();
    }

    #[track_caller]
    fn check(&self) {
        assert!(
            self.handle.bytes() == self.expected.bytes,
            "a handle of {} bytes differs",
            self.expected.bytes.len()
        );
    }
}

/// What looks at the error of a refused request for this number of bytes.
pub type Refusal = fn(AcquireError, usize);

/// A pool, its handles, and what the oracle says about them.
///
/// A step that panics because users' code did, such as a fallback or a waker, has changed nothing
/// but what went by then: it can be caught, and [`compare`](Self::compare) holds.
pub struct Lockstep<P: BufferPool<Lease: SplitLease>> {
    writer: Writer<P>,
    trim: fn(&mut P, Option<Duration>),
    rejects: bool,
    refusal: Option<Refusal>,
    zeroed: fn(&Buf<P::Lease>) -> bool,
    shadow: Arc<Shadow>,
    live: Vec<Live<P::Lease>>,
    frame: Vec<u8>,
    /// Bytes that the frame had before its front was discarded; its place may have as many more.
    forgotten: usize,
    /// Whether the open frame may have a place of its own, which need not be of any bytes that it
    /// shows.
    has_place: bool,
}

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    /// Makes a pool of the kit's.
    pub fn new(kit: &Kit<P>) -> Self {
        Self { trim: kit.trim, ..Self::over((kit.make)(), kit.rejects) }
    }

    /// Takes this pool, with nothing out, and does not trim it. `rejects` is as in [`Kit`].
    pub fn over(pool: P, rejects: bool) -> Self {
        Self {
            writer: Writer::new(pool),
            trim: |_, _| {},
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

    /// Sets how to look at errors, from now on. It replaces what holds for pools whose fallback
    /// keeps its promises and that nobody else uses.
    pub fn set_refusal(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// Sets which fresh buffers have nothing but zeroes in them: those of a pool that wipes.
    pub fn set_zeroed(&mut self, zeroed: fn(&Buf<P::Lease>) -> bool) {
        self.zeroed = zeroed;
    }

    /// Returns the pool. Buffers that are taken from it elsewhere are the caller's, or are
    /// [admitted](Self::admit).
    pub fn pool(&mut self) -> &mut P {
        self.writer.get_mut()
    }

    /// Notes memory that something else of the pool has.
    #[track_caller]
    pub fn claim(&self, start: *const u8, len: usize) -> Claim {
        self.shadow.claim(start, len)
    }

    /// Returns whether nothing is out, nor was forgotten.
    pub fn is_clear(&self) -> bool {
        self.live.is_empty() && self.shadow.live() == 0 && !self.has_place
    }

    /// Counts the bytes of the buffers that are out and that `is_fallback` does not say are a
    /// fallback's. Views are not counted.
    pub fn own_bytes(&self, is_fallback: fn(&Buf<P::Lease>) -> bool) -> usize {
        let bytes = |live: &Live<P::Lease>| match &live.handle {
            Handle::Buf(buf) if !is_fallback(buf) => buf.capacity(),
            _ => 0,
        };
        self.live.iter().map(bytes).sum()
    }

    /// Drops the open frame and all handles, the newest first.
    pub fn drop_all(&mut self) {
        self.finish_frame();
        while let Some(live) = self.live.pop() {
            live.end();
        }
    }

    /// Hands one of the handles over, which `at` picks.
    pub fn take(&mut self, at: usize) -> Option<Live<P::Lease>> {
        if self.live.is_empty() {
            return None;
        }
        let at = at % self.live.len();
        Some(self.live.swap_remove(at))
    }

    /// Counts the bytes that are out, also of handles that were handed over, and of buffers of
    /// which parts are left.
    pub fn claimed_bytes(&self) -> usize {
        self.shadow.bytes()
    }

    /// Exchanges a buffer, if it is one that `at` picks, for what `exchange` makes of it, with the
    /// same bytes and at least the capacity.
    pub fn exchange(&mut self, at: usize, exchange: impl FnOnce(&mut P, Buf<P::Lease>) -> Buf<P::Lease>) {
        let Some(Live { mut expected, handle }) = self.take(at) else { return };
        let handle = match handle {
            Handle::Buf(buf) => {
                let before = buf.as_ptr();
                let buf = exchange(self.writer.get_mut(), buf);
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
            Op::Detach => self.finish_frame(),
            Op::Trim { all } => (self.trim)(self.writer.get_mut(), (!all).then_some(Duration::ZERO)),
            Op::Handle { at, change } => {
                if let Some(live) = self.take(at) {
                    self.change(live, change);
                }
            }
        }
    }

    /// Does a step on one handle.
    fn change(&mut self, live: Live<P::Lease>, change: Change) {
        match change {
            Change::Drop => return,
            Change::DropElsewhere => {
                let gone = thread::scope(|scope| scope.spawn(move || drop(live)).join());
                return gone.unwrap_or_else(|panic| resume_unwind(panic));
            }
            Change::Forget => return mem::forget(live),
            _ => {}
        }
        let Live { mut expected, handle } = live;
        let handle = match handle {
            Handle::Buf(buf) => match change {
                Change::Freeze => Handle::View(buf.freeze()),
                Change::SplitTo { index } => self.split_buf(buf, &mut expected, index, false),
                Change::SplitOff { index } => self.split_buf(buf, &mut expected, index, true),
                _ => {
                    let mut buf = buf;
                    mutate(&mut buf, &mut expected, change);
                    Handle::Buf(buf)
                }
            },
            Handle::View(view) => self.view(view, &mut expected, change),
        };
        self.live.push(Live { expected, handle });
    }

    fn view(
        &mut self,
        mut view: Frozen<P::Lease>,
        expected: &mut Expected,
        change: Change,
    ) -> Handle<P::Lease> {
        let len = view.len();
        let (part, of_part) = match change {
            Change::CloneView => (view.clone(), expected.view(0, len)),
            Change::Slice { from, to } => {
                let (from, to) = (from % (len + 1), to % (len + 1));
                let (from, to) = (from.min(to), from.max(to));
                for outside in [len + 1, usize::MAX] {
                    assert!(panics(|| drop(view.slice(from..outside))));
                }
                (view.slice(from..to), expected.view(from, to))
            }
            Change::SplitTo { index } => {
                let index = index % (len + 1);
                (view.split_to(index), expected.split_view_to(index))
            }
            Change::SplitOff { index } => {
                let index = index % (len + 1);
                (view.split_off(index), expected.split_view_off(index))
            }
            Change::Truncate { len: target } => {
                expected.bytes.truncate(target);
                if target == 0 {
                    expected.let_go();
                }
                view.truncate(target);
                return Handle::View(view);
            }
            Change::Clear => {
                expected.let_go();
                view.clear();
                return Handle::View(view);
            }
            Change::DiscardFront { bytes } => {
                let bytes = bytes % (len + 1);
                expected.consume(bytes);
                if expected.bytes.is_empty() {
                    expected.let_go();
                }
                view.consume(bytes);
                return Handle::View(view);
            }
            Change::Thaw => {
                let unique = expected.is_unique();
                // Views of no memory are not counted: each may or may not thaw, as its pool has
                // buffers of nothing or not.
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
        let pool = self.writer.get_mut();
        let before = pool.stats();
        let acquired = pool.acquire(bytes);
        // A pool that counts nothing has acquired nothing.
        let refusals = pool.stats().since(&before).exhausted;
        let is_exhausted = matches!(acquired, Err(AcquireError::Exhausted { .. }));
        assert!(
            before.acquired == 0 || refusals == u64::from(is_exhausted),
            "{refusals} refusals counted of {acquired:?}"
        );
        match acquired {
            Ok(buf) => {
                assert!(buf.is_empty(), "a fresh buffer has {} bytes", buf.len());
                self.admit(buf, bytes, Vec::new());
            }
            Err(error) => self.refused(error, bytes),
        }
    }

    fn acquire_zeroed(&mut self, bytes: usize) {
        match self.writer.get_mut().acquire_zeroed(bytes) {
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

    /// Looks at the error of a request that was made elsewhere.
    #[track_caller]
    pub fn refused(&self, error: AcquireError, bytes: usize) {
        if let Some(refusal) = self.refusal {
            return refusal(error, bytes);
        }
        let max_capacity = self.writer.get_ref().max_capacity();
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
                let framed = self.frame.len() + self.forgotten > 0;
                assert!(framed || !self.is_clear(), "nothing is out: {error}");
            }
            _ => panic!("{error}"),
        }
    }

    fn grow(&mut self, at: usize, bytes: usize) {
        let Some(Live { mut expected, handle }) = self.take(at) else { return };
        let handle = match handle {
            Handle::Buf(mut buf) => {
                let (before, capacity, spare) = (buf.as_ptr(), buf.capacity(), buf.spare_capacity());
                let grown = self.writer.get_mut().grow(&mut buf, bytes);
                assert!(buf.capacity() >= capacity, "a buffer that is to grow has shrunk");
                match &grown {
                    Ok(()) if bytes <= spare => assert_eq!(buf.capacity(), capacity),
                    Ok(()) => assert!(buf.spare_capacity() >= bytes, "less than was asked for"),
                    Err(error) => assert!(bytes > spare, "{error}"),
                }
                let shrinks = bytes.is_multiple_of(8) && !buf.is_empty();
                if shrinks {
                    self.writer.get_mut().shrink(&mut buf);
                    assert_eq!(buf.capacity(), buf.len());
                }
                // A buffer that was cut before gives its memory back here, with the same capacity.
                if shrinks || (buf.as_ptr(), buf.capacity()) != (before, capacity) {
                    expected.capacity = buf.capacity();
                    // A part that only gives room back still shares the memory of the others.
                    if expected.is_unique() || buf.as_ptr() != before {
                        // In place it has the bytes of the old claim, which ends first.
                        expected.memory = Arc::new(self.shadow.claim(ptr::dangling(), 0));
                        expected.memory = Arc::new(self.shadow.claim(buf.as_ptr(), buf.capacity()));
                    }
                }
                if let Err(error) = grown {
                    let spare = buf.spare_capacity();
                    // A handle is out.
                    self.live.push(Live { expected, handle: Handle::Buf(buf) });
                    match (self.refusal, error) {
                        (Some(refusal), _) => refusal(error, bytes),
                        (None, AcquireError::TooLarge { requested, limit }) => {
                            assert!(requested == bytes && spare <= limit && limit < requested, "{error}");
                        }
                        (None, AcquireError::Exhausted { requested, available }) => {
                            let is_right = requested == bytes && spare <= available && available < requested;
                            assert!(self.rejects && is_right, "{error}, beside {spare} spare bytes");
                        }
                        (None, _) => assert!(self.rejects, "{error}"),
                    }
                    return;
                }
                Handle::Buf(buf)
            }
            view => view,
        };
        self.live.push(Live { expected, handle });
    }

    /// Looks whether everything that can be seen is as the oracle says.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn compare(&mut self) {
        for live in &self.live {
            live.check();
            if let Handle::Buf(buf) = &live.handle {
                assert_eq!(buf.capacity(), live.expected.capacity, "capacity");
            }
        }
        let filled = self.writer.filled();
        assert!(filled == self.frame, "the open frame of {} bytes differs", self.frame.len());
    }

    /// Drops all handles and the pool.
    pub fn finish(mut self, pool_first: bool) {
        if pool_first {
            let Self { writer, live, .. } = self;
            drop(writer);
            live.into_iter().for_each(Live::end);
        } else {
            while let Some(live) = self.live.pop() {
                drop(live);
                self.compare();
            }
        }
    }
}

/// Returns whether `call` panics, as it has to. The panic prints no message, let alone a backtrace,
/// since programs do this often.
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
