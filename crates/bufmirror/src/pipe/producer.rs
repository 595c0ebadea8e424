//! The end that writes.

use core::fmt;

use bufcore::{ByteSink, ReserveError};

use super::end::End;
use crate::copy::copy;
use crate::ring::over;

/// The end of a [`Pipe`](super::Pipe) that writes. Dropping it closes the pipe: the consumer reads
/// what is left.
///
/// No method waits, and none may be interrupted by another use of the same end.
///
/// ```
/// let mut pipe = bufmirror::Pipe::<64>::new();
/// let (mut producer, mut consumer) = pipe.ends();
/// producer.reserve(5)?.copy_from_slice(b"hello"); // in place
/// producer.commit(5);
/// producer.put(b" world")?; // by copying
/// assert_eq!(consumer.peek(), b"hello world");
/// # Ok::<(), bufmirror::ReserveError>(())
/// ```
pub struct PipeProducer<'a> {
    end: End<'a, true>,
}

impl<'a> PipeProducer<'a> {
    pub(super) fn new(end: End<'a, true>) -> Self {
        Self { end }
    }

    /// Appends all of `bytes`.
    ///
    /// Cost: two copies, and as [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// When there is less room now; then nothing is written.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<16>::new();
    /// let (mut producer, mut consumer) = pipe.ends();
    /// producer.put(b"hello")?;
    /// assert_eq!(producer.put(b"world").unwrap_err().available, 3);
    /// assert_eq!(consumer.peek(), b"hello");
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        copy(self.reserve(bytes.len())?, bytes);
        self.end.advance(bytes.len());
        Ok(())
    }

    /// Appends as many of `bytes` as there is room for now; returns their number.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<16>::new();
    /// let (mut producer, consumer) = pipe.ends();
    /// assert_eq!(producer.put_some(b"hello, world"), 8); // an interrupt handler counts the rest as lost
    /// assert_eq!(consumer.len(), 8);
    /// ```
    #[inline]
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = if self.end.has(bytes.len()) { bytes.len() } else { self.end.known() };
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }

    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// Contents: zeros or recycled bytes.
    ///
    /// Cost: a comparison; when there seems to be too little room, a look at the consumer's
    /// position.
    ///
    /// # Errors
    ///
    /// When there is less room now.
    #[inline]
    pub fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        if !self.end.has(n) {
            return Err(ReserveError { requested: n, available: self.end.known() });
        }
        let mut room = self.end.window(n);
        // SAFETY:
        // - valid and initialised: within the memory, since `at` is less than the capacity, and `n`
        //   at most that.
        // - exclusive: it borrows this end, which has the bytes alone (P2).
        Ok(unsafe { room.as_mut() })
    }

    /// Counts the next `n` bytes of room as written: the consumer can read them.
    ///
    /// They are what was written into the last reservation, or recycled bytes.
    ///
    /// Cost: a copy of them, and a plain store that the consumer sees.
    ///
    /// # Panics
    ///
    /// When `n` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<64>::new();
    /// let (mut producer, consumer) = pipe.ends();
    /// let room = producer.spare_capacity();
    /// producer.reserve(room)?[..3].copy_from_slice(b"abc"); // such as a controller's registers
    /// producer.commit(3);
    /// assert_eq!(consumer.len(), 3);
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, n: usize) {
        if !self.end.has(n) {
            over("commit", n, self.end.known(), "of room");
        }
        self.end.advance(n);
    }

    /// Returns the bytes that can be written now, in one piece. There may be more a moment later,
    /// never less.
    #[inline]
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.end.count()
    }

    /// Returns whether the consumer was dropped: nobody will read what is written.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.end.is_closed()
    }

    /// Returns the bytes that the pipe holds when it is full.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }
}

impl ByteSink for PipeProducer<'_> {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.reserve(n)
    }

    #[inline]
    #[track_caller]
    fn commit(&mut self, n: usize) {
        self.commit(n);
    }
}

impl fmt::Debug for PipeProducer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeProducer")
            .field("spare_capacity", &self.spare_capacity())
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
