//! The lease in a buffer: what it keeps of the pool that the buffer came from.

use core::fmt;
use core::ptr::NonNull;

use bufcore::author::{RefCount, TaggedPtr};
use bufcore::{Buf, Frozen, Lease};

use crate::release;
use crate::shard::Block;

/// A buffer of a [`BumpPool`](crate::BumpPool).
///
/// ```
/// use bufbump::{BumpBuf, BumpPool};
///
/// /// Splits the first line off, in the same memory.
/// fn take_line(input: &mut BumpBuf) -> Option<BumpBuf> {
///     let end = input.iter().position(|&byte| byte == b'\n')?;
///     Some(input.split_to(end + 1))
/// }
///
/// let pool = BumpPool::new()?;
/// let mut input = pool.acquire(1500)?;
/// input.extend_from_slice(b"EHLO there\nMAIL FR")?;
/// assert_eq!(take_line(&mut input).unwrap(), *b"EHLO there\n");
/// assert!(take_line(&mut input).is_none());
/// input.extend_from_slice(b"OM:<ada@example.org>\n")?; // the rest arrives
/// assert!(take_line(&mut input).unwrap().starts_with(b"MAIL FROM"));
/// # Ok::<(), bufbump::Error>(())
/// ```
pub type BumpBuf = Buf<BumpLease>;

/// A view of a buffer of a [`BumpPool`](crate::BumpPool).
///
/// ```
/// use bufbump::{BumpPool, BumpView};
///
/// let pool = BumpPool::new()?;
/// let mut message = pool.acquire(64)?;
/// message.extend_from_slice(b"a message for all")?;
/// let message: BumpView = message.freeze();
/// let subscribers: Vec<_> = (0..3)
///     .map(|_| {
///         let message = message.clone(); // no copy, no allocation
///         std::thread::spawn(move || message.len())
///     })
///     .collect();
/// assert!(subscribers.into_iter().all(|thread| thread.join().unwrap() == 17));
/// # Ok::<(), bufbump::Error>(())
/// ```
pub type BumpView = Frozen<BumpLease>;

/// The lease of a [`BumpPool`](crate::BumpPool): one word, which identifies the block of the
/// buffer.
///
/// ```
/// use bufbump::{Buf, BumpLease, Frozen};
///
/// // Its name is needed where a type or a signature says from which kind of pool a buffer comes.
/// struct Cache {
///     page: Frozen<BumpLease>,
///     draft: Option<Buf<BumpLease>>,
/// }
///
/// // One word more than the address, the length and the capacity.
/// # #[cfg(not(feature = "track"))]
/// assert_eq!(size_of::<Buf<BumpLease>>(), 4 * size_of::<usize>());
/// ```
pub struct BumpLease {
    tagged: TaggedPtr<Block>,
}

// SAFETY: one field, which `is_shared` asks; what a release touches is made for any thread
// (`release`), and the count is atomic.
bufcore::tagged_lease!(unsafe impl BumpLease => Block);

impl BumpLease {
    /// Returns whether the buffer has pages of its own.
    ///
    /// This is so for a request larger than a shard, and for a request during a thread's exit.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(64 << 10).build()?;
    /// let bodies = [pool.acquire(1500)?, pool.acquire(64 << 10)?, pool.acquire(100 << 10)?];
    /// let too_large = bodies.iter().filter(|body| body.lease().is_fallback());
    /// assert_eq!(too_large.count(), 1); // many of them ask for larger shards
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().is_some_and(|block| unsafe { Block::shard(block) }.is_none())
    }

    /// Returns whether nobody wrote to the memory of a buffer that was just acquired since the
    /// system gave it.
    pub(crate) fn is_zero(&self) -> bool {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().is_some_and(|block| unsafe { Block::was_zero(block) })
    }
}

// SAFETY:
// - memory: a block is carved again only after its release has been counted, and a shard's memory
//   is freed only when nothing of it is out (`shard`, B2, B3).
// - copies: one raw pointer.
// - count: in the block's header, used by nobody else; none for a buffer of no bytes.
// - wipe, start: the bytes of the block, as carved.
unsafe impl Lease for BumpLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        // SAFETY: the buffer is out while its lease is borrowed.
        self.block().map(|block| unsafe { Block::views(block) })
    }

    #[inline(always)]
    fn is_shared(&self) -> bool {
        self.tagged.is_shared()
    }

    #[cfg(feature = "wipe")]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        let block = self.block()?;
        // SAFETY: the buffer is out while its lease is borrowed.
        let wipes = unsafe { Block::pool(block) }.settings.wipe;
        // SAFETY: likewise.
        let capacity = unsafe { Block::capacity(block) };
        // SAFETY: likewise.
        let start = unsafe { Block::start(block) };
        wipes.then(|| NonNull::slice_from_raw_parts(start, capacity))
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

impl Drop for BumpLease {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(block) = self.block() else { return };
        // SAFETY: the buffer is out until the release below.
        #[cfg(feature = "stats")]
        unsafe {
            count(block)
        };
        // SAFETY: this lease was the last of its buffer, and is dropped once.
        unsafe { release::release(block) };
    }
}

/// Counts a buffer as back.
///
/// # Safety
///
/// The buffer of `block` is being released, and not yet.
#[cfg(feature = "stats")]
unsafe fn count(block: NonNull<Block>) {
    // SAFETY: the caller's promise.
    let counters = &unsafe { Block::pool(block) }.counters;
    // SAFETY: the caller's promise.
    counters.released(unsafe { Block::capacity(block) });
}

impl fmt::Debug for BumpLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BumpLease").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}
