//! A buffer that grows while it is being filled.

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};

use bufcore::{AcquireError, Buf, ByteSink, ReserveError};

use crate::frame::Frame;
use crate::{RingLease, RingPool};

/// A buffer that is being filled and grows as it has to, then becomes a fixed one; made by
/// [`RingPool::extendable`].
///
/// It derefs to what is filled. It borrows its ring, so nothing else can be acquired while it
/// lives. Where that is too strict, use the ring itself, which is a
/// [`FrameBuffer`](bufcore::FrameBuffer).
///
/// Ownership: dropping it lets its bytes go, [`finish`](Self::finish) keeps them. A forgotten one
/// costs nothing: its place is free again as soon as the ring needs it.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use std::io::Write;
///
/// use bufring::RingPool;
///
/// let mut ring = RingPool::new(1024)?;
/// let mut buffer = ring.extendable(8)?;
/// let message = b"hello world, this is longer than what was asked for at first";
/// buffer.write_all(message).unwrap();
/// let fixed = buffer.finish();
/// assert_eq!(&fixed[..], message);
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
pub struct Extendable<'a> {
    ring: &'a mut RingPool,
    /// The ring's `lent` is the block of this.
    frame: Frame,
    /// Up to where bytes were lent by `reserve`, whether they were committed or not: a ring that
    /// wipes has to reach them.
    #[cfg(feature = "wipe")]
    lent_to: core::ptr::NonNull<u8>,
}

// SAFETY: a unique borrow of the ring, which is `Send`, and places in it.
unsafe impl Send for Extendable<'_> {}
// SAFETY: a shared one only lends its bytes.
unsafe impl Sync for Extendable<'_> {}

impl RingPool {
    /// Takes a buffer with room for `bytes` bytes at first, which grows while it is filled.
    ///
    /// Cost: as an acquire. Each append is one comparison beside the copy, as long as what is
    /// behind is free.
    ///
    /// # Errors
    ///
    /// As [`acquire`](bufcore::BufferPool::acquire).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(64 << 10)?;
    /// let mut line = ring.extendable(80)?; // a guess
    /// for word in ["GET", " ", "/a/path/that/is/longer/than/anyone/would/have/guessed", "\r\n"] {
    ///     line.extend_from_slice(word.as_bytes())?;
    /// }
    /// assert!(line.ends_with(b"guessed\r\n"));
    /// let line = line.finish();
    /// assert_eq!(line.len(), line.capacity()); // takes no more of the ring than it has bytes
    /// # }
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[inline]
    pub fn extendable(&mut self, bytes: usize) -> Result<Extendable<'_>, AcquireError> {
        self.close_lent();
        let frame = if bytes == 0 { Frame::closed(&self.ring) } else { self.open(bytes)? };
        self.lent = frame.at;
        Ok(Extendable {
            ring: self,
            frame,
            #[cfg(feature = "wipe")]
            lent_to: frame.next,
        })
    }
}

impl Extendable<'_> {
    /// Appends `bytes`.
    ///
    /// # Errors
    ///
    /// When the ring has no room for all of them; then nothing is written.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut buffer = ring.extendable(4)?;
    /// buffer.extend_from_slice(b"more than ")?;
    /// buffer.extend_from_slice(b"four bytes")?;
    /// assert_eq!(&buffer.finish()[..], b"more than four bytes");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        self.make_room(bytes.len())?;
        let target = self.frame.advance(bytes.len());
        // SAFETY: there is room for them in the frame's block (F2), which nobody else has, `bytes`
        // among others.
        unsafe { target.copy_from_nonoverlapping(core::ptr::NonNull::from(bytes).cast(), bytes.len()) };
        Ok(())
    }

    /// Makes room for `additional` bytes more, so that they can be appended without growing.
    ///
    /// # Errors
    ///
    /// As [`RingPool::extendable`]; what is filled stays as it is.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut buffer = ring.extendable(16)?;
    /// buffer.make_room(100)?;
    /// assert!(buffer.spare_capacity() >= 100);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn make_room(&mut self, additional: usize) -> Result<(), AcquireError> {
        if additional > self.frame.room() {
            self.wipe_lent();
            let grown;
            (self.frame, grown) = Self::grow(self.ring, self.frame, additional);
            #[cfg(feature = "wipe")]
            {
                self.lent_to = self.frame.next;
            }
            return grown;
        }
        Ok(())
    }

    /// Turns the filled bytes into a fixed buffer, and frees the rest.
    ///
    /// Cost: a plain store or few; nothing is copied.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut buffer = ring.extendable(512)?;
    /// buffer.extend_from_slice(b"short")?;
    /// let fixed = buffer.finish(); // owned, `Send`
    /// assert_eq!(fixed.capacity(), 5);
    /// assert!(ring.acquire(900).is_ok()); // the rest is free again
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn finish(self) -> Buf<RingLease> {
        let mut this = mem::ManuallyDrop::new(self);
        this.wipe_lent();
        let frame = this.frame;
        this.ring.lent = this.ring.ring.front();
        this.ring.finish(frame)
    }

    /// Returns the number of filled bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Returns whether nothing is filled.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that can be appended without taking in free blocks behind, and without
    /// moving.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(4096)?;
    /// let mut buffer = ring.extendable(100)?;
    /// let spare = buffer.spare_capacity();
    /// assert!(spare >= 100); // all of the free block that it was taken from
    /// buffer.extend_from_slice(b"header")?;
    /// assert_eq!(buffer.spare_capacity(), spare - 6);
    /// # }
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.frame.room()
    }

    /// Zeroes what was lent and not committed, if the ring wipes.
    #[inline(always)]
    fn wipe_lent(&mut self) {
        #[cfg(feature = "wipe")]
        {
            self.ring.ring.wipe(self.frame.next, self.lent_to);
            self.lent_to = self.frame.next;
        }
    }

    /// Gives the frame room for `additional` bytes more. By value, so that the frame itself need
    /// not be in memory.
    #[cold]
    #[inline(never)]
    fn grow(ring: &mut RingPool, mut frame: Frame, additional: usize) -> (Frame, Result<(), AcquireError>) {
        // It is not to be cleared away meanwhile.
        ring.lent = ring.ring.front();
        let grown = ring.grow_frame(&mut frame, additional);
        ring.lent = frame.at;
        (frame, grown)
    }
}

impl Drop for Extendable<'_> {
    #[inline]
    fn drop(&mut self) {
        self.wipe_lent();
        self.ring.lent = self.ring.ring.front();
        self.ring.close(self.frame);
    }
}

impl Deref for Extendable<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the frame's own bytes, initialised, in a block that nobody else has (F1, F2).
        unsafe { self.frame.bytes().as_ref() }
    }
}

impl DerefMut for Extendable<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes it the only borrow.
        unsafe { self.frame.bytes().as_mut() }
    }
}

impl ByteSink for Extendable<'_> {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        if self.make_room(n).is_err() {
            return Err(ReserveError { requested: n, available: self.frame.room() });
        }
        #[cfg(feature = "wipe")]
        {
            // SAFETY: there is room for `n` bytes in the frame's block (F2).
            self.lent_to = self.lent_to.max(unsafe { self.frame.next.add(n) });
        }
        let room = core::ptr::NonNull::slice_from_raw_parts(self.frame.next, n);
        // SAFETY: there is room for `n` bytes in the frame's block (F2), which are initialised and
        // nobody else's.
        Ok(unsafe { &mut *room.as_ptr() })
    }

    #[inline]
    #[track_caller]
    fn commit(&mut self, n: usize) {
        assert!(n <= self.frame.room(), "commit({n}) of {} bytes of room", self.frame.room());
        self.frame.advance(n);
    }
}

#[cfg(any(feature = "std", feature = "embedded-io-0_7"))]
impl Extendable<'_> {
    /// Appends all bytes, or else as many of the first ones as the ring says that it has room for,
    /// at least one; returns how many.
    fn extend_by_some(&mut self, bytes: &[u8]) -> Result<usize, AcquireError> {
        let mut n = bytes.len();
        loop {
            let Err(error) = self.extend_from_slice(&bytes[..n]) else { return Ok(n) };
            let room = self.frame.room();
            let offered = match error {
                AcquireError::TooLarge { limit, .. } => limit,
                AcquireError::Exhausted { available, .. } => available.max(room),
                _ => room,
            };
            // Less each time, so that this ends.
            n = if offered < n { offered } else { room.min(n - 1) };
            if n == 0 {
                return Err(error);
            }
        }
    }
}

/// `write` appends as long as the ring has room; then it is short. `write_all` appends all or
/// nothing, and so does `write!` with each of its parts.
#[cfg(feature = "std")]
impl std::io::Write for Extendable<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.extend_by_some(bytes).unwrap_or(0))
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// `StorageFull`, with the [`AcquireError`] in it, when the ring has no room for all of
    /// `bytes`; then nothing is appended.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.extend_from_slice(bytes)
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::StorageFull, error))
    }

    #[inline]
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "embedded-io-0_7")]
impl embedded_io::ErrorType for Extendable<'_> {
    type Error = AcquireError;
}

/// `write` appends as long as the ring has room. Unlike with `std::io::Write`, no room at all is an
/// error, as `embedded_io` demands. `write_all` appends all or nothing.
#[cfg(feature = "embedded-io-0_7")]
impl embedded_io::Write for Extendable<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, AcquireError> {
        self.extend_by_some(bytes)
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// When the ring has no room for all of `bytes`; then nothing is appended.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        self.extend_from_slice(bytes)
    }

    fn flush(&mut self) -> Result<(), AcquireError> {
        Ok(())
    }
}

/// As `embedded_io::Write`: no room is an error, and nothing is waited for.
#[cfg(feature = "embedded-io-async-0_7")]
impl embedded_io_async::Write for Extendable<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, AcquireError> {
        self.extend_by_some(bytes)
    }

    async fn flush(&mut self) -> Result<(), AcquireError> {
        Ok(())
    }

    /// # Errors
    ///
    /// When the ring has no room for all of `bytes`; then nothing is appended.
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        self.extend_from_slice(bytes)
    }
}

impl fmt::Debug for Extendable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extendable")
            .field("len", &self.len())
            .field("spare", &self.spare_capacity())
            .finish_non_exhaustive()
    }
}
