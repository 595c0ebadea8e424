//! The pool, as its users hold it.

mod traits;

use core::ptr::NonNull;
use core::time::Duration;

use bufcore::author::{Growth, Served};
use bufcore::{AcquireError, Buf, ConfigError, RegionError};
use bufkit::{Handle, PageSource};

use crate::cache::local;
use crate::lease::BumpLease;
use crate::request::Obtained;
use crate::settings::Settings;
use crate::shard::Block;
use crate::shared::Shared;

/// A pool whose threads carve their buffers from shards of their own. See the [crate
/// documentation](crate).
///
/// It is a handle: clones share one pool, which lives until the last clone is dropped. Dropping the
/// last handle frees all memory without live buffers. Each other shard is freed with its last
/// buffer; buffers outlive the pool. It never waits.
///
/// Threads: any number acquire and release, through clones or a shared reference. Between `fork`
/// and `exec` a child process must not use the pool; it may exit.
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
    /// `Shared::id`, here for the fast path, as is the next.
    id: usize,
    /// The alignment minus one.
    mask: usize,
}

bufcore::unwind_safe!(BumpPool);

/// Fewer bytes are zeroed sooner than a look tells whether they are zero.
const LOOKED_AT_FROM_BYTES: usize = 2048;

impl BumpPool {
    pub(crate) fn with(
        settings: Settings,
        source: PageSource,
        preallocate: usize,
    ) -> Result<Self, ConfigError> {
        let pool = Self::over(Shared::new(settings, source)?);
        pool.preallocate(preallocate)?;
        Ok(pool)
    }

    /// Makes the pool of a handle.
    fn over(handle: Handle<Shared>) -> Self {
        Self { id: handle.id, mask: handle.settings.alignment - 1, handle }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn id(&self) -> usize {
        self.shared().id
    }

    /// Adds idle shards.
    fn preallocate(&self, shards: usize) -> Result<(), ConfigError> {
        for _ in 0..shards {
            let requested = self.shared().settings.span_bytes;
            let refused = |_refused| RegionError::OutOfMemory { requested };
            let shard = self.shared().fresh(requested).map_err(refused)?;
            // SAFETY: nothing of it is out, and it is ours alone.
            unsafe { Shared::recycle(NonNull::from(shard)) };
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
    /// Contents: the filled part is empty; [`Buf::spare_mut`] shows recycled bytes, unless the pool
    /// wipes. Cost: a few dozen plain instructions and no locked one, if the thread's current
    /// shard has room. Otherwise it checks up to [`max_probes`](crate::Builder::max_probes) shards
    /// of the thread, then the idle ones under a short lock, and finally the pool's free pages.
    ///
    /// A request larger than a shard has whole pages of its own. On release, the thread keeps one
    /// such buffer for a request that needs most of it; pages of the others serve requests of any
    /// size. Cost: no locked instruction for the kept buffer; for others a short lock if free pages
    /// are contiguous, or system calls and page faults.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] for a size that cannot exist, [`AcquireError::OutOfMemory`] if
    /// the allocator fails. Never [`AcquireError::Exhausted`].
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
                // SAFETY: just taken.
                return Ok(unsafe { self.hand_out(block, Block::behind(block), capacity, Served::Reused) });
            }
        }
        // The slow path returns its `Buf` through memory. Re-wrapping it here keeps the fast path's
        // in registers. That it is empty is said once more, where the compiler can see it.
        let mut buf = self.acquire_slow(capacity)?;
        buf.clear();
        Ok(buf)
    }

    /// Takes one buffer with `len` filled bytes, all zero, as
    /// [`BufferPool::acquire_zeroed`](bufcore::BufferPool::acquire_zeroed) does, through a shared
    /// reference.
    ///
    /// Cost: zeroing on top of [`acquire`](Self::acquire), except for a request larger than a shard
    /// whose pages are new: the system zeroes them.
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
        if len < LOOKED_AT_FROM_BYTES || !buf.lease().is_zero() {
            buf.spare_mut()[..len].fill(0);
        }
        buf.commit(len);
        Ok(buf)
    }

    /// Makes room in `buf` for at least `additional` bytes after the filled ones, as
    /// [`BufferPool::grow`](bufcore::BufferPool::grow) does, through a shared reference.
    ///
    /// The buffer grows in place if it is the newest one of the shard that the thread carves.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The filled bytes are unchanged on an error.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let mut line = pool.acquire(80)?;
    /// let start = line.as_ptr();
    /// line.extend_from_slice(&[b'.'; 80])?;
    /// pool.grow(&mut line, 1000)?;
    /// assert_eq!((line.as_ptr(), line.len()), (start, 80)); // nothing was copied
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn grow(&self, buf: &mut Buf<BumpLease>, additional: usize) -> Result<(), AcquireError> {
        let Some(growth) = Growth::of(buf, additional, self.max_capacity())? else { return Ok(()) };
        if self.grow_in_place(buf, growth.roomy) || self.grow_in_place(buf, growth.least) {
            return Ok(());
        }
        growth.move_to(&mut &*self, buf)
    }

    /// Gives a buffer room for `bytes` bytes in all, if it is the newest of the shard that the
    /// calling thread carves, which has so many left.
    fn grow_in_place(&self, buf: &mut Buf<BumpLease>, bytes: usize) -> bool {
        let Some(block) = buf.lease().block() else { return false };
        let Some(shard) = local::shard(self.id) else { return false };
        // SAFETY: the shard that this thread carves for this pool is valid (`local`, L1).
        let shard = unsafe { shard.as_ref() };
        // SAFETY: the buffer is in use while it is borrowed.
        let is_here = unsafe { Block::shard(block) }.is_some_and(|its| core::ptr::eq(its, shard));
        if !is_here || !bufkit::is_alone(buf.lease()) {
            return false;
        }
        let consumed = buf.as_ptr().addr() - Block::behind(block).addr().get();
        // SAFETY: a block of this shard, which this thread owns, with one handle, which is
        // borrowed.
        let Some(more) = (unsafe { shard.extend(block, consumed + bytes, self.mask) }) else { return false };
        self.shared().counters.grown(more);
        // SAFETY: the block has that number of bytes from the buffer's start on (`shard`, B2), all
        // initialised.
        unsafe { buf.set_capacity(bytes) };
        true
    }

    /// Makes the buffer in a block.
    ///
    /// # Safety
    ///
    /// The calling thread has just taken the block, for this number of bytes, which begin at
    /// `start`.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    unsafe fn hand_out(
        &self,
        block: NonNull<Block>,
        start: NonNull<u8>,
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

    /// Serves a request that the current shard cannot, one of no bytes, and a thread's first.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_slow(&self, bytes: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if bytes == 0 {
            return Ok(self.shared().tracker.attach(bufkit::empty_buf(self.mask + 1)));
        }
        if let Some(block) = self.shared().take_kept(bytes) {
            // SAFETY: just taken, with a span of its own.
            let start = unsafe { Block::own_start(block, self.shared()) };
            // SAFETY: likewise.
            return Ok(unsafe { self.hand_out(block, start, bytes, Served::Reused) });
        }
        let Obtained { block, served } = self.shared().find(bytes)?;
        // SAFETY: just taken.
        let start = unsafe { Block::start(block) };
        // SAFETY: likewise.
        let buf = unsafe { self.hand_out(block, start, bytes, served) };
        if !matches!(served, Served::Reused) {
            // The pool has grown. This may call users' code, which finds the buffer complete.
            self.shared().growth.notify();
        }
        Ok(buf)
    }

    /// Frees the memory without live buffers.
    ///
    /// This frees the idle shards and free pages of the pool, the blocks that threads keep, and the
    /// shards of threads whose buffers other threads released. It does not free a shard with live
    /// buffers, nor the shard that a thread carves.
    ///
    /// It skips a thread that takes or returns a shard at this moment.
    ///
    /// Cost: a check of the shards of each thread after a process-wide fence, and the system's time
    /// for the returned pages. The 256-byte header of a shard is kept for the next one.
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
    /// Of the idle shards and free pages it frees as many as were unused throughout that time. Of
    /// the shards of threads whose buffers other threads released, it frees the unused ones. It
    /// does not free the shard that a thread carves: it would have to stop the thread.
    ///
    /// A [`Keeper`](crate::Keeper) calls it automatically. Without one, a program calls it
    /// periodically, as often as it likes. Buffers have no time stamps; the calls themselves sample
    /// the pool:
    ///
    /// - The first call records a sample.
    /// - A call at least `age` after the last sample compares, frees, and records a new sample.
    /// - An earlier call does nothing.
    ///
    /// The freed memory was therefore unused for at least `age`. Shards are freed in the order in
    /// which they would be used next, so the most recently used one may be among them. Idle memory
    /// is freed after at most twice the `age`, if the calls are frequent enough.
    ///
    /// Cost: nothing for most calls. A call that takes a sample visits the shards of every thread,
    /// and costs the system's time for the returned pages.
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

    /// Moves a small long-lived buffer out of a large shard.
    ///
    /// If a buffer pins a shard that its thread no longer carves, this copies the buffer to a new
    /// place among the youngest ones. The old shard can then be reused. Otherwise, and if there is
    /// no memory for the copy, the buffer is returned unchanged.
    ///
    /// A buffer pins its shard if the live buffers of the shard are few and small. The condition:
    /// their number times the size of this buffer is less than one part in `ratio` of the shard. A
    /// part of a split buffer moves only if it is the last part. Call it for a buffer that will be
    /// kept for long.
    ///
    /// Cost: a few loads; if the buffer moves, an acquire, a copy of the filled part, and a
    /// release. The capacity never shrinks.
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
    /// let kept = pool.evacuate(kept, 8);
    /// assert_eq!(&kept[..], b"survivor");
    /// # assert!(pool.stats().pinned_bytes <= before);
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[must_use = "the buffer is dropped otherwise"]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn evacuate(&self, buf: Buf<BumpLease>, ratio: usize) -> Buf<BumpLease> {
        let Some(block) = buf.lease().block() else { return buf };
        // SAFETY: the buffer is out while it is borrowed.
        let Some(shard) = (unsafe { Block::shard(block) }) else { return buf };
        if shard.is_current() || !bufkit::is_alone(buf.lease()) {
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
