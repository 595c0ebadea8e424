//! The pool, as its users hold it.

mod traits;

use core::ptr::NonNull;
use core::time::Duration;

use bufcore::author::Served;
use bufcore::{AcquireError, Buf, ConfigError};
use bufkit::{Handle, PoolProvider};

use crate::cache::local;
use crate::counts::Piece;
use crate::lease::BumpLease;
use crate::request::Found;
use crate::settings::Settings;
use crate::shard::Block;
use crate::shared::Shared;

/// A pool whose threads carve their buffers from shards of their own. See the [crate
/// documentation](crate).
///
/// It is a handle: clones share one pool, which ends with the last of them. The end frees all that
/// holds no buffers, and leaves each other shard to its last buffer; buffers do not need the pool
/// any more. It never waits.
///
/// Threads: any number acquire and release, through clones or through a shared reference. Between
/// `fork` and `exec` a child uses no pool.
///
/// ```
/// use bufbump::BumpPool;
///
/// let pool = BumpPool::new()?; // clones share it
/// let mut chunk = pool.acquire(1500)?;
/// chunk.extend_from_slice(b"HEAD body")?;
/// let head = chunk.split_to(4); // two buffers, one memory
/// let worker = std::thread::spawn(move || head.len()); // released there
/// assert_eq!((worker.join().unwrap(), &chunk[..]), (4, &b" body"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BumpPool {
    handle: Handle<Shared>,
    /// `Shared::id`, here for the fast path, as is the next; `APART` where headers are in a table.
    id: usize,
    /// The alignment minus one.
    mask: usize,
}

bufcore::unwind_safe!(BumpPool);

/// No pool's number, so that the fast path, which takes the bytes to be right behind the header,
/// finds no shard.
const APART: usize = usize::MAX;

/// Fewer bytes are zeroed sooner than a look tells whether they are zero.
const LOOKED_AT_FROM_BYTES: usize = 2048;

impl BumpPool {
    pub(crate) fn with(
        settings: Settings,
        source: PoolProvider,
        preallocate: usize,
    ) -> Result<Self, ConfigError> {
        let pool = Self::over(Shared::new(settings, source)?);
        pool.preallocate(preallocate)?;
        Ok(pool)
    }

    /// Makes the pool of a handle.
    fn over(handle: Handle<Shared>) -> Self {
        let id = if handle.settings.has_table() { APART } else { handle.id };
        Self { id, mask: handle.settings.alignment - 1, handle }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn id(&self) -> usize {
        self.shared().id
    }

    /// Adds idle shards.
    fn preallocate(&self, shards: usize) -> Result<(), ConfigError> {
        for _ in 0..shards {
            let shard = self.shared().fresh(self.shard_size(), Piece::Preallocated)?;
            // SAFETY: nothing of it is out, and it is ours alone.
            unsafe { Shared::come_back(NonNull::from(shard)) };
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.handle
    }

    /// Takes one empty buffer with room for `capacity` bytes, as
    /// [`BufferPool::acquire`](bufcore::BufferPool::acquire) does, through a shared reference.
    ///
    /// Contents: the filled part is empty; what [`Buf::spare_mut`] shows is recycled, unless the
    /// pool wipes. Cost: some twenty plain instructions and no locked one, when the thread's
    /// current shard has room. Otherwise a look at up to [`max_probes`](crate::Builder::max_probes)
    /// shards, then an exchange or two for an idle one, and at last an allocation.
    ///
    /// A request larger than a shard has a piece of memory of its own. One that is allocated for it
    /// is at most a quarter larger than it. Its thread, or the pool, keeps the piece for the next
    /// such request, of which it is at most half as large again. That request then costs some plain
    /// instructions, or a few locked ones.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] for what cannot exist, [`AcquireError::OutOfMemory`] when the
    /// allocator refuses. Never [`AcquireError::Exhausted`].
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let first = pool.acquire(100)?;
    /// let address = first.as_ptr();
    /// drop(first);
    /// assert_eq!(pool.acquire(50)?.as_ptr(), address); // used again while it is in the cache
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire(&self, capacity: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if let Some(shard) = local::shard(self.id) {
            // SAFETY: the shard that this thread carves for this pool is valid (`local`, L1).
            let shard = unsafe { shard.as_ref() };
            if let Some(block) = NonNull::new(shard.carve(capacity, self.mask)) {
                let start = Block::behind(block);
                // SAFETY: just taken; no pool with this number has headers in a table.
                return Ok(unsafe { self.hand_out_at(start, block, capacity, Served::Reused) });
            }
            if let Some(block) = self.shared().reuse(shard, capacity) {
                let start = Block::behind(block);
                // SAFETY: as above.
                return Ok(unsafe { self.hand_out_at(start, block, capacity, Served::Reused) });
            }
        }
        // Taken apart and put together, so that what comes back in memory does not force the other
        // case there too. That it is empty is said once more, where the compiler can see it.
        let mut buf = self.acquire_elsewhere(capacity)?;
        buf.clear();
        Ok(buf)
    }

    /// Takes one buffer with `len` filled bytes, all zero, as
    /// [`BufferPool::acquire_zeroed`](bufcore::BufferPool::acquire_zeroed) does, through a shared
    /// reference.
    ///
    /// Cost: zeroing on top of [`acquire`](Self::acquire), except for some KiB and more of memory
    /// that nobody had before: it comes zeroed.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let mut page = BumpPool::new()?.acquire_zeroed(4096)?;
    /// page[..5].copy_from_slice(b"hello");
    /// assert_eq!((page.len(), page[5]), (4096, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<BumpLease>, AcquireError> {
        let mut buf = self.acquire(len)?;
        if len < LOOKED_AT_FROM_BYTES || !buf.lease().is_untouched() {
            buf.spare_mut()[..len].fill(0);
        }
        buf.commit(len);
        Ok(buf)
    }

    /// Makes the buffer in a block whose bytes start at `start`.
    ///
    /// # Safety
    ///
    /// The calling thread has just taken the block, for this number of bytes, and `start` is where
    /// its bytes start.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    unsafe fn hand_out_at(
        &self,
        start: NonNull<u8>,
        block: NonNull<Block>,
        capacity: usize,
        served: Served,
    ) -> Buf<BumpLease> {
        if cfg!(feature = "stats") {
            // SAFETY: the block was made by this thread, and is out from here on.
            self.shared().counters.acquired(served, unsafe { Block::capacity(block) });
        }
        // SAFETY: the bytes of the block are its alone until its release (`shard`, B2), as many as
        // were asked for at least, and initialised: those of a region are, and only whole
        // headers without their padding are written over them.
        let buf = unsafe { Buf::from_raw_parts(start, capacity, BumpLease::of(block)) };
        self.shared().tracker.attach(buf)
    }

    /// Makes the buffer in a block, wherever its bytes are.
    ///
    /// # Safety
    ///
    /// The calling thread has just taken the block, for this number of bytes.
    #[cfg_attr(feature = "track", track_caller)]
    unsafe fn hand_out(&self, block: NonNull<Block>, capacity: usize, served: Served) -> Buf<BumpLease> {
        // SAFETY: it is out from here on.
        let start = unsafe { Block::start(block) };
        // SAFETY: the caller's promise.
        unsafe { self.hand_out_at(start, block, capacity, served) }
    }

    /// Serves a request that the current shard cannot, one of no bytes, and a thread's first.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_elsewhere(&self, bytes: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if bytes == 0 {
            // Aligned as all others are.
            let nowhere = core::ptr::without_provenance_mut(self.mask + 1);
            let start = NonNull::new(nowhere).unwrap_or(NonNull::dangling());
            // SAFETY: no bytes are claimed.
            let buf = unsafe { Buf::from_raw_parts(start, 0, BumpLease::empty()) };
            return Ok(self.shared().tracker.attach(buf));
        }
        if self.id == APART
            && let Some(block) = self.shared().recall_block(bytes)
        {
            // SAFETY: just taken.
            return Ok(unsafe { self.hand_out(block, bytes, Served::Reused) });
        }
        let Found { block, served } = self.shared().find(bytes)?;
        // SAFETY: just taken.
        let buf = unsafe { self.hand_out(block, bytes, served) };
        if !matches!(served, Served::Reused) {
            // The pool has grown. This may call users' code, which finds the buffer complete.
            self.shared().growth.notify();
        }
        Ok(buf)
    }

    /// Frees the memory that holds no buffers.
    ///
    /// It frees the idle shards and larger pieces of the pool, those that threads have put aside,
    /// and the shards of threads whose buffers other threads released. No thread is stopped for it.
    /// It does not touch a shard of which buffers are out, nor the one that a thread carves. While
    /// another thread's trim looks at the shards of threads, it waits for that one.
    ///
    /// The headers of shards without memory are freed as well. If other threads are looking for a
    /// shard or at the statistics at that very moment, they are kept for the next call. The header
    /// of a shard that was taken from a thread stays until that thread next needs a shard, or ends.
    ///
    /// Cost: a look at the calling thread's shards, one at all headers of the pool, and the
    /// allocator's for each that goes.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().preallocate(4).build()?;
    /// assert!(pool.stats().reserved_bytes >= 4 * (256 << 10));
    /// pool.trim();
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) {
        self.shared().trim();
    }

    /// Frees memory that was not needed for `age`.
    ///
    /// Of the idle shards it frees as many as the pool had left over at every moment. Of the larger
    /// pieces, and of what threads have put aside, it frees what was not used. The same holds for
    /// the shards of threads whose buffers other threads released. It does not free the shard that
    /// a thread carves, which it cannot take without stopping the thread.
    ///
    /// A [`Keeper`](crate::Keeper) calls it by itself. Without one, a program calls it from time to
    /// time, as often as it likes. Buffers get no time stamps when they come and go; the calls
    /// themselves look at the pool:
    ///
    /// - The first call only notes what it sees.
    /// - A call that comes `age` or more after the last one that looked compares, frees, and notes.
    /// - A call that comes earlier does nothing.
    ///
    /// So a larger piece that is freed was idle for at least `age`, as was what threads had put
    /// aside. Of the idle shards that many were not needed for that time. They go in the order in
    /// which they would be used, so the one that was used last may be among them. Idle memory is
    /// freed after twice the `age`, if the calls come often enough.
    ///
    /// From the first call on, memory of 128 KiB and more goes to the system when it is released,
    /// if the pool has no room to keep it. Before, the allocator may keep it.
    ///
    /// Cost: nothing for most calls. A call that looks visits every cache and every header, and
    /// costs the allocator's time for each piece that goes.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// drop(pool.acquire(1 << 20)?);
    /// pool.trim_idle(Duration::ZERO); // notes
    /// pool.trim_idle(Duration::ZERO); // not used since
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn trim_idle(&self, age: Duration) {
        self.shared().trim_idle(age);
    }

    /// Lets go of the memory that the pool has, at the end of a phase, after which other sizes or
    /// less memory are needed.
    ///
    /// Memory that holds no buffers is freed, as by [`trim`](Self::trim); memory that holds some is
    /// freed, not kept, when they are released. The shards that threads carve at the moment stay in
    /// use until they are full. The larger piece that another thread has to itself stays, if its
    /// buffer is out, until that thread's next request larger than a shard, or a trim.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(64 << 10).build()?;
    /// let loaded: Vec<_> = (0..10).map(|_| pool.acquire(60 << 10)).collect::<Result<_, _>>()?;
    /// pool.clear(); // all of it is in use, and will be freed
    /// assert_eq!(pool.bump_stats().pinned, 10);
    /// drop(loaded);
    /// assert!(pool.bump_stats().idle <= 1); // the shard that this thread carves
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn clear(&self) {
        self.shared().clear();
    }

    /// Moves a small survivor out of a large shard.
    ///
    /// If a buffer holds up a shard from which its thread carves no more, this copies it to a place
    /// among the youngest buffers. Then the shard can be used again. Otherwise, and when there is
    /// no memory for it, the buffer is returned as it is.
    ///
    /// A buffer holds its shard up when the buffers that are out of the shard are few and small.
    /// The measure is their number times the size of this one: it is less than one part in `ratio`
    /// of the shard. A part of a buffer that was split moves when it is the last part. Call it for
    /// a buffer that is going to be kept for long.
    ///
    /// Cost: some loads; an acquire, a copy of the filled part, and a release if it moves. Its
    /// capacity stays at least as it was.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(4096).build()?;
    /// let mut kept = pool.acquire(16)?;
    /// kept.extend_from_slice(b"survivor")?;
    /// let others: Vec<_> = (0..300).map(|_| pool.acquire(64)).collect::<Result<_, _>>()?;
    /// drop(others);
    /// let before = pool.stats().pinned_bytes;
    /// let kept = pool.detach_if_pinning(kept, 8);
    /// assert_eq!(&kept[..], b"survivor");
    /// # assert!(pool.stats().pinned_bytes <= before);
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[must_use = "the buffer is dropped otherwise"]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn detach_if_pinning(&self, buf: Buf<BumpLease>, ratio: usize) -> Buf<BumpLease> {
        let Some(block) = buf.lease().block() else { return buf };
        // SAFETY: the buffer is out while it is borrowed.
        let shard = unsafe { Block::shard(block) };
        if shard.is_single() || shard.is_current() || !buf.lease().is_alone() {
            return buf;
        }
        let (out, bytes) = shard.snapshot();
        if buf.capacity().saturating_mul(out).saturating_mul(ratio) > bytes {
            return buf;
        }
        let Ok(mut copy) = self.acquire(buf.capacity()) else { return buf };
        match copy.extend_from_slice(&buf) {
            Ok(()) => copy,
            Err(_) => buf,
        }
    }
}

// Behind the methods of its own, which documentation shows first.
bufkit::shared_pool!(impl BumpPool => BumpLease);
