//! The ring of one thread: where to write and where to read, over a [`Mirror`].
//!
//! # Invariants
//!
//! - R1: `head < capacity`, and `head <= tail <= head + capacity`.
//! - R2: the filled bytes are those from `head` to `tail`, the free ones those from `tail` to
//!   `head + capacity`. So each byte of the ring is at one address in one of the two windows, and
//!   neither reaches past the second mapping.
//! - R3: a byte comes to be used through its other address only where `head` changes, which is in
//!   `consume`, and there [`end_of_addresses`] stands in between.

mod traits;

use core::ptr::NonNull;

use bufcore::{ByteSource, Pieces, ReserveError};

#[cfg(feature = "alloc")]
use crate::ConfigError;
use crate::copy::copy;
use crate::map::Mirror;
use crate::sync::end_of_addresses;
use crate::{Builder, GetError};

/// A ring of bytes for one thread: bytes are read in the order in which they were written, and both
/// parts are one contiguous slice each.
///
/// [`reserve`](Self::reserve) lends room and [`commit`](Self::commit) counts the written bytes;
/// [`peek`](Self::peek) lends the readable bytes and [`consume`](Self::consume) drops the used
/// ones. [`put`](Self::put) and [`get`](Self::get) copy. A slice borrows the ring, so there is at
/// most one, and no other call runs at the same time. Forgetting a slice changes nothing.
///
/// Contents: zeros at first; later reservations have recycled bytes. [`peek`](Self::peek) and
/// [`get`](Self::get) show committed bytes only. Nothing is wiped: see [secrets](crate#secrets).
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufmirror::MirrorRing;
///
/// let mut ring = MirrorRing::new(4096)?; // bytes, rounded up to whole pages
///
/// ring.put(b"hello ")?;
/// ring.reserve(5)?.copy_from_slice(b"world"); // in place
/// ring.commit(5);
/// assert_eq!(ring.peek(), b"hello world");
///
/// ring.consume(6);
/// let mut word = [0; 5];
/// ring.get(&mut word)?;
/// assert_eq!(&word, b"world");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MirrorRing {
    mirror: Mirror,
    /// Where the filled bytes start (R1).
    head: usize,
    /// Where they end, and the free ones start (R1).
    tail: usize,
}

impl MirrorRing {
    /// Makes a ring of at least `bytes`: mapped twice if the system supports it, else on the heap,
    /// in twice the bytes.
    ///
    /// Cost: about ten system calls; pages are allocated on first touch.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`] for no bytes, [`ConfigError::TooLarge`], [`ConfigError::Region`] with
    /// the failing call and the system's error number, or for lack of memory if nothing is mapped.
    /// Nothing remains mapped or open then. A process with a limit on file sizes (`RLIMIT_FSIZE`)
    /// also gets `SIGXFSZ`, which ends the process unless it is ignored.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// assert!(ring.is_empty() && ring.capacity() >= 4096);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn new(bytes: usize) -> Result<Self, ConfigError> {
        Self::builder().capacity(bytes).build()
    }

    /// Returns the builder, which has all settings.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::builder().capacity(1 << 20).populate(true).build()?;
    /// ring.put(&[7; 1 << 20])?; // without a page fault
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) const fn over(mirror: Mirror) -> Self {
        Self { mirror, head: 0, tail: 0 }
    }

    /// Appends all of `bytes`.
    ///
    /// Cost: one copy, even across the ring's end.
    ///
    /// # Errors
    ///
    /// Returns an error if there is less room; nothing is written then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// ring.put(b"hello")?;
    /// let full = ring.put(&vec![0; ring.capacity()]).unwrap_err();
    /// assert_eq!(full.available, ring.capacity() - 5); // nothing was written
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        copy(self.reserve(bytes.len())?, bytes);
        self.tail += bytes.len();
        Ok(())
    }

    /// Moves the oldest bytes into `into`, and fills all of it.
    ///
    /// Cost: one copy, even across the ring's end.
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer bytes; nothing is read then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// ring.put(b"\0\x05hello")?;
    /// let mut header = [0; 2];
    /// ring.get(&mut header)?;
    /// let mut too_long = [0; 9];
    /// assert_eq!((header, ring.get(&mut too_long).unwrap_err().available), ([0, 5], 5));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        let filled = self.peek();
        let Some(bytes) = filled.get(..into.len()) else {
            return Err(GetError { requested: into.len(), available: filled.len() });
        };
        copy(into, bytes);
        self.consume(into.len());
        Ok(())
    }

    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// Contents: recycled bytes.
    /// Cost: two comparisons; nothing is written.
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] if `n` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// let room = ring.reserve(100)?; // one slice, also across the ring's end
    /// room[..5].copy_from_slice(b"hello");
    /// ring.commit(5);
    /// assert_eq!(ring.peek(), b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        let available = self.spare_capacity();
        if n > available {
            return Err(ReserveError { requested: n, available });
        }
        let mut room = self.window(self.tail, n);
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1), since
        //   `tail + n <= head + capacity` (R1).
        // - exclusive: it borrows the ring, and has no byte twice, being no longer than the
        //   capacity (M2). What was done through these bytes' other addresses ended before the last
        //   change of `head` (R3).
        Ok(unsafe { room.as_mut() })
    }

    /// Counts the next `n` bytes of room as written. Bytes that the last reservation did not write
    /// are recycled ones.
    ///
    /// # Panics
    ///
    /// Panics if `n` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use std::io::Read;
    ///
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// let mut source = &b"as long as it turns out"[..];
    /// let n = source.read(ring.reserve(1024)?)?; // more room than is needed
    /// ring.commit(n); // only these bytes
    /// assert_eq!(ring.peek(), b"as long as it turns out");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, n: usize) {
        let room = self.spare_capacity();
        if n > room {
            over("commit", n, room, "of room");
        }
        self.tail += n;
    }

    /// Returns all bytes that can be read, oldest first, in one slice.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// ring.put(b"GET /\r\n")?;
    /// let end = ring.peek().iter().position(|&byte| byte == b'\r');
    /// assert_eq!(end, Some(5)); // a parser sees the whole record before it takes it out
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek(&self) -> &[u8] {
        let filled = self.window(self.head, self.len());
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1, R1).
        // - not written meanwhile: it borrows the ring, and has no byte twice, being no longer than
        //   the capacity (M2). What was done through these bytes' other addresses ended before the
        //   last change of `head` (R3).
        unsafe { filled.as_ref() }
    }

    /// Drops the `n` oldest bytes.
    ///
    /// An empty ring restarts at the front, where the memory is in the cache.
    ///
    /// Cost: a few plain instructions; if nothing is mapped ([`is_mapped`](Self::is_mapped)), once
    /// for every [`capacity`](Self::capacity) bytes a copy of the ring's current bytes.
    ///
    /// # Panics
    ///
    /// Panics if `n` is over [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// ring.put(b"one two")?;
    /// ring.consume(4);
    /// assert_eq!(ring.peek(), b"two");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, n: usize) {
        let len = self.len();
        if n > len {
            over("consume", n, len, "to read");
        }
        end_of_addresses();
        if n == len {
            (self.head, self.tail) = (0, 0);
            return;
        }
        self.head += n;
        let capacity = self.capacity();
        if self.head >= capacity {
            // SAFETY: `capacity <= head`, and `tail` is at most a capacity behind it and at most
            // twice the capacity, because `head` was less than that before, by R1, and `tail` has
            // not changed. `&mut self`: nothing is lent.
            unsafe { self.mirror.rebase(self.head, self.tail - self.head) };
            self.head -= capacity;
            self.tail -= capacity;
        }
    }

    /// Returns all bytes that can be read, oldest first, in one mutable slice: to unmask, decrypt
    /// or lower-case them in place.
    ///
    /// Changes remain in the ring until the bytes are consumed.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// ring.put(&[b'h' ^ 42, b'i' ^ 42])?;
    /// for byte in ring.peek_mut() {
    ///     *byte ^= 42; // the mask of a WebSocket's frame
    /// }
    /// assert_eq!(ring.peek(), b"hi");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek_mut(&mut self) -> &mut [u8] {
        let mut filled = self.window(self.head, self.len());
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1, R1).
        // - exclusive: it borrows the ring, and has no byte twice, being no longer than the
        //   capacity (M2). What was done through these bytes' other addresses ended before the last
        //   change of `head` (R3).
        unsafe { filled.as_mut() }
    }

    /// Returns the complete pieces that can be read, each up to `delimiter` and without it, in
    /// place: lines, for `b'\n'`.
    ///
    /// The pieces that the iteration returned are consumed when the returned value is dropped, even
    /// after a `break`; see [`Pieces`].
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// ring.put(b"one\ntwo\nthr")?;
    /// let mut lines = Vec::new();
    /// for line in &mut ring.pieces(b'\n') {
    ///     lines.push(line.to_vec());
    /// }
    /// assert_eq!(lines, [b"one", b"two"]);
    /// assert_eq!(ring.peek(), b"thr"); // the rest of it has yet to come
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pieces(&mut self, delimiter: u8) -> Pieces<'_, Self> {
        ByteSource::pieces(self, delimiter)
    }

    /// Drops all bytes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// ring.put(b"half of a requ")?; // then the connection broke
    /// ring.clear();
    /// ring.put(b"the next connection's")?;
    /// assert_eq!(ring.peek(), b"the next connection's");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn clear(&mut self) {
        self.consume(self.len());
    }

    /// Returns the number of bytes that can be read.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let mut ring = MirrorRing::new(4096)?;
    /// ring.put(b"hello")?;
    /// assert_eq!((ring.len(), ring.spare_capacity()), (5, ring.capacity() - 5));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Returns whether there is nothing to read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Returns the number of bytes that can be written, in one slice.
    #[inline]
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.capacity() - self.len()
    }

    /// Returns the number of bytes that the ring holds when full: at least the requested one.
    /// Mapped rings have whole pages.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufmirror::MirrorRing::new(1000)?;
    /// assert!(ring.capacity() >= 1000);
    /// ring.put(&vec![7; ring.capacity()])?; // all of it can be filled
    /// assert_eq!(ring.spare_capacity(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.mirror.capacity()
    }

    /// Returns whether the memory is mapped twice. Otherwise the ring uses twice its capacity, and
    /// copies its current bytes once per round.
    ///
    /// ```
    /// use bufmirror::{Builder, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 64].into()) }
    /// let mut ring = Builder::new().build_in(Region::from_static(memory()))?;
    /// assert!(!ring.is_mapped());
    /// for round in 0..100_u8 {
    ///     ring.put(&[round; 20])?; // the border is in another place each time
    ///     assert_eq!(ring.peek(), [round; 20]); // one slice all the same
    ///     ring.consume(20);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mirror.is_mapped()
    }

    /// Returns the `len` bytes at `at`, as one slice's pointer.
    #[inline(always)]
    fn window(&self, at: usize, len: usize) -> NonNull<[u8]> {
        debug_assert!(at + len <= 2 * self.capacity());
        // SAFETY: `at` is in the mirror's memory, as all offsets from `head` to `head + capacity`
        // are (R1, M1).
        let start = unsafe { self.mirror.base().add(at) };
        NonNull::slice_from_raw_parts(start, len)
    }

    /// Appends as many of `bytes` as there is room for; returns how many.
    #[inline]
    #[cfg(any(feature = "std", feature = "embedded-io-0_7"))]
    pub(crate) fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.spare_capacity());
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }

    /// Moves as many bytes into `into` as there are; returns how many.
    #[inline]
    #[cfg(any(feature = "std", feature = "embedded-io-0_7"))]
    pub(crate) fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = into.len().min(self.len());
        // There are `n` bytes.
        let _ = self.get(&mut into[..n]);
        n
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn over(call: &str, n: usize, available: usize, what: &str) -> ! {
    panic!("{call}({n}) of {available} bytes {what}");
}
