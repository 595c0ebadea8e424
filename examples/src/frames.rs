//! Frames with their length in front, each received into one buffer of a pool and never copied again. They come from a socket, where a
//! frame waits in the system until the pool has a buffer for it ([`receive`]), or by a codec for tokio-util, which also takes its bytes
//! from anywhere else ([`FrameCodec`]).

use core::fmt;
use std::io;

use bufcore::{AcquireError, Buf, BufferPool, Frozen, Lease};
use bufworks::net::{ReadError, ReadReady, read_exact_waiting};
use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::codec::{Decoder, Encoder};

/// Bytes in front of a frame: its length, the most significant byte first.
const HEADER_BYTES: usize = 4;

/// What is wrong with a stream of frames, or with what it needs.
#[derive(Debug)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame says that it is longer than frames may be. What follows it cannot be found.
    TooLong {
        /// What it says, in bytes.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The pool has no buffer for a frame. The codec loses nothing: its next call asks again. [`receive`] waits for a buffer, so what it was
    /// refused is one that the pool can never have.
    Acquire(AcquireError),
    /// The stream ended inside a frame.
    Truncated,
    /// The stream failed.
    Io(io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { length, limit } => {
                write!(f, "frame of {length} bytes is over the limit of {limit}")
            }
            Self::Acquire(error) => write!(f, "no buffer for a frame: {error}"),
            Self::Truncated => write!(f, "the stream ended inside a frame"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FrameError {}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ReadError> for FrameError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Acquire(error) => Self::Acquire(error),
            error => ended_inside(error.into()),
        }
    }
}

/// An error of a stream inside a frame.
fn ended_inside(error: io::Error) -> FrameError {
    if error.kind() == io::ErrorKind::UnexpectedEof { FrameError::Truncated } else { FrameError::Io(error) }
}

/// Receives one frame of up to `limit` bytes, into a buffer that it waits for; `None` at the end of the stream.
///
/// Of a frame only the header is read before there is a buffer for it, so the task waits with empty hands: of several that share a budget
/// none keeps the others from being served in turn. The bytes wait in the system, which makes their sender wait.
///
/// Cost: no copy; at least two reads for each frame.
///
/// # Errors
///
/// When a frame is too long, or larger than any buffer of the pool; when the stream fails, or ends inside a frame.
pub async fn receive<S, L, A, F>(
    from: &mut S,
    limit: usize,
    mut acquire: A,
) -> Result<Option<Frozen<L>>, FrameError>
where
    S: ReadReady,
    L: Lease,
    A: FnMut(usize) -> F,
    F: Future<Output = Result<Buf<L>, AcquireError>>,
{
    let mut header = [0; HEADER_BYTES];
    let begun = from.read(&mut header).await?;
    if begun == 0 {
        return Ok(None);
    }
    from.read_exact(&mut header[begun..]).await.map_err(ended_inside)?;
    let length = length(header, limit)?;
    let frame = read_exact_waiting(from, length, || acquire(length)).await?;
    Ok(Some(frame.freeze()))
}

/// Takes frames from a stream of bytes, and does not wait for the pool.
///
/// Between two frames it holds no buffer; inside of one, the buffer of that frame, which has just its length.
pub struct FrameCodec<P: BufferPool> {
    pool: P,
    limit: usize,
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that are there.
    header_len: usize,
    open: Option<Open<P::Lease>>,
}

impl<P: BufferPool> fmt::Debug for FrameCodec<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameCodec")
            .field("limit", &self.limit)
            .field("is_inside_frame", &self.is_inside_frame())
            .finish_non_exhaustive()
    }
}

/// A frame that is coming.
struct Open<L: Lease> {
    buf: Buf<L>,
    missing: usize,
}

impl<P: BufferPool> FrameCodec<P> {
    /// For frames of up to `limit` bytes, in buffers of `pool`.
    pub fn new(pool: P, limit: usize) -> Self {
        Self { pool, limit, header: [0; HEADER_BYTES], header_len: 0, open: None }
    }

    /// Whether the last byte was not the last of a frame.
    pub fn is_inside_frame(&self) -> bool {
        self.header_len != 0 || self.open.is_some()
    }

    /// Takes bytes from `source` until a frame is whole, or there are no more.
    ///
    /// Cost: one copy, from the source to the frame's buffer.
    ///
    /// # Errors
    ///
    /// When a frame is too long, or the pool refuses a buffer.
    pub fn decode_from(
        &mut self,
        source: &mut impl bytes::Buf,
    ) -> Result<Option<Frozen<P::Lease>>, FrameError> {
        if self.open.is_none() {
            while self.header_len < HEADER_BYTES {
                if !source.has_remaining() {
                    return Ok(None);
                }
                self.header[self.header_len] = source.get_u8();
                self.header_len += 1;
            }
            let length = length(self.header, self.limit)?;
            let buf = self.pool.acquire(length).map_err(FrameError::Acquire)?;
            self.header_len = 0;
            self.open = Some(Open { buf, missing: length });
        }
        if let Some(open) = &mut self.open {
            let n = open.missing.min(source.remaining());
            source.copy_to_slice(&mut open.buf.spare_mut()[..n]);
            open.buf.commit(n);
            open.missing -= n;
        }
        Ok(self.open.take_if(|open| open.missing == 0).map(|open| open.buf.freeze()))
    }
}

impl<P: BufferPool> Decoder for FrameCodec<P> {
    type Item = Frozen<P::Lease>;
    type Error = FrameError;

    fn decode(&mut self, source: &mut BytesMut) -> Result<Option<Self::Item>, FrameError> {
        self.decode_from(source)
    }

    fn decode_eof(&mut self, source: &mut BytesMut) -> Result<Option<Self::Item>, FrameError> {
        match self.decode_from(source)? {
            None if self.is_inside_frame() => Err(FrameError::Truncated),
            frame => Ok(frame),
        }
    }
}

/// Copies the frame behind its header. [`send`] does without a copy.
impl<P: BufferPool, T: AsRef<[u8]>> Encoder<T> for FrameCodec<P> {
    type Error = FrameError;

    fn encode(&mut self, frame: T, into: &mut BytesMut) -> Result<(), FrameError> {
        let frame = frame.as_ref();
        let header = header(frame.len(), self.limit)?;
        into.reserve(header.len() + frame.len());
        into.put_slice(&header);
        into.put_slice(frame);
        Ok(())
    }
}

/// What a header says of its frame.
fn length(header: [u8; HEADER_BYTES], limit: usize) -> Result<usize, FrameError> {
    let length = u32::from_be_bytes(header) as usize;
    if length <= limit { Ok(length) } else { Err(FrameError::TooLong { length, limit }) }
}

fn header(length: usize, limit: usize) -> Result<[u8; HEADER_BYTES], FrameError> {
    let fits = u32::try_from(length).ok().filter(|_| length <= limit);
    Ok(fits.ok_or(FrameError::TooLong { length, limit })?.to_be_bytes())
}

/// Writes one frame of up to `limit` bytes.
///
/// Cost: header and frame go to the system as they are, in one call if it takes them so. No copy.
///
/// # Errors
///
/// When the frame is too long, or the stream fails.
pub async fn send<L: Lease>(
    to: &mut (impl AsyncWrite + Unpin),
    frame: Frozen<L>,
    limit: usize,
) -> Result<(), FrameError> {
    let header = header(frame.len(), limit)?;
    to.write_all_buf(&mut bytes::Buf::chain(&header[..], frame)).await?;
    Ok(())
}
