//! The pool that does not pool.

use alloc::alloc::{alloc, alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::buf::split::empty_buf;
use crate::lease::ref_count::RefCount;
use crate::lease::tagged_ptr::TaggedPtr;
use crate::lease::track::Tracker;
use crate::pool::config::check_alignment;
use crate::pool::stats::{Counters, Released, Served};
use crate::size::MAX_BYTES;
use crate::{AcquireError, Buf, BufferPool, ConfigError, Frozen, Lease, PoolStats};
#[cfg(all(feature = "stats", target_has_atomic = "ptr"))]
use alloc::sync::Arc;

/// What counts the releases. Buffers share it where there are counts that can be shared.
#[cfg(all(feature = "stats", target_has_atomic = "ptr"))]
type Releases = Arc<Released>;
#[cfg(not(all(feature = "stats", target_has_atomic = "ptr")))]
type Releases = Released;

/// Up to this number of bytes the pool clears the memory itself. Where glibc is asked for zeroed
/// memory, it does not use what it keeps for a thread.
const CLEARED_HERE: usize = 1024;

/// Serves every acquire with a fresh, zeroed heap allocation, which the release frees.
///
/// It is the usual fallback of the strategies. A pool should be faster than this.
///
/// Cost: the global allocator's for `capacity` bytes and a header of at most one cache line, which
/// it allocates, zeroes and frees.
///
/// Failure: if the allocator fails, the request returns an error. With the features `stats` and
/// `track`, which are for debugging, the pool has bookkeeping on the heap as well. It consists of
/// counters that [`new`](Self::new) allocates, and a list that grows with each acquire. If the
/// allocator fails for these, the process aborts. On processors without compare-and-swap this pool
/// counts nothing.
///
/// ```
/// use bufcore::{AcquireError, BufferPool, HeapPool};
///
/// let mut pool = HeapPool::new();
/// assert_eq!(&pool.acquire_zeroed(3)?[..], [0, 0, 0]);
/// assert!(matches!(pool.acquire(usize::MAX), Err(AcquireError::TooLarge { .. })));
/// # Ok::<(), AcquireError>(())
/// ```
pub struct HeapPool {
    alignment: usize,
    wipe: bool,
    counters: Counters,
    tracker: Tracker,
    released: Releases,
}

/// Describes an allocation. It lies behind the bytes, `header_offset(capacity)` bytes from their
/// start, so that the bytes can start where the allocation does, whatever their alignment.
pub(crate) struct Header {
    views: RefCount,
    wipe: bool,
    /// Bytes handed out.
    capacity: usize,
    /// The alignment of the allocation.
    alignment: usize,
    #[cfg(all(feature = "stats", target_has_atomic = "ptr"))]
    released: Releases,
}

const MIN_ALIGNMENT: usize = align_of::<Header>();

/// Returns the distance from the start of `capacity` bytes to their header. `capacity` is at most
/// `max_capacity`.
#[inline]
fn header_offset(capacity: usize) -> usize {
    // Wraps only with the defect that lets every size pass.
    capacity.wrapping_add(MIN_ALIGNMENT - 1) & !(MIN_ALIGNMENT - 1)
}

/// Frees the memory of a buffer of a [`HeapPool`]. It is one word, which points to a header after
/// the bytes.
///
/// ```
/// use std::collections::VecDeque;
///
/// use bufcore::{Buf, HeapLease, HeapPool};
///
/// /// Packets that wait to be sent.
/// struct Outgoing {
///     packets: VecDeque<Buf<HeapLease>>, // or `HeapBuf`, for short
/// }
///
/// let mut outgoing = Outgoing { packets: VecDeque::new() };
/// outgoing.packets.push_back(HeapPool::new().acquire_zeroed(1500)?);
/// assert_eq!(outgoing.packets.iter().map(|packet| packet.len()).sum::<usize>(), 1500);
/// assert_eq!(size_of::<HeapLease>(), size_of::<usize>());
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug)]
pub struct HeapLease {
    /// A header is valid until this lease is dropped; nobody else frees it.
    tagged: TaggedPtr<Header>,
}

/// A buffer of a [`HeapPool`].
///
/// ```
/// use bufcore::{HeapBuf, HeapPool, ReserveError};
///
/// fn log(line: &mut HeapBuf, status: u16) -> Result<(), ReserveError> {
///     write!(line, "status={status}\n")
/// }
///
/// let mut line = HeapPool::new().acquire(64)?;
/// log(&mut line, 404)?;
/// assert_eq!(line, "status=404\n");
/// # Ok::<(), bufcore::Error>(())
/// ```
pub type HeapBuf = Buf<HeapLease>;

/// A view of a buffer of a [`HeapPool`].
///
/// ```
/// use std::collections::HashMap;
///
/// use bufcore::{HeapPool, HeapView};
///
/// let mut responses: HashMap<&str, HeapView> = HashMap::new();
/// let mut body = HeapPool::new().acquire(64)?;
/// body.extend_from_slice(b"hello")?;
/// responses.insert("/", body.freeze());
/// let response = responses["/"].clone(); // no bytes are copied
/// assert_eq!(response, "hello");
/// # Ok::<(), bufcore::Error>(())
/// ```
pub type HeapView = Frozen<HeapLease>;

// SAFETY: one field; a header is only read while shared, except its atomic count, and freeing may
// happen on any thread.
crate::tagged_lease!(unsafe impl HeapLease => Header);

impl HeapLease {
    /// Returns the header; a part of no bytes has none.
    #[inline]
    fn header(&self) -> Option<&Header> {
        // SAFETY: valid until the lease is dropped, and never written but through its atomics.
        self.block().map(|header| unsafe { header.as_ref() })
    }

    /// Returns where the bytes, and the allocation, start.
    ///
    /// # Safety
    ///
    /// `header` was made by `take`, and its allocation was not freed.
    #[inline]
    unsafe fn memory(header: NonNull<Header>) -> NonNull<u8> {
        // SAFETY: the caller's promise.
        let offset = header_offset(unsafe { header.as_ref() }.capacity);
        // SAFETY: `take` put the header `offset` bytes behind the start of the allocation, which
        // the pointer reaches all of.
        unsafe { header.cast::<u8>().sub(offset) }
    }
}

// SAFETY:
// - memory: the allocation is freed in `Drop` only, and no two leases name one.
// - copies: a raw pointer; `header` is shared-readable.
// - count: `views` is in the allocation, used by nobody else; none for a part of no bytes.
// - wipe, start: exactly the bytes that were handed out.
unsafe impl Lease for HeapLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        self.header().map(|header| &header.views)
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.tagged.is_shared()
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        let block = self.block()?;
        let header = self.header().filter(|header| header.wipe)?;
        // SAFETY: not freed while the lease is borrowed.
        let start = unsafe { Self::memory(block) };
        Some(NonNull::slice_from_raw_parts(start, header.capacity))
    }

    #[inline]
    fn start(&self) -> Option<NonNull<u8>> {
        // SAFETY: not freed while the lease is borrowed.
        self.block().map(|header| unsafe { Self::memory(header) })
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self::empty())
    }
}

impl Drop for HeapLease {
    #[inline]
    fn drop(&mut self) {
        let Some(block) = self.block() else { return };
        // SAFETY: freed below, and not before.
        let header = unsafe { block.as_ref() };
        // SAFETY: as above.
        let (capacity, alignment, start) =
            (header.capacity, header.alignment, unsafe { Self::memory(block) });
        #[cfg(all(feature = "stats", target_has_atomic = "ptr"))]
        header.released.add(capacity);
        // SAFETY: the header is initialised, and dropped once, here.
        unsafe { block.drop_in_place() };
        // SAFETY: `take` built this very layout with the same numbers.
        let layout = unsafe {
            Layout::from_size_align_unchecked(header_offset(capacity) + size_of::<Header>(), alignment)
        };
        // SAFETY: allocated with this layout, freed once, here.
        unsafe { dealloc(start.as_ptr(), layout) }
    }
}

impl HeapPool {
    /// Makes a pool whose buffers start at any pointer-aligned address.
    ///
    /// Cost: nothing; with `stats` or `track` one or two small allocations, which abort the process
    /// on failure.
    ///
    /// ```
    /// use bufcore::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let mut buf = pool.acquire(1500)?;
    /// drop(pool); // buffers outlive their pool
    /// buf.extend_from_slice(b"packet")?;
    /// assert_eq!(buf, "packet");
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self {
            alignment: MIN_ALIGNMENT,
            wipe: false,
            counters: Counters::default(),
            tracker: Tracker::default(),
            released: Releases::default(),
        }
    }

    /// Makes buffers start at multiples of `alignment` bytes, a power of two.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::BadAlignment`] for a number that is not a power of two, and
    /// [`ConfigError::TooLarge`] for one so large that no buffer could exist.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let buf = HeapPool::new().with_alignment(4096)?.acquire(100)?;
    /// assert_eq!(buf.as_ptr().addr() % 4096, 0);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn with_alignment(mut self, alignment: usize) -> Result<Self, ConfigError> {
        check_alignment(alignment, MAX_BYTES / 4)?;
        self.alignment = alignment.max(MIN_ALIGNMENT);
        Ok(self)
    }

    /// Sets whether the pool zeroes bytes before they are freed.
    ///
    /// ```
    /// use bufcore::HeapPool;
    ///
    /// let mut pool = HeapPool::new().with_wipe(true);
    /// let mut key = pool.acquire(32)?;
    /// key.extend_from_slice(b"secret")?;
    /// assert!(!format!("{key:?}").contains("secret")); // may be a secret: not shown
    /// drop(key); // zeroed, then freed
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg(feature = "wipe")]
    #[inline]
    #[must_use]
    pub fn with_wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }
}

crate::pool_methods!(impl[] HeapPool => HeapLease);

impl HeapPool {
    /// Restarts the high-water marks of the statistics from the current use.
    ///
    /// The other counters are never reset: [`PoolStats::since`] returns their difference. Without
    /// the `stats` feature this does nothing.
    ///
    /// ```
    /// use bufcore::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// drop((pool.acquire(100)?, pool.acquire(100)?)); // a burst
    /// pool.reset_high_water(); // each minute, say
    /// let _one = pool.acquire(100)?;
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(pool.stats().high_water, 1);
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn reset_high_water(&mut self) {
        self.counters.reset_high_water(&self.released, &PoolStats::default());
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
    ///
    /// ```
    /// use bufcore::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// std::mem::forget(pool.acquire(64)?); // a leak
    /// let leaks = pool.outstanding();
    /// assert_eq!(leaks.len(), 1);
    /// assert!(leaks[0].to_string().starts_with("64 bytes acquired at "));
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg(feature = "track")]
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<crate::Outstanding> {
        self.tracker.outstanding()
    }

    fn take(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        let limit = self.max_capacity();
        if capacity > limit {
            return Err(AcquireError::TooLarge { requested: capacity, limit });
        }
        let offset = header_offset(capacity);
        let layout = Layout::from_size_align(offset + size_of::<Header>(), self.alignment)
            .map_err(|_| AcquireError::TooLarge { requested: capacity, limit })?;
        let allocate = if capacity <= CLEARED_HERE { alloc } else { alloc_zeroed };
        // SAFETY: the layout is not of zero size: the header is not.
        let start = unsafe { allocate(layout) };
        let Some(start) = NonNull::new(start) else {
            return Err(AcquireError::OutOfMemory { requested: capacity });
        };
        if capacity <= CLEARED_HERE {
            // SAFETY: that many bytes were just allocated.
            unsafe { start.write_bytes(0, capacity) };
        }
        // SAFETY: a header's bytes are left from there on.
        let header = unsafe { start.add(offset) }.cast::<Header>();
        let contents = Header {
            views: RefCount::new(),
            wipe: self.wipe,
            capacity,
            alignment: self.alignment,
            #[cfg(all(feature = "stats", target_has_atomic = "ptr"))]
            released: Arc::clone(&self.released),
        };
        // SAFETY: ours to write, and aligned: the start is to at least a header's alignment, and
        // `offset` is a multiple of that.
        unsafe { header.write(contents) };
        // SAFETY: `capacity` zeroed bytes are in front of the header, which nobody else knows of
        // until the lease frees them.
        Ok(unsafe { Buf::from_raw_parts(start, capacity, HeapLease::of(header)) })
    }
}

impl BufferPool for HeapPool {
    type Lease = HeapLease;

    /// Takes one empty buffer with room for `capacity` bytes.
    ///
    /// Cost: one allocation; none for a capacity of 0.
    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        if capacity == 0 {
            return Ok(self.tracker.attach(empty_buf(self.alignment)));
        }
        let buf = self.take(capacity)?;
        self.counters.acquired(Served::Fresh, capacity, &self.released, PoolStats::default);
        Ok(self.tracker.attach(buf))
    }

    /// Takes one buffer of `len` zero bytes.
    ///
    /// Cost: as [`acquire`](Self::acquire); the allocator zeroes.
    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<HeapLease>, AcquireError> {
        let mut buf = self.acquire(len)?;
        buf.commit(len);
        Ok(buf)
    }

    #[inline]
    fn max_capacity(&self) -> usize {
        // The most that a layout of this alignment can have, less the header and the rounding in
        // front of it.
        MAX_BYTES - size_of::<Header>() - MIN_ALIGNMENT - self.alignment
    }

    #[inline]
    fn stats(&self) -> PoolStats {
        if cfg!(not(all(feature = "stats", target_has_atomic = "ptr"))) {
            return PoolStats::default();
        }
        let stats = self.counters.snapshot(&self.released, &PoolStats::default(), 0);
        PoolStats { reserved_bytes: stats.in_use_bytes, ..stats }
    }
}

impl Default for HeapPool {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HeapPool {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapPool").field("alignment", &self.alignment).finish_non_exhaustive()
    }
}
