//! The end that reads.

use core::fmt;

use bufcore::ByteSource;

use super::end::End;
use crate::GetError;
use crate::copy::copy;
use crate::ring::over;

/// The end of a [`Pipe`](super::Pipe) that reads. Dropping it tells the producer.
///
/// No method waits, and none may be interrupted by another use of the same end.
///
/// ```
/// use bufmirror::bufcore::ByteSource;
///
/// let mut pipe = bufmirror::Pipe::<64>::new();
/// let (mut producer, mut consumer) = pipe.ends();
/// producer.put(b"one\ntwo\nthr")?;
/// let lines = consumer.pieces(b'\n').into_iter().count();
/// assert_eq!((lines, consumer.peek()), (2, &b"thr"[..]));
/// # Ok::<(), bufmirror::ReserveError>(())
/// ```
pub struct PipeConsumer<'a> {
    end: End<'a, false>,
}

impl<'a> PipeConsumer<'a> {
    pub(super) fn new(end: End<'a, false>) -> Self {
        Self { end }
    }

    /// Lends all bytes that can be read, in one slice. They stay in the pipe until
    /// [`consume`](Self::consume).
    ///
    /// Cost: a look at the producer's position.
    #[inline]
    pub fn peek(&mut self) -> &[u8] {
        let len = self.end.look();
        let filled = self.end.window(len);
        // SAFETY:
        // - valid and initialised: within the memory, since `at` is less than the capacity, and
        //   `len` at most that.
        // - not written meanwhile: it borrows this end, which has the bytes alone (P2).
        unsafe { filled.as_ref() }
    }

    /// Drops the oldest `n` bytes: their room is the producer's again.
    ///
    /// Cost: a plain store that the producer sees.
    ///
    /// # Panics
    ///
    /// When `n` is over [`len`](Self::len).
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, n: usize) {
        if !self.end.has(n) {
            over("consume", n, self.end.known(), "filled");
        }
        self.end.advance(n);
    }

    /// Takes bytes out, until `into` is full.
    ///
    /// # Errors
    ///
    /// When there are fewer now; then none is taken.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<64>::new();
    /// let (mut producer, mut consumer) = pipe.ends();
    /// producer.put(&7_u16.to_le_bytes())?;
    /// let mut word = [0; 4];
    /// assert_eq!(consumer.get(&mut word).unwrap_err().available, 2); // the rest has yet to come
    /// producer.put(&[0; 2])?;
    /// consumer.get(&mut word).unwrap();
    /// assert_eq!(u32::from_le_bytes(word), 7);
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    pub fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        let filled = self.peek();
        let available = filled.len();
        let Some(bytes) = filled.get(..into.len()) else {
            return Err(GetError { requested: into.len(), available });
        };
        copy(into, bytes);
        self.end.advance(into.len());
        Ok(())
    }

    /// Takes as many bytes out as there are now, and `into` has room for; returns their number.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<64>::new();
    /// let (mut producer, mut consumer) = pipe.ends();
    /// producer.put(b"abc")?;
    /// let mut into = [0; 8];
    /// assert_eq!((consumer.get_some(&mut into), &into[..3]), (3, &b"abc"[..]));
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    pub fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = self.len().min(into.len());
        // They are there.
        let _ = self.get(&mut into[..n]);
        n
    }

    /// Returns the bytes that can be read now, in one piece. There may be more a moment later,
    /// never less.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.count()
    }

    /// Returns whether there is nothing to read now.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the producer was dropped. Bytes that it wrote may still be there to read.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<64>::new();
    /// let (mut producer, mut consumer) = pipe.ends();
    /// producer.put(b"last")?;
    /// drop(producer);
    /// // Closed first, empty second: nothing can come in between.
    /// assert!(consumer.is_closed() && !consumer.is_empty());
    /// consumer.consume(4);
    /// assert!(consumer.is_closed() && consumer.is_empty()); // the end
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
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

/// Lends all bytes that can be read, at once.
impl ByteSource for PipeConsumer<'_> {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self.peek()
    }

    #[inline]
    #[track_caller]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

impl fmt::Debug for PipeConsumer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeConsumer")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
