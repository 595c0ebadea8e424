//! The state of a reader of frames, without the stream: which bytes have come, and what is next.
//!
//! # Invariants
//!
//! - F1: bytes of the stream that belong to no frame yet are in one place: `own`, or the buffer of
//!   `held`.
//! - F2: between calls, `own` has no more than a part of a frame.
//! - F3: outside of the pool's memory, bytes of the stream are in `own` alone. They are zeroed
//!   there before the memory is freed or grows, since the pool may wipe its own.

use alloc::vec::Vec;
use core::hint::black_box;
use core::ops::{ControlFlow, Range, RangeInclusive};

use bufcore::{Buf, Frozen, Lease};

use super::FrameError;
use super::framing::{Framing, Parsed};

/// `own` keeps no more memory than this when it is empty. So few bytes of a frame wait there for
/// the next ones, and not in a chunk.
const OWN_BYTES: usize = 64;

/// Bytes of a header for which `own` has room in advance, whatever a framing claims.
const HEADER_BYTES: usize = 4096;

/// What comes next.
pub(super) enum Step<L: Lease> {
    /// A frame is whole.
    Frame(Frozen<L>),
    /// Bytes of the stream are to go to [`State::room`].
    Read,
    /// An empty buffer of this number of bytes is to go to [`State::give`].
    Acquire(usize),
}

/// A buffer of the pool.
enum Held<L: Lease> {
    /// Bytes of the stream. The first `searched` of them have no end of a frame.
    Chunk { buf: Buf<L>, searched: usize },
    /// The bytes of one frame.
    Frame { buf: Buf<L>, missing: usize },
    /// Bytes of the stream, which begin with a whole frame, or did when they came.
    Whole(Frozen<L>),
}

/// What the next buffer is for.
#[derive(Clone)]
enum Plan {
    Chunk,
    /// One frame. Its bytes are in this range of the stream.
    Frame(Range<usize>),
}

pub(super) struct State<F, L: Lease> {
    framing: F,
    /// Bytes of the next chunk, in `chunks`; none when each frame has a buffer of its own.
    chunk: usize,
    /// The least and the most that a chunk may have.
    chunks: RangeInclusive<usize>,
    held: Option<Held<L>>,
    /// Bytes that are in no buffer of the pool: the first `own_len` of these.
    own: Vec<u8>,
    own_len: usize,
    plan: Plan,
    /// The frame that the next buffer is for has come as a whole.
    is_whole: bool,
    /// The bytes up to the next frame are dropped: those of one that is too long.
    is_skipping: bool,
}

impl<F: Framing, L: Lease> State<F, L> {
    pub(super) fn new(framing: F, chunks: RangeInclusive<usize>) -> Self {
        let chunk = *chunks.start();
        Self {
            framing,
            chunk,
            chunks,
            held: None,
            own: Vec::new(),
            own_len: 0,
            plan: Plan::Chunk,
            is_whole: false,
            is_skipping: false,
        }
    }

    pub(super) fn set_chunks(&mut self, bytes: usize) {
        (self.chunk, self.chunks) = (bytes, bytes..=bytes);
    }

    /// Gives each frame a buffer of its own, if frames have a header.
    pub(super) fn set_by_frame(&mut self) {
        if self.framing.header_bytes() > 0 {
            self.set_chunks(0);
        }
    }

    /// Returns the bytes of the stream that belong to no frame yet.
    pub(super) fn rest(&self) -> &[u8] {
        match &self.held {
            Some(Held::Chunk { buf, .. } | Held::Frame { buf, .. }) => buf,
            Some(Held::Whole(view)) => view,
            None => &self.own[..self.own_len],
        }
    }

    /// Returns whether a frame has begun and was not returned.
    pub(super) fn is_inside_frame(&self) -> bool {
        self.is_skipping || matches!(self.held, Some(Held::Frame { .. })) || !self.rest().is_empty()
    }

    /// Returns whether the rest of a frame that is too long is dropped.
    #[cfg(all(feature = "futures-core-0_3", feature = "tokio"))]
    pub(super) fn is_skipping(&self) -> bool {
        self.is_skipping
    }

    /// Returns whether the buffer that [`step`](Self::step) asked for needs bytes of the stream.
    #[cfg(feature = "tokio")]
    pub(super) fn needs_more(&self) -> bool {
        !self.is_whole
    }

    /// Says what comes next.
    pub(super) fn step(&mut self) -> Result<Step<L>, FrameError> {
        let step = self.next_step();
        self.noted(step)
    }

    /// Notes whether a frame that is too long is skipped.
    fn noted<T>(&mut self, result: Result<T, FrameError>) -> Result<T, FrameError> {
        if matches!(result, Err(FrameError::TooLong { .. })) {
            self.is_skipping = self.framing.find_next(&[]).is_some();
        }
        result
    }

    fn next_step(&mut self) -> Result<Step<L>, FrameError> {
        loop {
            self.skip()?;
            match &mut self.held {
                Some(Held::Whole(view)) => match parse(&self.framing, view, 0, self.is_skipping)? {
                    Parsed::Frame { payload, total } if total <= view.len() => {
                        let mut frame = view.split_to(total);
                        if view.is_empty() {
                            self.held = None;
                        }
                        frame.truncate(payload.end);
                        frame.consume(payload.start);
                        return Ok(Step::Frame(frame));
                    }
                    _ => self.let_go(),
                },
                Some(Held::Frame { missing, .. }) => {
                    if *missing > 0 {
                        return Ok(Step::Read);
                    }
                    let Some(Held::Frame { buf, .. }) = self.held.take() else { continue };
                    return Ok(Step::Frame(buf.freeze()));
                }
                Some(Held::Chunk { buf, searched }) => {
                    let parsed = parse(&self.framing, buf, *searched, self.is_skipping)?;
                    *searched = buf.len();
                    match parsed {
                        Parsed::Frame { total, .. } if total <= buf.len() => {
                            let Some(Held::Chunk { buf, .. }) = self.held.take() else { continue };
                            self.held = Some(Held::Whole(buf.freeze()));
                        }
                        Parsed::Frame { total, .. } if total <= buf.capacity() => return Ok(Step::Read),
                        Parsed::Incomplete if buf.spare_capacity() > 0 => return Ok(Step::Read),
                        // By frame: what comes next is a header.
                        Parsed::Incomplete if self.chunk == 0 => self.let_go(),
                        parsed => return Ok(self.acquire(parsed)),
                    }
                }
                None => {
                    let parsed = parse(&self.framing, &self.own[..self.own_len], 0, self.is_skipping)?;
                    return match parsed {
                        Parsed::Incomplete if self.chunk == 0 => Ok(Step::Read),
                        // Its header was read first, and is longer than the frame.
                        Parsed::Frame { total, .. } if self.chunk < total && total < self.own_len => {
                            Err(FrameError::Contradiction)
                        }
                        parsed => Ok(self.acquire(parsed)),
                    };
                }
            }
        }
    }

    /// Drops what has come of a frame that is too long.
    fn skip(&mut self) -> Result<(), FrameError> {
        if !self.is_skipping {
            return Ok(());
        }
        let skipped = find_next(&self.framing, self.rest())?.unwrap_or(ControlFlow::Break(0));
        self.is_skipping = skipped.is_continue();
        let (ControlFlow::Break(n) | ControlFlow::Continue(n)) = skipped;
        match &mut self.held {
            Some(Held::Chunk { buf, searched }) => {
                buf.consume(n);
                *searched = 0;
            }
            Some(Held::Whole(view)) => {
                view.consume(n);
                if view.is_empty() {
                    self.held = None;
                }
            }
            Some(Held::Frame { .. }) => {}
            None => {
                self.own.copy_within(n..self.own_len, 0);
                self.own[self.own_len - n..].fill(0);
                self.own_len -= n;
            }
        }
        Ok(())
    }

    /// Plans the next buffer. It has more room than what has come takes.
    fn acquire(&mut self, parsed: Parsed) -> Step<L> {
        self.is_whole = matches!(parsed, Parsed::Frame { total, .. } if total <= self.rest().len());
        // A chunk with a large part of a frame would be copied to its buffer.
        if matches!(parsed, Parsed::Frame { total, .. } if total > self.chunks.end() / 2) {
            self.chunk = *self.chunks.start();
        }
        let (plan, bytes) = match parsed {
            // What is behind the payload comes with it.
            Parsed::Frame { payload, total } if total > self.chunk && payload.end < total => {
                (Plan::Chunk, total)
            }
            Parsed::Frame { payload, total } if total > self.chunk => {
                let bytes = payload.len();
                (Plan::Frame(payload), bytes)
            }
            Parsed::Frame { .. } => (Plan::Chunk, self.chunk),
            Parsed::Incomplete => {
                let twice = self.rest().len().saturating_mul(2).min(self.framing.max_bytes());
                (Plan::Chunk, twice.max(self.chunk))
            }
        };
        self.plan = plan;
        Step::Acquire(bytes)
    }

    /// Takes the buffer that [`step`](Self::step) asked for, and moves to it what has come.
    ///
    /// # Errors
    ///
    /// When it is not empty, or has less room than was asked for. The state is as before then.
    pub(super) fn give(&mut self, mut buf: Buf<L>, requested: usize) -> Result<(), FrameError> {
        let available = buf.spare_capacity();
        let no_room = FrameError::NoRoom { requested, available };
        if available < requested || !buf.is_empty() {
            return Err(no_room);
        }
        let bytes = self.rest();
        let held = match self.plan.clone() {
            Plan::Chunk => {
                buf.extend_from_slice(bytes).map_err(|_error| no_room)?;
                let searched = match self.held {
                    Some(Held::Chunk { searched, .. }) => searched,
                    _ => 0,
                };
                Held::Chunk { buf, searched }
            }
            Plan::Frame(payload) => {
                let here = bytes.get(payload.start..).unwrap_or_default();
                buf.extend_from_slice(here).map_err(|_error| no_room)?;
                Held::Frame { missing: payload.len() - here.len(), buf }
            }
        };
        self.held = Some(held);
        self.empty_own();
        Ok(())
    }

    /// Notes that the pool refused what [`step`](Self::step) asked for. Returns whether a step asks
    /// for less: a smaller chunk.
    pub(super) fn refused(&mut self) -> bool {
        let least = *self.chunks.start();
        let is_larger = matches!(self.plan, Plan::Chunk) && self.chunk > least;
        if is_larger {
            self.set_chunks(least);
        }
        is_larger
    }

    /// Moves what has come of a frame to memory of its own, so that no chunk is held.
    pub(super) fn let_go(&mut self) {
        if matches!(self.held, Some(Held::Chunk { .. } | Held::Whole(_))) {
            let mut own = core::mem::take(&mut self.own);
            own.clear();
            // A header follows without growing (F3).
            own.reserve(self.rest().len().max(self.framing.header_bytes().min(HEADER_BYTES)));
            own.extend_from_slice(self.rest());
            (self.own_len, self.own) = (own.len(), own);
            self.held = None;
        }
    }

    /// Lets the chunk go, as [`let_go`](Self::let_go) does, if it has few bytes. Returns whether it
    /// did.
    pub(super) fn let_go_of_few(&mut self) -> bool {
        let is_few = matches!(&self.held, Some(Held::Chunk { buf, .. }) if buf.len() <= OWN_BYTES);
        if is_few {
            self.let_go();
        }
        is_few
    }

    /// Lends the room for the next bytes of the stream; it is not empty after [`Step::Read`].
    pub(super) fn room(&mut self) -> &mut [u8] {
        match &mut self.held {
            Some(Held::Chunk { buf, .. }) => buf.spare_mut(),
            Some(Held::Frame { buf, missing }) => {
                let spare = buf.spare_mut();
                let most = spare.len().min(*missing);
                &mut spare[..most]
            }
            Some(Held::Whole(_)) => &mut [],
            None => {
                // A header whose length is not known grows byte by byte.
                let (least, most) = (self.own_len + 1, self.own_len + HEADER_BYTES);
                let bytes = self.framing.header_bytes().clamp(least, most);
                if bytes > self.own.capacity() {
                    let mut own = Vec::with_capacity(bytes.next_power_of_two());
                    own.extend_from_slice(&self.own[..self.own_len]);
                    wipe(&mut core::mem::replace(&mut self.own, own));
                }
                self.own.resize(bytes, 0);
                &mut self.own[self.own_len..]
            }
        }
    }

    /// Notes that `n` bytes were read into [`room`](Self::room), which has so many.
    pub(super) fn filled(&mut self, n: usize) {
        match &mut self.held {
            Some(Held::Chunk { buf, .. }) => {
                buf.commit(n);
                // More bytes wait where a read fills all of a chunk, and few where it fills little.
                if buf.spare_capacity() == 0 {
                    self.chunk = self.chunk.saturating_mul(2).min(*self.chunks.end());
                } else if buf.len() < self.chunk / 4 {
                    self.chunk = (self.chunk / 2).max(*self.chunks.start());
                }
            }
            Some(Held::Frame { buf, missing }) => {
                buf.commit(n);
                *missing -= n;
            }
            Some(Held::Whole(_)) => {}
            None => self.own_len += n,
        }
    }

    /// Ends the stream. Returns a last frame that has no end, if the framing takes it.
    ///
    /// # Errors
    ///
    /// When the stream ended inside a frame, or the rest is too long for one.
    pub(super) fn end(&mut self) -> Result<Option<Frozen<L>>, FrameError> {
        if self.is_skipping && !self.framing.takes_rest(&[])? {
            return Err(FrameError::Truncated);
        }
        if self.is_skipping || !self.is_inside_frame() {
            self.is_skipping = false;
            self.empty_own();
            self.held = None;
            return Ok(None);
        }
        let takes_rest = self.framing.takes_rest(self.rest());
        let takes_rest = self.noted(takes_rest)?;
        match self.held.take() {
            Some(Held::Chunk { buf, .. }) if takes_rest => Ok(Some(buf.freeze())),
            held => {
                self.held = held;
                Err(FrameError::Truncated)
            }
        }
    }
}

impl<F, L: Lease> State<F, L> {
    /// Zeroes the bytes in `own`, and frees its memory unless that is small.
    fn empty_own(&mut self) {
        wipe(&mut self.own);
        self.own_len = 0;
        if self.own.capacity() > OWN_BYTES {
            self.own = Vec::new();
        }
    }
}

/// Parses as the framing does, and checks what it says.
pub(super) fn parse(
    framing: &impl Framing,
    stream: &[u8],
    searched: usize,
    is_skipping: bool,
) -> Result<Parsed, FrameError> {
    if is_skipping {
        return Ok(Parsed::Incomplete);
    }
    let parsed = framing.parse(stream, searched)?;
    let limit = framing.max_bytes();
    let has_room = stream.len() < limit;
    match &parsed {
        Parsed::Incomplete if has_room => Ok(parsed),
        Parsed::Incomplete => Err(FrameError::TooLong { length: stream.len(), limit }),
        Parsed::Frame { payload, total } => {
            let is_sound = payload.start <= payload.end && payload.end <= *total && *total > 0;
            match payload.start <= stream.len() {
                true if is_sound => Ok(parsed),
                // Where the payload begins has not come.
                false if is_sound && has_room => Ok(Parsed::Incomplete),
                _ => Err(FrameError::Contradiction),
            }
        }
    }
}

/// Finds the next frame as the framing does, and checks what it says: fewer bytes than the longest
/// frame stay, so that a reader has room for more.
pub(super) fn find_next(
    framing: &impl Framing,
    stream: &[u8],
) -> Result<Option<ControlFlow<usize, usize>>, FrameError> {
    let next = framing.find_next(stream);
    let is_sound = match next {
        None => true,
        Some(ControlFlow::Break(n)) => n <= stream.len(),
        Some(ControlFlow::Continue(n)) if n < stream.len() => stream.len() - n < framing.max_bytes(),
        Some(ControlFlow::Continue(n)) => n == stream.len(),
    };
    if is_sound { Ok(next) } else { Err(FrameError::Contradiction) }
}

/// Zeroes bytes, also where the memory is freed next.
fn wipe(bytes: &mut Vec<u8>) {
    bytes.fill(0);
    // So that the zeroes are written.
    black_box(bytes);
}

impl<F, L: Lease> Drop for State<F, L> {
    fn drop(&mut self) {
        self.empty_own();
    }
}
