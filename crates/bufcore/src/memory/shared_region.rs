//! One region that several pools have parts of; see [`SharedRegion`].

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::size::{CACHE_LINE_BYTES, align_up};
use crate::sync::{Mutex, lock};
use crate::{MemoryProvider, Provided, Region, RegionError};

/// Shares one region among several pools. Each has a part of it, and the whole is kept until the
/// last part is dropped.
///
/// A device or a kernel interface then needs one registered address range, not one for each pool.
/// Clones of this handle share the region.
///
/// It is a [`MemoryProvider`]: pools that grow allocate their pieces from it (`build_from`), and
/// can exhaust it like any other memory. Pools over a fixed region are built in a
/// [`part`](Self::part).
///
/// Parts start on separate cache lines, so that pools of two threads do not slow each other. Pages
/// of a part are not returned to the system while the pool has it. A registration of the memory
/// therefore stays valid.
///
/// Threads: any number at the same time. Cutting and returning a part take a short lock. Returning
/// allocates nothing.
///
/// ```
/// use bufcore::{Region, RegionError, SharedRegion};
///
/// let shared = SharedRegion::new(Region::heap(64 << 10, 4096)?);
/// let first = shared.part(16 << 10, 64)?; // for one pool
/// let second = shared.part(32 << 10, 64)?; // for another
/// assert!(shared.contains(first.as_ptr().as_ptr(), first.len()));
/// assert_eq!(shared.spare_bytes(), 16 << 10);
///
/// // There is no room for a third of this size, until one is released.
/// assert!(matches!(shared.part(32 << 10, 64), Err(RegionError::OutOfMemory { .. })));
/// drop(second);
/// assert!(shared.part(32 << 10, 64).is_ok());
/// # Ok::<(), RegionError>(())
/// ```
#[derive(Clone)]
pub struct SharedRegion {
    whole: Arc<Whole>,
}

/// The region, and what of it is free.
struct Whole {
    region: Region,
    room: Mutex<Room>,
}

impl SharedRegion {
    /// Shares `region`.
    ///
    /// Cost: an allocation of a few hundred bytes for the bookkeeping.
    #[inline]
    #[must_use]
    pub fn new(region: Region) -> Self {
        let used = if region.is_fresh() { 0 } else { region.len() };
        let to_line = region.as_ptr().addr().get().wrapping_neg() % CACHE_LINE_BYTES;
        let room = Mutex::new(Room::new(to_line.min(region.len()), region.len(), used));
        Self { whole: Arc::new(Whole { region, room }) }
    }

    /// Cuts a part of `len` bytes, aligned to `alignment`, for a pool to be built in.
    ///
    /// Contents: zero. Bytes of an earlier part are zeroed here. So are the bytes of static memory,
    /// and of a region that a pool used before it was shared. Cost: a search through the gaps
    /// between parts, and an allocation of a few words.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::BadAlignment`]: `alignment` is no power of two.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::OutOfMemory`]: no gap is large enough, or the allocator failed.
    ///
    /// # Panics
    ///
    /// Never.
    ///
    /// ```
    /// use bufcore::{Region, SharedRegion};
    ///
    /// let shared = SharedRegion::new(Region::heap(1 << 20, 4096)?);
    /// let part = shared.part(10_000, 4096)?;
    /// assert_eq!((part.len(), part.as_ptr().addr().get() % 4096), (10_000, 0));
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[inline]
    pub fn part(&self, len: usize, alignment: usize) -> Result<Region, RegionError> {
        Region::from_provider(self.clone(), len, alignment)
    }

    /// Returns the address of the region.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.whole.region.as_ptr()
    }

    /// Returns the bytes of the whole region.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.whole.region.len()
    }

    /// Returns whether the region has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.region.is_empty()
    }

    /// Returns whether the `len` bytes from `start` all lie in the region.
    ///
    /// ```
    /// use bufcore::{Region, SharedRegion};
    ///
    /// let shared = SharedRegion::new(Region::heap(4096, 64)?);
    /// let start = shared.as_ptr().as_ptr();
    /// assert!(shared.contains(start, 4096) && !shared.contains(start, 4097));
    /// assert!(!shared.contains(&0, 1));
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, start: *const u8, len: usize) -> bool {
        match start.addr().checked_sub(self.as_ptr().addr().get()) {
            Some(offset) => offset <= self.len() && len <= self.len() - offset,
            None => false,
        }
    }

    /// Returns the bytes of the largest gap. A part of that size can be cut if its alignment is at
    /// most 64.
    ///
    /// Another thread may take the gap first.
    #[inline]
    #[must_use]
    pub fn spare_bytes(&self) -> usize {
        lock(&self.whole.room).largest()
    }
}

impl fmt::Debug for SharedRegion {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRegion")
            .field("len", &self.len())
            .field("spare_bytes", &self.spare_bytes())
            .finish_non_exhaustive()
    }
}

// SAFETY:
// - valid: a part lies in the region (R1 of `Room`), which every clone of this keeps. `Region` is a
//   unique owner of its bytes, whichever thread uses them.
// - exclusive: `Room` gives out no byte twice before it came back (R2). The region itself is
//   private here, and nobody reads or writes through it.
// - stays: the region does not move its bytes when it is moved.
// - zero: what is said to be zeroed is from `used` on, where all is zero (R3).
unsafe impl MemoryProvider for SharedRegion {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        let refused = RegionError::OutOfMemory { requested: layout.size() };
        let base = self.as_ptr();
        let mut room = lock(&self.whole.room);
        // Room for the gap that giving the part back may make (R4).
        let missing = (room.parts + 2).saturating_sub(room.gaps.len());
        room.gaps.try_reserve(missing).map_err(|_| refused)?;
        let (offset, is_zeroed) = room.take(base.addr().get(), layout).ok_or(refused)?;
        // SAFETY: the offset is within the region (R1).
        let start = unsafe { base.add(offset) };
        Ok(Provided { start, is_zeroed })
    }

    #[inline]
    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        let offset = start.addr().get() - self.as_ptr().addr().get();
        lock(&self.whole.room).give(offset, layout);
    }
}

/// What of a region is free, as offsets in bytes.
///
/// - R1: every gap lies within the region, and starts on a cache line unless it is empty.
/// - R2: gaps are in order, apart, and share no byte with a part that is out.
/// - R3: the bytes from `used` on are zero: they are of a fresh region, and were never in a part.
/// - R4: `gaps` has room for one gap more than there are parts out, so giving back allocates
///   nothing.
struct Room {
    len: usize,
    gaps: Vec<Gap>,
    parts: usize,
    used: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    start: usize,
    end: usize,
}

impl Room {
    #[inline]
    fn new(start: usize, len: usize, used: usize) -> Self {
        Self { len, gaps: vec![Gap { start, end: len }], parts: 0, used }
    }

    /// The bytes that a part takes: whole cache lines.
    #[inline]
    fn bytes(layout: Layout) -> Option<usize> {
        align_up(layout.size(), CACHE_LINE_BYTES)
    }

    /// Takes a part of the region at the address `base`: its offset, and whether it is zero.
    #[inline]
    fn take(&mut self, base: usize, layout: Layout) -> Option<(usize, bool)> {
        let alignment = layout.align().max(CACHE_LINE_BYTES);
        let (at, start, end) = self.gaps.iter().enumerate().find_map(|(at, gap)| {
            let start = align_up(base.checked_add(gap.start)?, alignment)? - base;
            // Other parts start on lines. Only the region itself may end within one.
            let end = start.checked_add(Self::bytes(layout)?)?.min(gap.end);
            (start <= gap.end && end - start >= layout.size()).then_some((at, start, end))
        })?;
        let gap = self.gaps[at];
        match (gap.start < start, end < gap.end) {
            (false, false) => {
                self.gaps.remove(at);
            }
            (true, false) => self.gaps[at].end = start,
            (false, true) => self.gaps[at].start = end,
            (true, true) => {
                self.gaps[at].start = end;
                self.gaps.insert(at, Gap { end: start, ..gap });
            }
        }
        self.parts += 1;
        let is_zeroed = start >= self.used;
        self.used = self.used.max(end);
        Some((start, is_zeroed))
    }

    /// Takes a part back.
    #[inline]
    fn give(&mut self, start: usize, layout: Layout) {
        let at = self.gaps.partition_point(|gap| gap.start < start);
        // As it was taken.
        let bytes = Self::bytes(layout).unwrap_or(layout.size());
        let part = Gap { start, end: (start + bytes).min(self.len) };
        self.parts -= 1;
        let joins_front = at > 0 && self.gaps[at - 1].end == part.start;
        let joins_back = self.gaps.get(at).is_some_and(|gap| gap.start == part.end);
        match (joins_front, joins_back) {
            (true, true) => {
                self.gaps[at - 1].end = self.gaps[at].end;
                self.gaps.remove(at);
            }
            (true, false) => self.gaps[at - 1].end = part.end,
            (false, true) => self.gaps[at].start = part.start,
            (false, false) => self.gaps.insert(at, part),
        }
    }

    #[inline]
    fn largest(&self) -> usize {
        self.gaps.iter().map(|gap| gap.end - gap.start).max().unwrap_or(0)
    }
}
