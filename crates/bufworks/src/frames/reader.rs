//! Frames of a stream, one after the other.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use std::io::{self, Read};

use bufcore::author::count_read;
use bufcore::{AcquireError, Buf, Frozen, Lease};

use super::FrameError;
use super::framing::Framing;
use super::state::{State, Step};

/// Bytes of a chunk unless set: as much as `BufReader` has where few bytes wait, and as much as
/// makes a call of the system cheap where many do.
const CHUNK_BYTES: RangeInclusive<usize> = 8 << 10..=64 << 10;

/// Takes frames from a stream, into memory of a pool.
///
/// The reader does not own the pool: each call gets a closure that acquires, so that many readers
/// can share a pool, or use it in turn. The table of [the module](super) shows which buffer a
/// reader holds when.
///
/// A frame is read-only, and has no room before it. [`try_into_mut`](Frozen::try_into_mut) fails
/// while the reader or another frame uses a part of the same chunk, as for most frames; [by
/// frame](Self::by_frame) it succeeds. The guide shows how to put another header in front.
///
/// ```
/// use bufworks::frames::{Delimited, FrameReader};
/// use bufworks::HeapPool;
///
/// let mut pool = HeapPool::new();
/// let mut lines = FrameReader::new(&b"one\ntwo\nthree"[..], Delimited::byte(b'\n', 1000));
/// let mut acquire = |bytes| pool.acquire(bytes);
/// assert_eq!(lines.next_frame(&mut acquire)?.unwrap(), *b"one");
/// assert_eq!(lines.next_frame(&mut acquire)?.unwrap(), *b"two");
/// assert_eq!(lines.next_frame(&mut acquire)?.unwrap(), *b"three"); // the stream ends here
/// assert!(lines.next_frame(&mut acquire)?.is_none());
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
pub struct FrameReader<S, F, L: Lease> {
    pub(super) stream: S,
    pub(super) state: State<F, L>,
}

impl<S, F: Framing, L: Lease> FrameReader<S, F, L> {
    /// Makes a reader that adapts the size of its chunks to the traffic. It acquires no memory yet.
    ///
    /// The first chunk has 8 KiB. The next one has twice as much, up to 64 KiB, if a read has
    /// filled a chunk, and half as much if it has filled less than a quarter. Before and between
    /// frames of more than 32 KiB, which get separate buffers, it has 8 KiB. If `acquire` fails for
    /// a larger one, the reader requests 8 KiB from then on.
    ///
    /// A stream with a buffer of its own, such as a `BufReader`, adds a copy.
    #[must_use]
    pub fn new(stream: S, framing: F) -> Self {
        Self { stream, state: State::new(framing, CHUNK_BYTES) }
    }

    /// Reads in chunks of this fixed number of bytes, at least one. A kept frame then keeps at most
    /// one such chunk.
    ///
    /// ```
    /// use bufworks::HeapLease;
    /// use bufworks::frames::{Delimited, FrameReader};
    ///
    /// let framing = Delimited::byte(b'\n', 1 << 20);
    /// let lines = FrameReader::<_, _, HeapLease>::new(std::io::stdin(), framing).chunks_of(256 << 10);
    /// # drop(lines);
    /// ```
    #[must_use]
    pub fn chunks_of(mut self, bytes: usize) -> Self {
        self.state.set_chunks(bytes.max(1));
        self
    }

    /// Returns the stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns the stream. Bytes that are read from it directly are missing in the frames.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns whether bytes of the next frame have been read: a part of it, or all.
    ///
    /// ```
    /// use bufworks::frames::{FrameError, FrameReader, LengthDelimited};
    /// use bufworks::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frames = FrameReader::new(&b"\0\0\0\x05hel"[..], LengthDelimited::new(100));
    /// assert!(!frames.is_inside_frame());
    /// let ended = frames.next_frame(|bytes| pool.acquire(bytes));
    /// assert!(matches!(ended, Err(FrameError::Truncated)) && frames.is_inside_frame());
    /// ```
    pub fn is_inside_frame(&self) -> bool {
        self.state.is_inside_frame()
    }

    /// Returns the stream, and a copy of the bytes that were read from it and are not in a frame,
    /// such as those of another protocol. Inside of a frame that has a separate buffer, its header
    /// is not included.
    ///
    /// The copy is an ordinary vector: it is not zeroed when it is freed, even if the pool wipes.
    ///
    /// ```
    /// use bufworks::frames::{Delimited, FrameReader};
    /// use bufworks::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let mut lines = FrameReader::new(&b"UPGRADE\n\x01\x02"[..], Delimited::byte(b'\n', 1000));
    /// let line = lines.next_frame(|bytes| pool.acquire(bytes))?;
    /// assert_eq!(line.unwrap(), *b"UPGRADE");
    /// assert_eq!(lines.into_parts().1, [1, 2]);
    /// # Ok::<(), bufworks::frames::FrameError>(())
    /// ```
    pub fn into_parts(self) -> (S, Vec<u8>) {
        let rest = self.state.rest().to_vec();
        (self.stream, rest)
    }

    /// Gives each frame a buffer of its own, of exactly its length, which is acquired when its
    /// header has arrived. Framings without a header, such as delimiters, keep using chunks.
    ///
    /// Cost: two reads for each frame, and no copy. A length of several bytes as a varint needs a
    /// read for each of them.
    ///
    /// ```
    /// use bufworks::frames::{FrameReader, LengthDelimited};
    /// use bufworks::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let frames = FrameReader::new(&b"\0\0\0\x05hello"[..], LengthDelimited::new(100));
    /// let frame = frames.by_frame().next_frame(|bytes| {
    ///     assert_eq!(bytes, 5);
    ///     pool.acquire(bytes)
    /// });
    /// assert_eq!(frame?.unwrap(), *b"hello");
    /// # Ok::<(), bufworks::frames::FrameError>(())
    /// ```
    #[must_use]
    pub fn by_frame(mut self) -> Self {
        self.state.set_by_frame();
        self
    }
}

impl<S: Read, F: Framing, L: Lease> FrameReader<S, F, L> {
    /// Returns the next frame, and blocks until it has arrived; `None` at the end of the stream.
    ///
    /// `acquire` is called with a number of bytes, and returns an empty buffer with room for them.
    /// It may block, as `acquire_timeout` of a bounded pool does: the reader then holds no buffer.
    ///
    /// Cost: see [the module](super). A chunk is held while the stream blocks. If the stream fails
    /// instead, for example by a timeout, a chunk with at most 64 bytes is released.
    ///
    /// # Errors
    ///
    /// [`FrameError`]. After `Acquire`, `NoRoom` and `Io`, even of the kind `WouldBlock`, no byte
    /// is lost: another call continues. `Interrupted` is handled internally. After `TooLong`,
    /// unless the framing [skips](super::Delimited::skip_too_long) the frame, and after other
    /// errors each call returns the same error again. After `Truncated` a call reads the stream
    /// again first: if more bytes have arrived, as in a file that grows, the frame continues.
    ///
    /// ```
    /// use bufworks::frames::{FrameReader, LengthDelimited};
    /// use bufworks::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frames = FrameReader::new(&b"\0\0\0\x05hello"[..], LengthDelimited::new(100));
    /// let frame = frames.next_frame(|bytes| pool.acquire(bytes))?;
    /// assert_eq!(frame.unwrap(), *b"hello");
    /// # Ok::<(), bufworks::frames::FrameError>(())
    /// ```
    pub fn next_frame(
        &mut self,
        mut acquire: impl FnMut(usize) -> Result<Buf<L>, AcquireError>,
    ) -> Result<Option<Frozen<L>>, FrameError> {
        loop {
            match self.state.step()? {
                Step::Frame(frame) => return Ok(Some(frame)),
                Step::Acquire(bytes) => {
                    // It may block until others have released theirs.
                    self.state.let_go();
                    match acquire(bytes) {
                        Ok(buf) => self.state.give(buf, bytes)?,
                        Err(_) if self.state.refused() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Step::Read => {
                    if self.read()? == 0 {
                        return self.state.end();
                    }
                }
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            let room = self.state.room();
            let most = room.len();
            match self.stream.read(room) {
                Ok(n) => {
                    let n = count_read(n, most)?;
                    self.state.filled(n);
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Such as that of a time-out: there may be nothing more for long.
                    self.state.let_go_of_few();
                    return Err(error);
                }
            }
        }
    }
}

impl<S: fmt::Debug, F: Framing, L: Lease> fmt::Debug for FrameReader<S, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReader")
            .field("stream", &self.stream)
            .field("is_inside_frame", &self.is_inside_frame())
            .finish_non_exhaustive()
    }
}
