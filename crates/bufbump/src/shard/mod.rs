//! One shard: a span, its bump pointer, and the counts that say what of it is in use. All that a
//! release touches is here.
//!
//! ```text
//!  span     |<- Block | bytes ->|<- Block | bytes ->| … free …             |
//!           base                                    bump                   limit + HEADER_BYTES
//! ```
//!
//! # Who owns a shard
//!
//! - *Owned*: `owner` is the token of a thread, whose cache (`cache`) has the shard. That thread
//!   alone carves; it counts what it carves in `allocated` and what it releases in `local_frees`,
//!   by plain stores. Others count their releases in `remote_frees`.
//! - *Abandoned*: its thread has ended, or its pool did. `remote_frees` is `ABANDONED - out`, and
//!   whoever brings it to `ABANDONED` is last.
//! - *Orphaned*: its pool was dropped by another thread than the owner's, which may be releasing at
//!   that moment. `remote_frees` has `ORPHANED` added, and counts no more. The shard is on the list
//!   of `bufkit::orphan`, which counts the buffers that are out.
//! - *Free*: nothing is out, and whoever has the shard has it alone. That is the depot, a thread
//!   that is about to own it, or nobody, with its memory gone.
//!
//! # Invariants
//!
//! - B1: `allocated - local_frees - remote_frees` buffers of an owned shard are out (wrapping),
//!   never more than the memory has room for.
//! - B2: the bytes from `bump` on are in no buffer that is out; `bump` is `base` or where a block
//!   of this shard started or ended.
//! - B3: while a buffer is out, the header and the memory are there. The memory is freed only when
//!   nothing is out. A shard with memory that is not in the depot keeps the pool's bookkeeping, of
//!   which the header is a part. So does a buffer with a span of its own.
//! - B4: the last access of a release to its shard is the one that counts it.
//! - B5: only the owner's thread uses the fields of `own`, except that anybody may read its
//!   atomics. The links of a shard that is listed, and `is_seen`, are used under the lock of its
//!   cache.
//!   `chained` is for whoever has the shard alone.
//! - B6: `base` and `limit` are written while nothing is out, by whoever has the shard alone. So
//!   whoever has a buffer of the shard may read them.

mod block;
mod chain;
mod memory;
mod orphaned;

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufkit::orphan::{Methods, Orphan};
use bufkit::sync::{AtomicBool, AtomicUsize, Ordering, RELEASE};
use bufkit::{Link, RegistryEntry, Span};

pub(crate) use self::block::{Block, HEADER_BYTES};
pub(crate) use self::chain::{Chain, IdleShards};
#[cfg(all(test, loom))]
pub(crate) use self::orphaned::newly_freed;

/// The largest shard: what is out of it, and distances in it, are counted in fewer bits than these.
pub(crate) const MAX_SHARD_BYTES: usize = 1 << 30;

/// What `remote_frees` is when nothing of an abandoned shard is out.
pub(crate) const ABANDONED: usize = 1 << (usize::BITS - 1);
/// What is added to `remote_frees` of an orphaned shard. Larger than what `remote_frees` is
/// otherwise.
pub(crate) const ORPHANED: usize = ABANDONED | ABANDONED >> 1;
/// More buffers than this are never out of one shard.
const MAX_IN_USE: usize = MAX_SHARD_BYTES / HEADER_BYTES;

/// No thread's token, and not that of a thread that has none.
const NOBODY: usize = 1;

/// The ordering of a release on another thread.
// ORDER: Release pairs with the Acquire of whoever finds nothing out, Acquire with the Release of
// those that were before the last.
pub(crate) const JOINED: Ordering = Ordering::AcqRel;

// What a shard costs beside its memory.
const _: () = assert!(cfg!(any(loom, shuttle)) || size_of::<Shard>() <= 256);

/// The header of a shard.
#[repr(C)]
pub(crate) struct Shard {
    orphan: Orphan,
    /// The pool's bookkeeping, valid while the shard has memory (B3).
    pool: NonNull<()>,
    /// Token of the owner, or `NOBODY`.
    pub(crate) owner: AtomicUsize,
    /// Releases by others than the owner; see the head of this file.
    pub(crate) remote_frees: AtomicUsize,
    /// Of an orphaned shard: how many of `local_frees` the list knows of.
    known_frees: AtomicUsize,
    /// Of an orphaned shard: how many buffers were out when its pool ended.
    left_in_use: Cell<usize>,
    /// Bytes of the memory; zero without.
    bytes: AtomicUsize,
    /// The memory. Moved out when it is freed.
    span: Cell<Option<Span>>,
    /// The next of all headers of the pool (`depot`).
    older: Link<Shard>,
    /// Neighbours in the list of the cache.
    prev: Cell<*const Shard>,
    next: Cell<*const Shard>,
    /// The next in a chain.
    chained: Cell<Option<NonNull<Shard>>>,
    /// Stands for the memory, to the model checker.
    #[cfg(all(test, any(loom, shuttle)))]
    pub(crate) shadow: testkit::models::Shadow,
    /// On a line of its own: others write to those above.
    pub(crate) own: Own,
}

/// What the owner writes. In this order: what each request writes is on one line.
#[repr(C, align(64))]
pub(crate) struct Own {
    /// Where the next block starts (B2).
    pub(crate) bump: Cell<*mut u8>,
    /// Address at which there is room for a block's header and no more.
    limit: Cell<usize>,
    /// Where the first block starts.
    pub(crate) base: Cell<*mut u8>,
    /// Buffers carved since the shard became owned, wrapping.
    pub(crate) allocated: AtomicUsize,
    /// Of those, how many the owner has released, wrapping.
    pub(crate) local_frees: AtomicUsize,
    /// Whether the shard is on its thread's list. Written under the lock of the cache.
    is_listed: AtomicBool,
    /// Whether `trim_idle` saw it there, with nothing out.
    is_seen: Cell<bool>,
    /// The owner's cache.
    pub(crate) cache: Cell<*const ()>,
}

// SAFETY: one field.
unsafe impl RegistryEntry for Shard {
    fn link(&self) -> &Link<Self> {
        &self.older
    }
}

impl Shard {
    /// Makes a header without memory.
    ///
    /// `methods` are what `Orphan::counted` asks for, for an orphan that is the first field of a
    /// shard of this pool.
    pub(crate) fn new(pool: NonNull<()>, methods: &'static Methods) -> Self {
        Self {
            orphan: Orphan::counted(methods),
            pool,
            owner: AtomicUsize::new(NOBODY),
            remote_frees: AtomicUsize::new(0),
            known_frees: AtomicUsize::new(0),
            left_in_use: Cell::new(0),
            bytes: AtomicUsize::new(0),
            span: Cell::new(None),
            older: Link::default(),
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            chained: Cell::new(None),
            #[cfg(all(test, any(loom, shuttle)))]
            shadow: testkit::models::Shadow::default(),
            own: Own {
                bump: Cell::new(ptr::null_mut()),
                limit: Cell::new(0),
                base: Cell::new(ptr::null_mut()),
                allocated: AtomicUsize::new(0),
                local_frees: AtomicUsize::new(0),
                is_listed: AtomicBool::new(false),
                is_seen: Cell::new(false),
                cache: Cell::new(ptr::null()),
            },
        }
    }

    /// Returns the pool's bookkeeping.
    pub(crate) fn pool(&self) -> NonNull<()> {
        self.pool
    }

    pub(crate) fn next(&self) -> *const Shard {
        self.next.get()
    }

    pub(crate) fn set_next(&self, next: *const Shard) {
        self.next.set(next);
    }

    pub(crate) fn prev(&self) -> *const Shard {
        self.prev.get()
    }

    pub(crate) fn set_prev(&self, prev: *const Shard) {
        self.prev.set(prev);
    }

    /// Makes a free shard the calling thread's, in its cache, whose address that is.
    pub(crate) fn set_owner(&self, token: usize, cache: NonNull<()>) {
        let own = &self.own;
        own.bump.set(own.base.get());
        own.cache.set(cache.as_ptr());
        // ORDER: Relaxed, for all: the shard is free, so nobody else reads them except `stats`;
        // what hands over a buffer publishes them.
        own.allocated.store(0, Ordering::Relaxed);
        own.local_frees.store(0, Ordering::Relaxed);
        self.remote_frees.store(0, Ordering::Relaxed);
        self.owner.store(token, Ordering::Relaxed);
    }

    /// Takes a block with room for `bytes` bytes; null when there is none, or for no bytes. For the
    /// owner; `mask` is the pool's alignment minus one.
    #[inline(always)]
    pub(crate) fn carve(&self, bytes: usize, mask: usize) -> *mut Block {
        let own = &self.own;
        let start = own.bump.get();
        let room = own.limit.get().saturating_sub(start.addr());
        // One comparison for `1 <= bytes <= room`.
        if bytes.wrapping_sub(1) >= room {
            return ptr::null_mut();
        }
        // No overflow: `bytes` is at most a shard's. Within the memory: what is left of it is a
        // multiple of the alignment.
        let step = (bytes + HEADER_BYTES + mask) & !mask;
        // SAFETY: at most the end of the memory, as above.
        own.bump.set(unsafe { start.add(step) });
        // ORDER: Relaxed, for both: only this thread writes it; for others it is a number, or they
        // learn it with the pool's end, which orders it (`Shared::close`).
        own.allocated.store(own.allocated.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // SAFETY: the bytes from `bump` on are nobody's (B2), `step` of them are in the memory, and
        // blocks are aligned for it.
        unsafe { Block::write(start.cast(), NonNull::from(self), step as u32) }
    }

    /// Gives a block room for `bytes` bytes, if it has it, or is the newest and the shard has it.
    /// Returns by how much the block became longer.
    ///
    /// # Safety
    ///
    /// The block is one of this shard's, and its buffer is in use. The caller owns the shard, and
    /// has the only handle of the buffer.
    pub(crate) unsafe fn extend(&self, block: NonNull<Block>, bytes: usize, mask: usize) -> Option<usize> {
        let own = &self.own;
        // SAFETY: written when the block was made, or here; nobody else reads it.
        let step = unsafe { &mut (*block.as_ptr()).step };
        if bytes + HEADER_BYTES <= *step as usize {
            return Some(0);
        }
        let is_newest = block.addr().get() + *step as usize == own.bump.get().addr();
        if !is_newest || bytes > own.limit.get().saturating_sub(block.addr().get()) {
            return None;
        }
        // No overflow, and within the memory, as in `carve`.
        let longer = (bytes + HEADER_BYTES + mask) & !mask;
        // SAFETY: as above.
        own.bump.set(unsafe { block.cast::<u8>().add(longer) }.as_ptr());
        let more = longer - *step as usize;
        *step = longer as u32;
        Some(more)
    }

    /// Returns whether `bytes` bytes can be carved. The caller owns the shard.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.own.limit.get().saturating_sub(self.own.bump.get().addr())
    }

    /// Returns whether nothing is out. Then the owner, which is the caller, has the shard alone.
    pub(crate) fn is_empty(&self) -> bool {
        let own = &self.own;
        // ORDER: Relaxed, for both: this thread wrote them.
        let out = own.allocated.load(Ordering::Relaxed).wrapping_sub(own.local_frees.load(Ordering::Relaxed));
        // ORDER: Acquire pairs with the Release of `release_remote`: all that others did with
        // the memory happened before.
        out == self.remote_frees.load(Ordering::Acquire)
    }

    /// Starts again at the first byte, with nothing out. The caller is the owner, and the pool
    /// cannot end meanwhile.
    pub(crate) fn restart(&self) {
        #[cfg(all(test, loom))]
        self.shadow.write();
        self.own.bump.set(self.own.base.get());
        // ORDER: Relaxed: whoever found nothing out has read it with Acquire.
        let others = self.remote_frees.load(Ordering::Relaxed);
        // SAFETY: the shard is there while it is borrowed.
        unsafe { fold(NonNull::from(self), others) };
    }

    /// Ends the ownership of a shard of which nothing is out, and which the calling thread has
    /// alone.
    pub(crate) fn clear_owner(&self) {
        #[cfg(all(test, loom))]
        self.shadow.write();
        // ORDER: Relaxed: whatever hands the shard over publishes it.
        self.owner.store(NOBODY, Ordering::Relaxed);
    }

    /// Ends the ownership of the calling thread. Returns whether nothing is out: the caller then
    /// has the shard alone. Otherwise it is the last release's, and may be gone: so it comes by
    /// pointer.
    ///
    /// # Safety
    ///
    /// The calling thread owns the shard. It does not use it again when this returns `false`.
    pub(crate) unsafe fn abandon(this: NonNull<Shard>) -> bool {
        // SAFETY: owned, so valid until the addition below.
        let header = unsafe { this.as_ref() };
        let own = &header.own;
        // ORDER: Relaxed: only this thread's own releases compare with it, and they are in program
        // order.
        header.owner.store(NOBODY, Ordering::Relaxed);
        // ORDER: Relaxed, for both: this thread wrote them.
        let out = own.allocated.load(Ordering::Relaxed).wrapping_sub(own.local_frees.load(Ordering::Relaxed));
        // ORDER: Release pairs with the Acquire of the last release: it sees this thread's
        // releases. Acquire pairs with the Release of others' releases, for the case that all were
        // before. `remote_frees` becomes `ABANDONED` less what is still out.
        header.remote_frees.fetch_add(ABANDONED.wrapping_sub(out), JOINED) == out
    }

    /// Returns how many buffers are out, and the bytes of the memory, as far as can be seen at this
    /// moment without stopping anybody.
    pub(crate) fn snapshot(&self) -> (usize, usize) {
        // ORDER: Relaxed, for all: numbers for people.
        let bytes = self.bytes.load(Ordering::Relaxed);
        let remote_frees = self.remote_frees.load(Ordering::Relaxed);
        let owner = self.owner.load(Ordering::Relaxed);
        let allocated = self.own.allocated.load(Ordering::Relaxed);
        let local_frees = self.own.local_frees.load(Ordering::Relaxed);
        let out = match remote_frees {
            _ if bytes == 0 => 0,
            remote_frees if remote_frees > ABANDONED => 0,
            remote_frees if remote_frees >= ABANDONED - MAX_IN_USE => ABANDONED - remote_frees,
            _ if owner == NOBODY => 0,
            remote_frees => allocated.wrapping_sub(local_frees).wrapping_sub(remote_frees),
        };
        // Torn by a thread that is at work, the difference may be less than nothing.
        (if out > MAX_IN_USE { 0 } else { out }, bytes)
    }

    /// Lets trims look at a shard that is on the list of the calling thread, its owner, or not any
    /// more. The caller has the lock of the cache.
    pub(crate) fn set_listed(&self, is_listed: bool) {
        self.own.is_seen.set(false);
        // ORDER: Relaxed: other threads that rely on it have the lock of the cache.
        self.own.is_listed.store(is_listed, Ordering::Relaxed);
    }

    /// Returns whether the shard is carved from no more, to its owner, and to whoever has the lock
    /// of its cache. To others it is a hint.
    pub(crate) fn is_listed(&self) -> bool {
        // ORDER: Relaxed: the owner wrote it, or the lock orders it.
        self.own.is_listed.load(Ordering::Relaxed)
    }

    /// Returns whether a trim may take a shard that is listed: nothing is out. With `unused`, only
    /// if the last such look saw the same. The caller has the lock of the cache, so nothing is
    /// carved.
    pub(crate) fn is_for_trim(&self, unused: bool) -> bool {
        // ORDER: Relaxed: the owner carved before it listed the shard, under the lock.
        let allocated = self.own.allocated.load(Ordering::Relaxed);
        // ORDER: Acquire, for both, pairs with the Release of `release_remote` and
        // `release_local`: the last owners are done before the memory goes.
        let others = self.remote_frees.load(Ordering::Acquire);
        let local_frees = self.own.local_frees.load(Ordering::Acquire);
        let is_free = allocated == local_frees.wrapping_add(others);
        is_free && (self.own.is_seen.replace(true) || !unused)
    }

    /// Returns whether a thread carves from the shard at this moment, as far as can be seen.
    pub(crate) fn is_current(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.owner.load(Ordering::Relaxed) != NOBODY && !self.is_listed()
    }
}

/// Moves the others' count of releases, `others`, to the owner's, when nothing is out but what the
/// caller is releasing: so that `remote_frees` never reaches its flags, however long the shard
/// lives. Counts the caller's release, in its last step (B4).
///
/// # Safety
///
/// For the owner; the shard is valid until the count is right.
pub(crate) unsafe fn fold(shard: NonNull<Shard>, others: usize) {
    // SAFETY: the caller's promise.
    let header = unsafe { shard.as_ref() };
    // ORDER: Relaxed: this thread wrote it.
    let mut local_frees = header.own.allocated.load(Ordering::Relaxed);
    // ORDER: Relaxed: the Release below publishes what it has to. The exchange fails if the pool's
    // end has added its flag meanwhile, and counted these releases as the others'.
    if others != 0
        && header.remote_frees.compare_exchange(others, 0, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        local_frees = local_frees.wrapping_sub(others);
    }
    // ORDER: Release pairs with the Acquire loads in `is_for_trim`, `orphan` and `count_missed`.
    header.own.local_frees.store(local_frees, RELEASE);
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Shard {
    pub(crate) fn is_owned_by(&self, token: usize) -> bool {
        // ORDER: Relaxed: a test of one thread.
        self.owner.load(Ordering::Relaxed) == token
    }

    pub(crate) fn is_at_start(&self) -> bool {
        core::ptr::eq(self.own.bump.get(), self.own.base.get())
    }

    /// Asserts B1 and B2 as far as they show.
    pub(crate) fn check(&self) {
        let (bump, base) = (self.own.bump.get().addr(), self.own.base.get().addr());
        let end = self.own.limit.get() + HEADER_BYTES;
        assert!(base <= bump && bump <= end, "B2: {bump:#x} in {base:#x} to {end:#x}");
        let (out, bytes) = self.snapshot();
        assert!(out <= bytes / 8 + 1, "B1: {out} out of {bytes} bytes");
        assert_eq!(out == 0, self.is_empty(), "B1");
    }
}
