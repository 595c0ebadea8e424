//! tokio-util's codecs over a pool.

use core::fmt;
use core::ops::ControlFlow;

use bufcore::{Buf, BufferPool, Frozen, Lease};
use bytes::{Buf as _, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::FrameError;
use super::framing::{Framing, Parsed};
use super::state::{find_next, parse};

/// Decodes and encodes frames for tokio-util's `Framed`, `FramedRead` and `FramedWrite`, over any
/// `AsyncRead` and `AsyncWrite`, such as a TLS stream. Each frame is in a buffer of a pool.
///
/// The buffer is acquired when the frame's length is known, and the frame's bytes are moved to it
/// as they arrive. The buffer of `Framed` thus keeps its 8 KiB, whereas that of
/// `LengthDelimitedCodec` grows to the largest frame.
///
/// A decoder cannot wait: if the pool fails, the item is [`FrameError::Acquire`]. As any error of a
/// decoder it ends the stream of `Framed`, whose next item is `None`: close the connection. No byte
/// is lost, but a `Framed` that is polled further reads on before it decodes, and doubles its own
/// buffer, outside of the budget, whenever that is full. To wait for a budget, use
/// [`FrameReader`](super::FrameReader), which holds no buffer for a silent connection either.
///
/// Cost: one copy of each frame in each direction, from and to the buffers of `Framed`. These
/// buffers are not zeroed, even if the pool wipes.
///
/// ```
/// # #[cfg(feature = "shard")] {
/// use bufworks::frames::{LengthDelimited, PoolCodec};
/// use bufworks::shard::ShardPool;
/// use tokio_util::codec::{Decoder, Encoder, Framed};
/// # use bytes::BytesMut;
///
/// let pool = ShardPool::builder().max_bytes(32 << 20).build()?;
/// # let socket = tokio::io::empty();
/// // was: Framed::new(socket, LengthDelimitedCodec::new())
/// let frames = Framed::new(socket, PoolCodec::new(pool.clone(), LengthDelimited::new(8 << 20)));
/// # let mut codec = PoolCodec::new(pool, LengthDelimited::new(8 << 20));
/// # let mut wire = BytesMut::new();
/// # codec.encode("hello", &mut wire)?;
/// # assert_eq!(codec.decode(&mut wire)?.unwrap(), *b"hello");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PoolCodec<P: BufferPool, F> {
    pool: P,
    framing: F,
    /// Bytes at the front that have no end of a frame.
    searched: usize,
    partial: Option<Partial<P::Lease>>,
    is_skipping: bool,
    skipped: u64,
}

/// A frame whose bytes come.
struct Partial<L: Lease> {
    buf: Buf<L>,
    missing: usize,
    /// Bytes between the payload and the next frame, which have yet to come.
    behind: usize,
}

impl<P: BufferPool, F: Framing> PoolCodec<P, F> {
    /// Makes a codec with its pool: a handle of a shared pool, or a `&mut`.
    pub fn new(pool: P, framing: F) -> Self {
        Self { pool, framing, searched: 0, partial: None, is_skipping: false, skipped: 0 }
    }

    /// Returns how many frames were too long and therefore skipped, as
    /// [`skip_too_long`](super::Delimited::skip_too_long) demands.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Acquires a buffer with room for so many bytes.
    fn acquire(&mut self, requested: usize) -> Result<Buf<P::Lease>, FrameError> {
        let buf = self.pool.acquire(requested)?;
        let available = buf.spare_capacity();
        if available < requested || !buf.is_empty() {
            return Err(FrameError::NoRoom { requested, available });
        }
        Ok(buf)
    }

    /// Moves to a frame what has come of it. Returns it when it is whole.
    fn fill(&mut self, from: &mut BytesMut) -> Result<Option<Frozen<P::Lease>>, FrameError> {
        let Some(Partial { buf, missing, behind }) = &mut self.partial else { return Ok(None) };
        let n = from.len().min(*missing);
        let (requested, available) = (n, buf.spare_capacity());
        buf.extend_from_slice(&from[..n]).map_err(|_full| FrameError::NoRoom { requested, available })?;
        from.advance(n);
        *missing -= n;
        let n = from.len().min(*behind);
        if *missing == 0 {
            from.advance(n);
            *behind -= n;
        }
        if *missing + *behind > 0 {
            return Ok(None);
        }
        Ok(self.partial.take().map(|partial| partial.buf.freeze()))
    }

    /// Drops what has come of a frame that is too long.
    fn skip(&mut self, skipped: ControlFlow<usize, usize>, from: &mut BytesMut) {
        let (ControlFlow::Break(n) | ControlFlow::Continue(n)) = skipped;
        from.advance(n);
        self.searched = 0;
        self.is_skipping = skipped.is_continue();
    }
}

impl<P: BufferPool, F: Framing> Decoder for PoolCodec<P, F> {
    type Item = Frozen<P::Lease>;
    type Error = FrameError;

    fn decode(&mut self, from: &mut BytesMut) -> Result<Option<Self::Item>, FrameError> {
        if self.is_skipping {
            let skipped = find_next(&self.framing, from)?.unwrap_or(ControlFlow::Break(0));
            self.skip(skipped, from);
        }
        while self.partial.is_none() {
            if from.len() < self.searched {
                // Others took bytes out of the buffer of `Framed`.
                self.searched = 0;
            }
            match parse(&self.framing, from, self.searched, self.is_skipping) {
                Ok(Parsed::Incomplete) => {
                    self.searched = if self.is_skipping { 0 } else { from.len() };
                    return Ok(None);
                }
                Ok(Parsed::Frame { payload, total }) => {
                    let (missing, behind) = (payload.len(), total - payload.end);
                    let buf = self.acquire(missing)?;
                    from.advance(payload.start);
                    self.searched = 0;
                    self.partial = Some(Partial { buf, missing, behind });
                }
                Err(error @ FrameError::TooLong { .. }) => {
                    let skipped = find_next(&self.framing, from)?;
                    let skipped = skipped.filter(|skipped| *skipped != ControlFlow::Break(0)).ok_or(error)?;
                    self.skipped += 1;
                    self.skip(skipped, from);
                }
                Err(error) => return Err(error),
            }
        }
        self.fill(from)
    }

    fn decode_eof(&mut self, from: &mut BytesMut) -> Result<Option<Self::Item>, FrameError> {
        if let Some(frame) = self.decode(from)? {
            return Ok(Some(frame));
        }
        if self.is_skipping {
            if !self.framing.takes_rest(&[])? {
                return Err(FrameError::Truncated);
            }
            self.is_skipping = false;
            from.clear();
        }
        if self.partial.is_none() && from.is_empty() {
            return Ok(None);
        }
        if self.partial.is_some() {
            return Err(FrameError::Truncated);
        }
        match self.framing.takes_rest(from) {
            Ok(true) => {}
            Ok(false) => return Err(FrameError::Truncated),
            Err(FrameError::TooLong { .. }) if self.framing.find_next(&[]).is_some() => {
                self.skipped += 1;
                from.clear();
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let buf = self.acquire(from.len())?;
        self.searched = 0;
        self.partial = Some(Partial { buf, missing: from.len(), behind: 0 });
        self.fill(from)
    }
}

impl<P: BufferPool, F: Framing, T: AsRef<[u8]>> Encoder<T> for PoolCodec<P, F> {
    type Error = FrameError;

    fn encode(&mut self, frame: T, to: &mut BytesMut) -> Result<(), FrameError> {
        let frame = frame.as_ref();
        let [before, behind] = self.framing.around(frame)?;
        let parts = [before.as_slice(), frame, behind.as_slice()];
        to.reserve(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| to.extend_from_slice(part));
        Ok(())
    }
}

impl<P: BufferPool, F: fmt::Debug> fmt::Debug for PoolCodec<P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_inside_frame = self.partial.is_some();
        f.debug_struct("PoolCodec")
            .field("framing", &self.framing)
            .field("is_inside_frame", &is_inside_frame)
            .finish_non_exhaustive()
    }
}
