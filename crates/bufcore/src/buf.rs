//! The owned buffer.

use core::ptr::NonNull;
use core::slice;

use crate::copying::copy_bytes;
use crate::lease_guard::LeaseGuard;
use crate::track::Ticket;
use crate::{Frozen, Lease, ReserveError};

mod parts;
mod traits;

/// Owned, exclusive bytes from a pool: `len` filled of `capacity`, like a `Vec<u8>` that cannot
/// reallocate.
///
/// A buffer starts empty. It derefs to its filled part; fill it with
/// [`extend_from_slice`](Self::extend_from_slice), [`push`](Self::push), `write!`,
/// `std::io::Write`, `bytes::BufMut`, `embedded_io::Write`, or in place with
/// [`spare_mut`](Self::spare_mut) and [`commit`](Self::commit). Drop from its front what was used
/// with [`consume`](Self::consume), or as `bytes::Buf`, whose `advance` means the same.
///
/// Ownership: dropping it returns the memory to its pool, on any thread, whether the pool still
/// exists or not. It is neither `Copy` nor `Clone`; [`freeze`](Self::freeze) makes it shareable.
///
/// # Memory layout
///
/// ```text
///      ptr            ptr + len          ptr + capacity
///       |  filled      |  spare            |
///       |  (Deref)     |  (spare_mut)      |
/// ```
///
/// # Example
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::HeapPool;
///
/// let mut buf = HeapPool::new().acquire(16)?;
/// buf.extend_from_slice(b"key=")?;
/// write!(buf, "{}", 42)?;
/// assert_eq!(&buf[..], b"key=42");
/// let value = buf.split_off(4); // both parts own their bytes
/// assert_eq!((&buf[..], &value[..]), (&b"key="[..], &b"42"[..]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Buf<L: Lease> {
    /// Start of the memory; `capacity` bytes from here are initialised, valid and exclusive (I1).
    ptr: NonNull<u8>,
    /// Filled bytes, in `0 ..= capacity` (I2).
    len: usize,
    /// Bytes that belong to this buffer, at most `isize::MAX`.
    capacity: usize,
    guard: LeaseGuard<L>,
}

// SAFETY: a `Buf` is the only way to its bytes (I1), as a `Box<[u8]>` is, and its lease is `Send`.
unsafe impl<L: Lease> Send for Buf<L> {}
// SAFETY: a shared `Buf` gives out shared bytes only, and its lease is `Sync`.
unsafe impl<L: Lease> Sync for Buf<L> {}

impl<L: Lease> Buf<L> {
    /// Returns the number of filled bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing is filled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that the buffer can hold: from a pool, exactly what was asked
    /// for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of bytes that can still be filled: `capacity - len`.
    #[inline]
    pub fn spare_capacity(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the filled part.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len <= capacity` bytes from `ptr` are valid, initialised and ours (I1, I2).
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Returns the filled part, to be changed in place.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"host")?;
    /// buf.as_mut_slice().make_ascii_uppercase();
    /// assert_eq!(buf.as_slice(), b"HOST");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes it the only borrow.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// Returns the unfilled part, to write into in place; [`commit`](Self::commit) then says how
    /// much was written.
    ///
    /// Contents: recycled bytes, whatever an earlier user of the memory left there, unless the pool
    /// wipes on release.
    /// Cost: nothing; the memory is initialised already.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut buf = HeapPool::new().acquire(8).unwrap();
    /// buf.spare_mut()[..2].copy_from_slice(b"ok");
    /// buf.commit(2);
    /// assert_eq!(&buf[..], b"ok");
    /// # }
    /// ```
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len <= capacity` (I2), so this stays within the buffer's memory.
        let start = unsafe { self.ptr.add(self.len) };
        // SAFETY: the `capacity - len` bytes from there are valid, initialised and ours (I1), and
        // `&mut self` makes this the only borrow.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), self.capacity - self.len) }
    }

    /// Counts the next `bytes` of the spare part as filled. The caller has just written them
    /// through [`spare_mut`](Self::spare_mut); bytes that it did not write are recycled ones.
    ///
    /// # Panics
    ///
    /// When `bytes` is over [`spare_capacity`](Self::spare_capacity).
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, bytes: usize) {
        if bytes > self.spare_capacity() {
            commit_past_capacity(bytes, self.spare_capacity());
        }
        self.len += bytes;
    }

    /// Appends `bytes` to the filled part.
    ///
    /// # Errors
    ///
    /// When there is no room for all of them; then nothing is written.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(4)?;
    /// buf.extend_from_slice(b"abc")?;
    /// let full = buf.extend_from_slice(b"de").unwrap_err();
    /// assert_eq!((full.requested, full.available), (2, 1));
    /// assert_eq!(&buf[..], b"abc"); // unchanged
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        let room = self.spare_mut();
        let Some(target) = room.get_mut(..bytes.len()) else {
            return Err(ReserveError { requested: bytes.len(), available: room.len() });
        };
        copy_bytes(target, bytes);
        self.len += bytes.len();
        Ok(())
    }

    /// Appends one byte to the filled part.
    ///
    /// # Errors
    ///
    /// When the buffer is full.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Result<(), ReserveError> {
        self.extend_from_slice(&[byte])
    }

    /// Makes the filled part `len` bytes long: cuts it, or appends bytes of `value`.
    ///
    /// # Errors
    ///
    /// When `len` is over the capacity; then nothing changes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.resize(3, b'-')?;
    /// assert_eq!(&buf[..], b"---");
    /// buf.resize(1, b'-')?;
    /// assert_eq!(&buf[..], b"-");
    /// assert!(buf.resize(9, b'-').is_err());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn resize(&mut self, len: usize, value: u8) -> Result<(), ReserveError> {
        if len > self.len {
            let additional = len - self.len;
            let room = self.spare_mut();
            let Some(target) = room.get_mut(..additional) else {
                return Err(ReserveError { requested: additional, available: room.len() });
            };
            target.fill(value);
        }
        self.len = len;
        Ok(())
    }

    /// Keeps the first `len` filled bytes; a `len` over the filled bytes changes nothing.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes the buffer empty, with its whole capacity to fill again.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Drops the first `bytes` filled bytes. They cost capacity: the buffer's start moves behind
    /// them. [`compact`](Self::compact) gets it back.
    ///
    /// Cost: nothing is copied.
    ///
    /// # Panics
    ///
    /// When `bytes` is over [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"GET /")?;
    /// buf.consume(4);
    /// assert_eq!((&buf[..], buf.capacity()), (&b"/"[..], 4));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.len, "consume({bytes}) of {} filled bytes", self.len);
        // SAFETY: `bytes <= len <= capacity`, so the new start is within the memory or one past its
        // end.
        self.ptr = unsafe { self.ptr.add(bytes) };
        self.len -= bytes;
        self.capacity -= bytes;
    }

    /// Moves the filled bytes to the start of the buffer's memory, so that what was
    /// [consumed](Self::consume) in front of them is room again, behind them.
    ///
    /// It does so when the buffer is the only handle of its memory. Then it also gets back the room
    /// in front of it that other parts had, which are gone. So a reader that splits off message
    /// after message has its whole buffer again when the messages are gone. While there are other
    /// handles, nothing changes; look at [`spare_capacity`](Self::spare_capacity), and
    /// [grow](crate::BufferPool::grow) if that is too little. Capacity that was cut off behind the
    /// buffer stays cut off.
    ///
    /// Cost: a copy of the filled bytes; nothing when there is nothing to get back.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut buf = HeapPool::new().acquire(8).unwrap();
    /// buf.extend_from_slice(b"a line\nb").unwrap();
    /// buf.consume(7);
    /// assert_eq!(buf.spare_capacity(), 0);
    /// buf.compact();
    /// assert_eq!((&buf[..], buf.capacity(), buf.spare_capacity()), (&b"b"[..], 8, 7));
    /// # }
    /// ```
    pub fn compact(&mut self) {
        if !self.guard.is_alone() {
            return;
        }
        let Some(start) = self.guard.lease.start() else { return };
        let front = self.ptr.addr().get() - start.addr().get();
        // SAFETY: `front` bytes of the memory are in front of this buffer's first one (`Lease`,
        // rule 5), and nobody else's: the buffer is the only handle. So the filled bytes may move
        // there; the two places may overlap.
        unsafe { self.ptr.copy_to(start, self.len) };
        self.ptr = start;
        self.capacity += front;
    }

    /// Lowers the capacity to `capacity` bytes, at the buffer's end. It keeps what is filled.
    ///
    /// The memory is released as a whole with the buffer, and not before.
    ///
    /// Cost: nothing.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"abc")?;
    /// buf.shrink_to(5);
    /// assert_eq!(buf.spare_capacity(), 2);
    /// buf.shrink_to(0); // not under what is filled
    /// assert_eq!((buf.len(), buf.capacity()), (3, 3));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn shrink_to(&mut self, capacity: usize) {
        self.capacity = self.capacity.min(capacity.max(self.len));
    }

    /// Turns the buffer into a read-only view that can be cloned and shared. See [`Frozen`].
    ///
    /// Cost: one plain store; no allocation, no copy.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"shared")?;
    /// let view = buf.freeze();
    /// let other = view.clone(); // counts, and copies nothing
    /// let thread = std::thread::spawn(move || other.len());
    /// assert_eq!((&view[..], thread.join().unwrap()), (&b"shared"[..], 6));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn freeze(self) -> Frozen<L> {
        Frozen::new(self)
    }
}

/// The methods that strategies, and wrappers of their leases, use.
impl<L: Lease> Buf<L> {
    /// Makes an empty buffer over memory that a strategy has found. For strategies; users call
    /// [`BufferPool::acquire`](crate::BufferPool::acquire).
    ///
    /// # Safety
    ///
    /// 1. `ptr` is valid for reads and writes of `capacity` bytes, all of them initialised, at most
    ///    `isize::MAX`, until `lease` has been dropped.
    /// 2. Nobody else reads or writes them until then.
    #[inline]
    pub unsafe fn from_raw_parts(ptr: NonNull<u8>, capacity: usize, lease: L) -> Self {
        debug_assert!(capacity <= crate::size::MAX_BYTES, "capacity {capacity} is over isize::MAX");
        Self { ptr, len: 0, capacity, guard: LeaseGuard::new(lease, Ticket::none()) }
    }

    /// Returns the lease, for strategies and for wrappers that look into it.
    #[inline]
    pub fn lease(&self) -> &L {
        &self.guard.lease
    }

    /// Swaps the lease for one that wraps it, such as a recorder's. For strategies.
    ///
    /// Cost: a move. The tracker's ticket goes along.
    ///
    /// # Safety
    ///
    /// 1. The lease that `wrap` returns keeps the promises of the one that it takes (see
    ///    [`Lease`]), for the same memory, and says of itself what that one says of whether it is
    ///    shared.
    /// 2. For one of several parts `wrap` neither panics nor drops the lease that it takes: that
    ///    would release the memory of the other parts. For a buffer that is alone in its memory it
    ///    may, and the memory is then released, once.
    #[inline]
    pub unsafe fn map_lease<M: Lease>(self, wrap: impl FnOnce(L) -> M) -> Buf<M> {
        let (ptr, len, capacity, guard) = self.into_guard();
        let (lease, ticket) = guard.into_parts();
        Buf { ptr, len, capacity, guard: LeaseGuard::new(wrap(lease), ticket) }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn commit_past_capacity(bytes: usize, spare: usize) -> ! {
    panic!("commit({bytes}) past the capacity: there is room for {spare}")
}
