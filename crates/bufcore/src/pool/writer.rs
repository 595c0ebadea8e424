//! Bytes that are filled in steps, in a buffer that grows.
//!
//! The invariant W1 of `parts` is kept here.

mod parts;

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::slice;

use self::parts::{Parts, PutBack};
use crate::buf::split::empty_buf;
use crate::memory::aliasing::copy_bytes;
use crate::pool::growth::Growth;
use crate::{AcquireError, Buf, BufferPool, ByteSink, ReserveError, SplitLease};

/// Fills bytes in steps, then returns them as one buffer of a pool.
///
/// A codec reads a header, learns the length of the payload from it, reads the payload, and passes
/// both on together. The bytes stay contiguous. They grow in place if the pool can do that, and
/// move otherwise (see [`BufferPool::grow`]).
///
/// `P` is a pool, a handle of a shared pool, or a `&mut` of one. A decoder that keeps its state
/// between calls owns a `Writer<SlotPool>`, for example. When a frame is finished, the writer is
/// ready for the next one.
///
/// It is also a [`ByteSink`], and implements the `Write` traits of `std::io`, `core::fmt` and
/// `embedded_io`, and `bytes::BufMut`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use std::io::{self, Read};
///
/// use bufcore::{Buf, BufferPool, HeapPool, SplitLease, Writer};
///
/// /// Reads a message: two bytes with its length, and as many bytes.
/// fn message<P: BufferPool<Lease: SplitLease>>(
///     writer: &mut Writer<P>,
///     socket: &mut impl Read,
/// ) -> io::Result<Buf<P::Lease>> {
///     let mut read = |bytes| {
///         socket.read_exact(&mut writer.writable(bytes)?[..bytes])?;
///         writer.commit(bytes);
///         io::Result::Ok(writer.filled()[0])
///     };
///     let length = read(1)?;
///     read(usize::from(length))?;
///     Ok(writer.finish())
/// }
///
/// let mut writer = Writer::new(HeapPool::new());
/// let message = message(&mut writer, &mut &b"\x05hello, and more"[..])?;
/// assert_eq!(message, b"\x05hello");
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Writer<P: BufferPool<Lease: SplitLease>> {
    // In front of the pool, so that it is dropped before it.
    parts: Parts<P::Lease>,
    /// Bytes that a frame has room for at first.
    capacity: usize,
    pool: P,
}

// SAFETY: the parts of a buffer, which is `Send`, and a pool.
unsafe impl<P: BufferPool<Lease: SplitLease> + Send> Send for Writer<P> {}
// SAFETY: a shared writer lends shared bytes, and its pool.
unsafe impl<P: BufferPool<Lease: SplitLease> + Sync> Sync for Writer<P> {}

/// A writer is `Unpin`, whatever its pool is.
impl<P: BufferPool<Lease: SplitLease>> Unpin for Writer<P> {}

impl<P: BufferPool<Lease: SplitLease>> Writer<P> {
    /// Makes a writer that takes its buffers from `pool`.
    ///
    /// Cost: nothing; the first byte acquires a buffer.
    #[inline]
    pub fn new(pool: P) -> Self {
        Self::with_capacity(pool, 0)
    }

    /// Makes a writer whose frames start with room for `capacity` bytes, if the pool has that many.
    /// [`finish`](Self::finish) returns the unfilled bytes to the pool.
    ///
    /// Cost: nothing; the first byte acquires a buffer.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut line = Writer::with_capacity(HeapPool::new(), 80);
    /// line.extend_from_slice(b"GET /")?;
    /// let start = line.filled().as_ptr();
    /// line.extend_from_slice(b"index.html")?;
    /// assert_eq!(line.filled().as_ptr(), start); // there was room: nothing moved
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn with_capacity(pool: P, capacity: usize) -> Self {
        Self { parts: Parts::empty(), capacity, pool }
    }

    /// Returns a reference to the pool.
    pub fn get_ref(&self) -> &P {
        &self.pool
    }

    /// Returns a mutable reference to the pool. The filled bytes are kept; the spare capacity
    /// returns to the pool first.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"half a ")?;
    /// let other = writer.get_mut().acquire(64)?; // while a frame is being filled
    /// writer.extend_from_slice(b"frame")?;
    /// assert_eq!((writer.filled(), other.capacity()), (&b"half a frame"[..], 64));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn get_mut(&mut self) -> &mut P {
        let buf = self.finish();
        if !buf.is_empty() {
            self.parts = Parts::of(buf);
        }
        &mut self.pool
    }

    /// Drops the filled bytes, and returns the pool.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"half a frame, and then a ti")?;
    /// let pool = writer.into_inner();
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(pool.stats().in_use, 0);
    /// # drop(pool);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn into_inner(self) -> P {
        self.pool
    }

    /// Returns the spare capacity after the filled bytes, at least `n` bytes.
    /// [`commit`](Self::commit) then counts the written ones as filled.
    ///
    /// Contents: recycled bytes, unless the pool wipes.
    ///
    /// Cost: a comparison if there is room, or else [`BufferPool::grow`].
    ///
    /// # Errors
    ///
    /// The errors are those of [`BufferPool::grow`]. The filled bytes are unchanged then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.writable(5)?[..5].copy_from_slice(b"hello");
    /// assert!(writer.filled().is_empty()); // nothing counts before it is committed
    /// writer.commit(5);
    /// assert_eq!(writer.finish(), "hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn writable(&mut self, n: usize) -> Result<&mut [u8], AcquireError> {
        if n > self.parts.room {
            self.grow(n)?;
        }
        // SAFETY: the spare part of the buffer (W1), or nothing: initialised, and nobody else's.
        Ok(unsafe { slice::from_raw_parts_mut(self.parts.next.as_ptr(), self.parts.room) })
    }

    /// Counts the next `n` bytes after the filled ones as filled. The caller must have written them
    /// through [`writable`](Self::writable).
    ///
    /// # Panics
    ///
    /// Panics if `n` is over the available room.
    #[inline(always)]
    #[track_caller]
    pub fn commit(&mut self, n: usize) {
        assert!(n <= self.parts.room, "commit({n}) of {} bytes of room", self.parts.room);
        // SAFETY: there is so much room (W1).
        self.parts.next = unsafe { self.parts.next.add(n) };
        self.parts.room -= n;
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    ///
    /// The errors are those of [`writable`](Self::writable). Nothing is appended then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut response = Writer::new(HeapPool::new());
    /// for header in ["HTTP/1.1 200 OK", "Content-Length: 0", ""] {
    ///     response.extend_from_slice(header.as_bytes())?;
    ///     response.extend_from_slice(b"\r\n")?;
    /// }
    /// assert!(response.finish().ends_with(b": 0\r\n\r\n"));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        if bytes.len() > self.parts.room {
            self.grow(bytes.len())?;
        }
        let to = self.parts.next;
        // SAFETY: there is room for them (W1). These bytes of the buffer are initialised, and are
        // nobody else's.
        copy_bytes(unsafe { slice::from_raw_parts_mut(to.as_ptr(), bytes.len()) }, bytes);
        // SAFETY: as above.
        self.parts.next = unsafe { to.add(bytes.len()) };
        self.parts.room -= bytes.len();
        Ok(())
    }

    /// Returns the filled bytes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(&[0, 5])?;
    /// assert_eq!(writer.filled(), [0, 5]); // a header that says how much follows
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: the filled part of the buffer (W1), or nothing.
        unsafe { slice::from_raw_parts(self.parts.start.as_ptr(), self.parts.len()) }
    }

    /// Returns the filled bytes, which can be changed in place.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"\0hello")?;
    /// writer.filled_mut()[0] = 5; // the length, which was not known before
    /// assert_eq!(writer.finish(), b"\x05hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `filled`, and `&mut self` makes this the only borrow.
        unsafe { slice::from_raw_parts_mut(self.parts.start.as_ptr(), self.parts.len()) }
    }

    /// Keeps the first `len` filled bytes. If there are fewer, nothing changes.
    ///
    /// The bytes after them become spare capacity again. Codecs that decrypt in place use this.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"hello, and a tag")?;
    /// writer.truncate(5);
    /// assert_eq!(writer.finish(), "hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if let Some(cut) = self.parts.len().checked_sub(len) {
            // SAFETY: so many bytes are filled.
            self.parts.next = unsafe { self.parts.next.sub(cut) };
            self.parts.room += cut;
        }
    }

    /// Drops the first `n` filled bytes. The finished buffer starts after them.
    ///
    /// Cost: nothing. Their memory is reused when the writer would have to grow.
    ///
    /// # Panics
    ///
    /// Panics if fewer bytes are filled.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"\0\x05hello")?;
    /// writer.discard_front(2);
    /// assert_eq!(writer.finish(), "hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn discard_front(&mut self, n: usize) {
        assert!(n <= self.parts.len(), "discard_front({n}) of {} filled bytes", self.parts.len());
        // SAFETY: so many bytes are filled.
        self.parts.start = unsafe { self.parts.start.add(n) };
    }

    /// Returns the filled bytes as a buffer of their own, whose capacity is its length. The writer
    /// is empty afterwards.
    ///
    /// Cost: that of [`BufferPool::shrink`]. Nothing is copied.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Writer};
    ///
    /// let mut writer = Writer::new(HeapPool::new());
    /// writer.extend_from_slice(b"one")?;
    /// let first = writer.finish(); // owned, `Send`
    /// writer.extend_from_slice(b"two")?; // the next frame
    /// assert_eq!((&first[..], &writer.finish()[..]), (&b"one"[..], &b"two"[..]));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline(always)]
    pub fn finish(&mut self) -> Buf<P::Lease> {
        match self.parts.take() {
            Some(mut buf) if !buf.is_empty() => {
                self.pool.shrink(&mut buf);
                buf
            }
            // What has no bytes holds nothing: its memory goes back.
            _ => empty_buf(1),
        }
    }

    /// Makes room for `n` bytes, more than there is.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn grow(&mut self, n: usize) -> Result<(), AcquireError> {
        if let Some(buf) = self.parts.take() {
            self.widen(buf, n)?;
        } else {
            self.parts = Parts::of(self.open(n)?);
        }
        // A pool of the user's may say that it has grown what it has not.
        let available = self.parts.room;
        if n > available { Err(AcquireError::Exhausted { requested: n, available }) } else { Ok(()) }
    }

    /// Takes the first buffer of a frame, with room for `n` bytes.
    ///
    /// Compiled in where it is called, as the acquire of a buffer is.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn open(&mut self, n: usize) -> Result<Buf<P::Lease>, AcquireError> {
        let mut wanted = self.capacity.max(n);
        loop {
            match self.pool.acquire_most(wanted) {
                Ok(mut buf) => {
                    // A pool of the user's may return one that is not empty.
                    buf.clear();
                    return Ok(buf);
                }
                Err(_) if wanted > n => wanted = n,
                Err(error) => {
                    return Err(Growth { least: n, roomy: n, len: 0, additional: n, spare: 0 }.refused(error));
                }
            }
        }
    }

    /// Lets the pool grow the buffer of a frame, which is put back.
    ///
    /// Compiled in where it is called, and with the buffer by value: an address of the writer that
    /// leaves this function would keep all of the writer in memory.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn widen(&mut self, buf: Buf<P::Lease>, n: usize) -> Result<(), AcquireError> {
        let mut buf = ManuallyDrop::new(buf);
        let place = NonNull::from(&mut buf);
        let put_back = PutBack { parts: &mut self.parts, buf: place };
        // SAFETY: the local above, which nobody else uses until `put_back` is dropped.
        let buf = unsafe { &mut *place.as_ptr() };
        let grown = self.pool.grow_most(buf, n);
        drop(put_back);
        grown
    }
}

impl<P: BufferPool<Lease: SplitLease>> ByteSink for Writer<P> {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        if self.writable(n).is_err() {
            return Err(ReserveError { requested: n, available: self.parts.room });
        }
        // SAFETY: as in `writable`.
        Ok(unsafe { slice::from_raw_parts_mut(self.parts.next.as_ptr(), n) })
    }

    #[inline]
    fn commit(&mut self, n: usize) {
        self.commit(n);
    }
}

/// Appends texts. Text that does not fit is an error, and nothing of it is appended.
impl<P: BufferPool<Lease: SplitLease>> fmt::Write for Writer<P> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend_from_slice(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

impl<P: BufferPool<Lease: SplitLease>> fmt::Debug for Writer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("len", &self.parts.len())
            .field("room", &self.parts.room)
            .finish_non_exhaustive()
    }
}
