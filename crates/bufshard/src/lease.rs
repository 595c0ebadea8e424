//! The lease: what a buffer keeps of the pool it came from.

use core::fmt;
use core::ptr::NonNull;

use bufcore::author::{RefCount, TaggedPtr};
use bufcore::{Buf, Frozen, Lease};

use crate::block::Block;
use crate::cache::ThreadCache;
use crate::release;
use crate::shared::Shared;

/// A buffer of a [`ShardPool`](crate::ShardPool).
///
/// ```
/// use std::sync::mpsc;
/// use bufshard::{ShardBuf, ShardPool};
///
/// struct Job {
///     body: ShardBuf,
/// }
///
/// let pool = ShardPool::new()?;
/// let (sender, receiver) = mpsc::channel::<Job>();
/// let worker = std::thread::spawn(move || receiver.iter().map(|job| job.body.len()).max());
/// for body in ["one", "three"] {
///     let mut job = Job { body: pool.acquire(1500)? };
///     job.body.extend_from_slice(body.as_bytes())?;
///     sender.send(job)?;
/// }
/// drop(sender);
/// assert_eq!(worker.join().unwrap(), Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ShardBuf = Buf<ShardLease>;

/// A view of a buffer of a [`ShardPool`](crate::ShardPool).
///
/// ```
/// use bufshard::{ShardPool, ShardView};
///
/// let mut news = ShardPool::new()?.acquire(64)?;
/// news.extend_from_slice(b"the same bytes for all")?;
/// let view: ShardView = news.freeze();
/// let subscribers = vec![view.clone(), view.slice(..8), view]; // without a copy
/// assert!(subscribers.iter().all(|view| view.starts_with(b"the same")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ShardView = Frozen<ShardLease>;

/// The lease of a [`ShardPool`](crate::ShardPool): one word, which identifies the block of the
/// buffer.
///
/// It releases the memory when the buffer is dropped, on any thread.
///
/// ```
/// use bufshard::{Buf, ShardLease, ShardPool};
///
/// /// What a request took that its pool does not keep.
/// fn unpooled(bufs: &[Buf<ShardLease>]) -> usize {
///     bufs.iter().filter(|buf| buf.lease().is_fallback()).map(|buf| buf.capacity()).sum()
/// }
///
/// let pool = ShardPool::builder().largest_pooled(1 << 20).build()?;
/// assert_eq!(unpooled(&[pool.acquire(1500)?, pool.acquire(3 << 20)?]), 3 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardLease {
    tagged: TaggedPtr<Block>,
}

// SAFETY: one field, which `is_shared` asks; what a release touches is made for any thread
// (`release`), and the count is atomic.
bufcore::tagged_lease!(unsafe impl ShardLease => Block);

impl ShardLease {
    /// Returns whether the memory is a separate allocation, because the pool does not keep buffers
    /// of this size.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().largest_pooled(1 << 20).build()?;
    /// assert!(!pool.acquire(1 << 20)?.lease().is_fallback());
    /// assert!(pool.acquire(2 << 20)?.lease().is_fallback());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().is_some_and(|block| unsafe { block.as_ref() }.is_single())
    }
}

// SAFETY:
// - memory: a block is handed out again, or freed, only after its release (`block`, K2).
// - copies: one raw pointer.
// - count: in the block's header, used by nobody else; none for a buffer of no bytes.
// - wipe, start: the bytes of the block, which it has alone.
unsafe impl Lease for ShardLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().map(|block| unsafe { &(*block.as_ptr()) }.views())
    }

    #[inline(always)]
    fn is_shared(&self) -> bool {
        self.tagged.is_shared()
    }

    #[cfg(feature = "wipe")]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        let block = self.block()?;
        // SAFETY: the buffer is out while its lease is borrowed.
        let header = unsafe { block.as_ref() };
        // SAFETY: a block keeps the pool's bookkeeping (`block`, K3).
        let wipes = unsafe { Shared::of(header).as_ref() }.settings.wipe;
        if !wipes {
            return None;
        }
        // SAFETY: the buffer is out, as above.
        let start = unsafe { Block::start(block) };
        // SAFETY: likewise.
        let bytes = unsafe { Block::usable_bytes(block) };
        Some(NonNull::slice_from_raw_parts(start, bytes))
    }

    fn start(&self) -> Option<NonNull<u8>> {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().map(|block| unsafe { Block::start(block) })
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self::empty())
    }
}

impl Drop for ShardLease {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(block) = self.block() else { return };
        // SAFETY: the buffer is out until the release below.
        let header = unsafe { block.as_ref() };
        let class = header.class();
        if let Some(cache) = ThreadCache::recall_last(Shared::id_of(header)) {
            // SAFETY: as above.
            cache.counts.released(class, unsafe { Block::counted_bytes(block) });
            // SAFETY: this lease was the last of its buffer, and is dropped once; the cache is that
            // of the block's pool.
            if unsafe { cache.push(class, block) } {
                return;
            }
        }
        // One call for all else, so that this is small enough to be compiled into whoever drops a
        // buffer.
        // SAFETY: as above, and it was not taken.
        unsafe { release::release_slow(block) };
    }
}

impl fmt::Debug for ShardLease {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardLease").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}
