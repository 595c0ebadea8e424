//! The owned buffer.

use core::ptr::NonNull;

use crate::lease::guard::{LeaseGuard, is_alone};
use crate::lease::track::TrackId;
use crate::{Frozen, Lease};

// Documentation lists the methods of child modules in this order, and those of this one last.
mod methods;

pub(crate) mod append;
pub(crate) mod compare;
pub(crate) mod format;
mod parts;
pub(crate) mod split;
mod traits;

/// Owns bytes from a pool, exclusively: `len` of `capacity` bytes are filled, as in a `Vec<u8>`
/// that cannot reallocate.
///
/// A buffer starts empty. It dereferences to its filled part. Fill it with
/// [`extend_from_slice`](Self::extend_from_slice), [`push`](Self::push), `write!`,
/// `std::io::Write`, `bytes::BufMut` or `embedded_io::Write`, or in place with
/// [`spare_mut`](Self::spare_mut) and [`commit`](Self::commit). Drop used bytes from its front with
/// [`consume`](Self::consume), or with `advance` of `bytes::Buf`, which does the same.
///
/// Ownership: dropping a buffer returns the memory to its pool, on any thread, even if the pool was
/// dropped. It is neither `Copy` nor `Clone`; [`freeze`](Self::freeze) makes it shareable, and so
/// does `into_bytes` or `Bytes::from` of the feature `bytes`.
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

/// A buffer is `Unpin`, whatever its lease is.
impl<L: Lease> Unpin for Buf<L> {}

// Here, because messages of the compiler name the function that a buffer was moved into.
impl<L: Lease> Buf<L> {
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

impl<L: Lease> Buf<L> {
    /// Moves the filled bytes to the start of the buffer's memory. The bytes
    /// [consumed](Self::consume) in front of them become spare capacity.
    ///
    /// The bytes move only if the buffer is the only handle of its memory. The buffer then also
    /// regains the memory of dropped parts in front of it. A reader that splits off message after
    /// message regains its whole buffer once the messages are dropped.
    ///
    /// While there are other handles, nothing changes. A buffer whose whole capacity was split off
    /// holds no memory, and regains nothing. Check [`spare_capacity`](Self::spare_capacity), and
    /// [grow](crate::BufferPool::grow) the buffer if that is too little. Capacity that was split
    /// off at the end is not regained.
    ///
    /// Cost: a copy of the filled bytes; nothing if there is no memory to regain.
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
    ///
    /// buf.extend_from_slice(b" line 2").unwrap();
    /// drop(buf.split_to(8)); // all of it: nothing is left to split off or to compact
    /// buf.compact();
    /// assert_eq!(buf.capacity(), 0);
    /// HeapPool::new().grow(&mut buf, 8).unwrap();
    /// assert_eq!(buf.spare_capacity(), 8);
    /// # }
    /// ```
    pub fn compact(&mut self) {
        if !is_alone(self.lease()) {
            return;
        }
        let Some(start) = self.guard.lease.start() else { return };
        let front = self.ptr.addr().get() - start.addr().get();
        if front == 0 {
            return;
        }
        // SAFETY: `front` bytes of the memory are in front of this buffer's first one (`Lease`,
        // rule 5), and nobody else's: the buffer is the only handle. So the filled bytes may move
        // there; the two places may overlap.
        unsafe { self.ptr.copy_to(start, self.len) };
        self.ptr = start;
        self.capacity += front;
    }

    /// Lowers the capacity to `capacity` bytes, but not below the length. The filled bytes are
    /// kept.
    ///
    /// The memory is released as a whole with the buffer, not earlier.
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
}

/// Methods for authors of strategies, and for wrappers of leases.
impl<L: Lease> Buf<L> {
    /// Makes an empty buffer over memory of a strategy.
    ///
    /// Strategies call this; users call [`BufferPool::acquire`](crate::BufferPool::acquire). The
    /// page of [`Lease`] has an example with real memory.
    ///
    /// # Safety
    ///
    /// 1. `ptr` is valid for reads and writes of `capacity` bytes until `lease` is dropped. All of
    ///    them are initialised, and `capacity` is at most `isize::MAX`.
    /// 2. No other code reads or writes them until then.
    /// 3. `lease` is a lease of this memory, and obeys the rules of [`Lease`] for it. In particular
    ///    its [`views`](Lease::views) is `None` only if `capacity` is 0.
    ///
    /// ```
    /// use std::ptr::NonNull;
    ///
    /// use bufcore::{Buf, Lease, NoLease};
    ///
    /// let lease = NoLease::empty().expect("it is one");
    /// // SAFETY: no bytes are claimed.
    /// let buf = unsafe { Buf::from_raw_parts(NonNull::dangling(), 0, lease) };
    /// assert_eq!((buf.len(), buf.capacity()), (0, 0));
    /// ```
    #[inline]
    pub unsafe fn from_raw_parts(ptr: NonNull<u8>, capacity: usize, lease: L) -> Self {
        debug_assert!(capacity <= crate::size::MAX_BYTES, "capacity {capacity} is over isize::MAX");
        Self { ptr, len: 0, capacity, guard: LeaseGuard::new(lease, TrackId::none()) }
    }

    /// Sets the capacity, under the same lease, after the strategy has resized the memory.
    ///
    /// # Safety
    ///
    /// 1. `capacity` bytes from the buffer's first one are as for
    ///    [`from_raw_parts`](Self::from_raw_parts): valid, initialised and exclusive until the
    ///    lease is dropped.
    /// 2. `capacity` is at least [`len`](Self::len).
    ///
    /// ```
    /// use bufcore::{BufferPool, NoFallback};
    ///
    /// let mut nothing = NoFallback.acquire(0)?;
    /// // SAFETY: no bytes are claimed, and none are filled.
    /// unsafe { nothing.set_capacity(0) };
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    #[inline]
    pub unsafe fn set_capacity(&mut self, capacity: usize) {
        debug_assert!(self.len <= capacity, "{} filled of {capacity}", self.len);
        self.capacity = capacity;
    }

    /// Returns the lease. Strategies and wrappers of leases inspect it.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Lease};
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// assert!(!buf.lease().is_shared());
    /// let back = buf.split_off(4);
    /// assert!(buf.lease().is_shared() && back.lease().is_shared()); // two parts of one memory
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn lease(&self) -> &L {
        &self.guard.lease
    }

    /// Replaces the lease by a wrapper of it, such as a recorder's.
    ///
    /// Cost: a move. The tracker's id is kept.
    ///
    /// # Safety
    ///
    /// 1. The lease that `wrap` returns obeys the rules of its argument, for the same memory (see
    ///    [`Lease`]). Its [`is_shared`](Lease::is_shared) returns the same as that of its argument.
    /// 2. For one of several parts, `wrap` neither panics nor drops its argument: that would
    ///    release the memory of the other parts. For the only handle of a memory it may do so; the
    ///    memory is then released once.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use bufcore::author::RefCount;
    /// use bufcore::{HeapPool, Lease};
    ///
    /// static RELEASED: AtomicUsize = AtomicUsize::new(0);
    ///
    /// /// Counts the buffers that were released.
    /// struct Counted<L>(L);
    ///
    /// // SAFETY: a copy of the other's promises.
    /// unsafe impl<L: Lease> Lease for Counted<L> {
    ///     fn views(&self) -> Option<&RefCount> {
    ///         self.0.views()
    ///     }
    ///
    ///     fn is_shared(&self) -> bool {
    ///         self.0.is_shared()
    ///     }
    /// }
    ///
    /// impl<L> Drop for Counted<L> {
    ///     fn drop(&mut self) {
    ///         RELEASED.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let buf = HeapPool::new().acquire(64)?;
    /// // SAFETY: the wrapper says of itself what the lease says, and does not panic.
    /// let buf = unsafe { buf.map_lease(Counted) };
    /// drop(buf);
    /// assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub unsafe fn map_lease<M: Lease>(self, wrap: impl FnOnce(L) -> M) -> Buf<M> {
        let (ptr, len, capacity, guard) = self.into_guard();
        let (lease, track_id) = guard.into_parts();
        Buf { ptr, len, capacity, guard: LeaseGuard::new(wrap(lease), track_id) }
    }
}
