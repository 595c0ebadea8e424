//! The end that writes.

use bufcore::{ByteSink, ReserveError};

use super::end::{Access, ChannelState, End, Lending};
use crate::ring::over;

impl<T: ChannelState> End<true, T> {
    /// Appends all of `bytes`.
    ///
    /// Cost: one copy, even across the ring's end, and as [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// Returns an error if there is less room now; nothing is written then.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"hello")?;
    /// assert_eq!(consumer.peek(), b"hello");
    /// assert!(producer.put(&[0; 1 << 20]).is_err()); // nothing is written
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        let n = bytes.len();
        if !self.has(n) {
            return Err(ReserveError { requested: n, available: self.cached_available });
        }
        // SAFETY: within the memory, and this end's (C2); nothing of it is lent: `&mut self`.
        unsafe { T::Access::copy_in(self.window(n), bytes) };
        self.advance(n);
        Ok(())
    }

    /// Appends as many of `bytes` as fit now; returns their number.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// let more = vec![7; producer.capacity() + 1];
    /// let written = producer.put_some(&more);
    /// assert_eq!((written, consumer.len()), (more.len() - 1, more.len() - 1));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = self.up_to(bytes.len());
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }

    /// Returns the number of bytes that can be written now, in one slice. The number may grow at
    /// any time, and only this end lowers it.
    ///
    /// Cost: a load of the consumer's position, which may be in another processor's cache.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// let (mut producer, consumer) = bufmirror::channel(4096)?;
    /// let free = producer.spare_capacity();
    /// producer.reserve(free)?.fill(b'.'); // all of it, in one slice
    /// producer.commit(free);
    /// assert_eq!((producer.spare_capacity(), consumer.len()), (0, consumer.capacity()));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.count()
    }
}

impl<T: ChannelState<Access = Lending>> End<true, T> {
    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// Cost: a comparison; if there seems to be too little room, a load of the consumer's position.
    ///
    /// # Errors
    ///
    /// Returns an error if there is less room now.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, consumer) = channel(4096)?;
    /// producer.reserve(5)?.copy_from_slice(b"hello");
    /// producer.commit(5);
    /// # let mut consumer = consumer;
    /// assert_eq!(consumer.peek(), b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        if !self.has(n) {
            return Err(ReserveError { requested: n, available: self.cached_available });
        }
        let mut room = self.window(n);
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1), since `at` is less than the
        //   capacity, and `n` at most that.
        // - exclusive: it borrows this end, which has the bytes alone (C2), and has no byte twice,
        //   being no longer than the capacity (M2). What was done through their other addresses was
        //   ended (C4).
        Ok(unsafe { room.as_mut() })
    }

    /// Counts the next `n` bytes of room as written: the consumer can read them, and is woken if it
    /// waits.
    ///
    /// Bytes that the last reservation did not write are recycled ones.
    ///
    /// Cost: a plain store that the consumer reads, and a load. If the consumer sleeps, also the
    /// cost of waking it.
    ///
    /// # Panics
    ///
    /// Panics if `n` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use std::io::Write;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let mut room = producer.reserve(100)?;
    /// write!(room, "{:>6.2} degrees", 21.5)?;
    /// let n = 100 - room.len(); // what `write!` left is not committed
    /// producer.commit(n);
    /// assert_eq!(consumer.peek(), b" 21.50 degrees");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, n: usize) {
        if !self.has(n) {
            over("commit", n, self.cached_available, "of room");
        }
        self.advance(n);
    }
}

impl<T: ChannelState<Access = Lending>> ByteSink for End<true, T> {
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
