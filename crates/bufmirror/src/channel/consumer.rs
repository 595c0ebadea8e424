//! The end that reads.

use bufcore::{ByteSource, Pieces};

use super::end::{Access, ChannelState, End, Lending};
use crate::GetError;
use crate::ring::over;

impl<T: ChannelState> End<false, T> {
    /// Moves the oldest bytes into `into`, and fills all of it.
    ///
    /// Cost: one copy, even across the ring's end, and as [`consume`](Self::consume).
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer bytes now; nothing is read then.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"\0\x05hello")?;
    /// let mut header = [0; 2];
    /// consumer.get(&mut header)?;
    /// assert_eq!((header, consumer.peek()), ([0, 5], &b"hello"[..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        let n = into.len();
        if !self.has(n) {
            return Err(GetError { requested: n, available: self.cached_available });
        }
        // SAFETY: within the memory, and this end's (C2); nothing of it is lent: `&mut self`.
        unsafe { T::Access::copy_out(into, self.window(n)) };
        self.advance(n);
        Ok(())
    }

    /// Moves the available bytes into `into`, as many as fit; returns their number.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"abc")?;
    /// let mut into = [0; 8];
    /// assert_eq!(consumer.get_some(&mut into), 3);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = self.up_to(into.len());
        // There are `n` bytes.
        let _ = self.get(&mut into[..n]);
        n
    }

    /// Returns the number of bytes that can be read now, in one slice. The number may grow at any
    /// time, and only this end lowers it.
    ///
    /// Cost: a load of the producer's position, which may be in another processor's cache.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// let (mut producer, consumer) = bufmirror::channel(4096)?;
    /// producer.reserve(100)?; // lent, not yet committed
    /// assert_eq!(consumer.len(), 0);
    /// producer.commit(60);
    /// assert_eq!(consumer.len(), 60);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count()
    }

    /// Returns whether there is nothing to read now.
    ///
    /// Cost: as [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: ChannelState<Access = Lending>> End<false, T> {
    /// Returns all bytes that can be read now, oldest first, in one slice.
    ///
    /// Cost: as [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"one\ntwo")?;
    /// let line = consumer.peek().iter().position(|&byte| byte == b'\n');
    /// assert_eq!(line, Some(3));
    /// consumer.consume(4);
    /// assert_eq!(consumer.peek(), b"two");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek(&mut self) -> &[u8] {
        self.look();
        self.lend(self.cached_available)
    }

    /// Returns the oldest `n` bytes, if that many are available.
    ///
    /// Cost: a comparison; if there seem to be too few, a load of the producer's position. This
    /// method is therefore fast for many short reads.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"\0\x05hel")?;
    /// assert_eq!(consumer.peek_exact(2), Some(&b"\0\x05"[..]));
    /// assert_eq!(consumer.peek_exact(7), None); // half of a record
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek_exact(&mut self, n: usize) -> Option<&[u8]> {
        if self.has(n) { Some(self.lend(n)) } else { None }
    }

    /// Drops the `n` oldest bytes. The producer can reuse their memory, and is woken if it waits
    /// for it.
    ///
    /// Cost: a plain store that the producer reads, and a load. If the producer sleeps, also the
    /// cost of waking it.
    ///
    /// # Panics
    ///
    /// Panics if `n` is over [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let capacity = producer.capacity();
    /// producer.put(&vec![7; capacity])?;
    /// assert!(producer.put(b"more").is_err()); // the ring is full
    /// consumer.consume(1000);
    /// assert_eq!(producer.spare_capacity(), 1000); // room again, in one piece
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, n: usize) {
        if !self.has(n) {
            over("consume", n, self.cached_available, "to read");
        }
        self.advance(n);
    }

    /// Lends the complete pieces, each up to `delimiter`: lines, for `b'\n'`.
    ///
    /// When the returned value is dropped, the pieces that the iteration returned are consumed,
    /// even after a `break`; see [`Pieces`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"one\ntwo\nthr")?;
    /// for line in &mut consumer.pieces(b'\n') {
    ///     assert!(line == b"one" || line == b"two");
    /// }
    /// assert_eq!(consumer.peek(), b"thr");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pieces(&mut self, delimiter: u8) -> Pieces<'_, Self> {
        ByteSource::pieces(self, delimiter)
    }

    #[inline(always)]
    fn lend(&self, n: usize) -> &[u8] {
        let filled = self.window(n);
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1), since `at` is less than the
        //   capacity, and `n` at most that.
        // - not written meanwhile: it borrows this end, which has the bytes alone (C2), and has no
        //   byte twice, being no longer than the capacity (M2). What was done through their other
        //   addresses was ended (C4).
        unsafe { filled.as_ref() }
    }
}

/// Returns all bytes that can be read, at once.
impl<T: ChannelState<Access = Lending>> ByteSource for End<false, T> {
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
