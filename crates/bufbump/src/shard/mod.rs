//! One shard: a piece of memory, its bump pointer, and the counts that say what of it is out. All
//! that a release touches is here.
//!
//! ```text
//!  region   |<- Block | bytes ->|<- Block | bytes ->| … free …             |
//!           base                                    bump                   limit + HEADER_BYTES
//! ```
//!
//! # Who owns a shard
//!
//! - *Owned*: `owner` is the token of a thread, whose cache (`cache`) has the shard. That thread
//!   alone carves; it counts what it carves in `taken` and what it releases in `returned`, by plain
//!   stores. Others count their releases in `word`.
//! - *Abandoned*: its thread has ended, or its pool did. `word` is `ABANDONED - out`, and whoever
//!   brings it to `ABANDONED` is last.
//! - *Orphaned*: its pool was dropped by another thread than the owner's, which may be releasing at
//!   that moment. `word` has `ORPHANED` added, and the shard is on the list of
//!   `bufcore::strategy::orphans`.
//! - *Free*: nothing is out, and whoever has the shard has it alone: a stack of idle shards, a
//!   thread that is about to own it, or nobody, with its memory gone. Threads that look for a shard
//!   may still look at `place` and `older` of it (`depot`).
//!
//! # Invariants
//!
//! - B1: `taken - returned - word` buffers of an owned shard are out (wrapping), never more than
//!   the memory has room for.
//! - B2: the bytes from `bump` on are in no buffer that is out; `bump` is `base` or where a block
//!   of this shard started or ended.
//! - B3: while a buffer is out, the header and the memory are there: the memory is freed only when
//!   nothing is out, and a shard with memory keeps the pool's bookkeeping, of which the header is a
//!   part.
//! - B4: the last access of a release to its shard is the one that counts it.
//! - B5: only the owner's thread uses the fields of `own`, except that anybody may read its
//!   atomics; `rare` is as `depot` says.

mod block;
mod chain;

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufcore::strategy::orphans::{self, Orphan};
use bufcore::strategy::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE};
use bufcore::{Region, RegionError, size};

use crate::stack::{Place, Stacked};

pub(crate) use self::block::{Block, HEADER_BYTES};
pub(crate) use self::chain::Chain;

/// The largest shard: what is out of it, and distances in it, are counted in fewer bits than these.
pub(crate) const MAX_SHARD_BYTES: usize = 1 << 30;

/// What `word` is when nothing of an abandoned shard is out.
pub(crate) const ABANDONED: usize = 1 << (usize::BITS - 1);
/// What is added to `word` of an orphaned shard. Larger than what `word` is otherwise.
pub(crate) const ORPHANED: usize = ABANDONED | ABANDONED >> 1;
/// More buffers than this are never out of one shard.
const MOST_OUT: usize = MAX_SHARD_BYTES / HEADER_BYTES;

/// No thread's token, and not that of a thread that has none.
const NOBODY: usize = 1;

/// The ordering of a release on another thread.
// ORDER: Release pairs with the Acquire of whoever finds nothing out, Acquire with the Release of
// those that were before the last.
pub(crate) const JOINED: Ordering = Ordering::AcqRel;

// What a shard costs beside its memory.
const _: () = assert!(cfg!(any(loom, shuttle)) || size_of::<Shard>() <= 320);

/// The header of a shard.
#[repr(C)]
pub(crate) struct Shard {
    orphan: Orphan,
    /// The pool's bookkeeping, valid while the shard has memory (B3).
    pool: NonNull<()>,
    /// What the stacks note (`depot`).
    place: Place<Shard>,
    /// Token of the owner, or `NOBODY`.
    pub(crate) owner: AtomicUsize,
    /// Releases by others than the owner; see the head of this file.
    pub(crate) word: AtomicUsize,
    /// Bytes that the memory can hand out in one piece; zero without memory.
    pub(super) bytes: AtomicUsize,
    /// The memory. Moved out when it is freed.
    region: Cell<Option<Region>>,
    /// Stands for the memory, to the model checker.
    #[cfg(all(test, any(loom, shuttle)))]
    pub(crate) shadow: buftest::models::Shadow,
    /// Likewise for the header itself.
    #[cfg(all(test, loom))]
    pub(crate) life: buftest::models::Shadow,
    /// On a line of its own: others write to those above.
    pub(crate) own: Own,
}

/// What is written when the memory comes or goes, and when the header does.
pub(crate) struct Rare {
    /// The next of all headers of the pool (`depot`).
    pub(crate) older: AtomicPtr<Shard>,
    /// Whether the header is being taken off the list of all. For whoever does so.
    pub(crate) is_leaving: Cell<bool>,
    /// Whether the memory is for one buffer only, which no thread owns.
    is_single: Cell<bool>,
    /// What `Shared::generation` was when the memory was taken.
    pub(crate) generation: Cell<usize>,
}

/// What the owner writes.
#[repr(align(64))]
pub(crate) struct Own {
    /// Where the next block starts (B2).
    pub(crate) bump: Cell<*mut u8>,
    /// Address at which there is room for a block's header and no more.
    limit: Cell<usize>,
    /// Where the first block starts.
    pub(crate) base: Cell<*mut u8>,
    /// Buffers carved since the shard became owned, wrapping.
    pub(crate) taken: AtomicUsize,
    /// Of those, how many the owner has released, wrapping.
    pub(crate) returned: AtomicUsize,
    /// 1 while the shard is on its thread's list or a spare, so that it is not being carved; else
    /// 0.
    is_listed: AtomicU32,
    /// The owner's cache.
    pub(crate) cache: Cell<*const ()>,
    /// Neighbours in the list, or `next` in a chain.
    prev: Cell<*const Shard>,
    next: Cell<*const Shard>,
    /// Not the owner's alone, but seldom used; here because there is room on the second line.
    rare: Rare,
}

/// Bytes of a region for a shard of `bytes` with blocks at `alignment`, and where in it the first
/// block starts.
fn layout(bytes: usize, alignment: usize) -> Option<(usize, usize)> {
    // The bytes behind the first header are aligned; so are those behind all others, whose
    // distances are multiples.
    let first = alignment.saturating_sub(HEADER_BYTES);
    let blocks = size::align_up(bytes.checked_add(HEADER_BYTES)?, alignment)?;
    Some((first.checked_add(blocks)?, first))
}

// SAFETY: one field, which nobody else uses.
unsafe impl Stacked for Shard {
    fn place(&self) -> &Place<Self> {
        #[cfg(all(test, loom))]
        self.life.read();
        &self.place
    }
}

impl Shard {
    /// A header without memory.
    ///
    /// `try_free` is what `Orphan::new` asks for, for an orphan that is the first field of a shard
    /// of this pool.
    pub(crate) fn new(pool: NonNull<()>, try_free: unsafe fn(NonNull<Orphan>) -> bool) -> Self {
        Self {
            orphan: Orphan::new(try_free),
            pool,
            place: Place::default(),
            owner: AtomicUsize::new(NOBODY),
            word: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            region: Cell::new(None),
            #[cfg(all(test, any(loom, shuttle)))]
            shadow: buftest::models::Shadow::default(),
            #[cfg(all(test, loom))]
            life: buftest::models::Shadow::default(),
            own: Own {
                bump: Cell::new(ptr::null_mut()),
                limit: Cell::new(0),
                base: Cell::new(ptr::null_mut()),
                taken: AtomicUsize::new(0),
                returned: AtomicUsize::new(0),
                is_listed: AtomicU32::new(0),
                cache: Cell::new(ptr::null()),
                prev: Cell::new(ptr::null()),
                next: Cell::new(ptr::null()),
                rare: Rare {
                    older: AtomicPtr::new(ptr::null_mut()),
                    is_leaving: Cell::new(false),
                    is_single: Cell::new(false),
                    generation: Cell::new(0),
                },
            },
        }
    }

    /// Gives a free header memory for `bytes` bytes, in blocks at `alignment`.
    pub(crate) fn furnish(
        &self,
        bytes: usize,
        alignment: usize,
        generation: usize,
    ) -> Result<(), RegionError> {
        let too_large = RegionError::TooLarge { requested: bytes };
        let (len, first) = layout(bytes, alignment).ok_or(too_large)?;
        let region = Region::heap(len, alignment.max(HEADER_BYTES))?;
        // SAFETY: `first < len`.
        let base = unsafe { region.as_ptr().add(first) }.as_ptr();
        self.own.base.set(base);
        self.own.limit.set(region.as_ptr().addr().get() + len - HEADER_BYTES);
        self.region.set(Some(region));
        self.own.rare.generation.set(generation);
        self.own.rare.is_single.set(false);
        // ORDER: Relaxed: for `stats` only.
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Frees the memory of a free shard.
    pub(crate) fn strip(&self) {
        // ORDER: Relaxed, as in `furnish`.
        self.bytes.store(0, Ordering::Relaxed);
        #[cfg(all(test, loom))]
        crate::tests::loom::goes(&self.shadow);
        drop(self.region.take());
    }

    /// The pool's bookkeeping.
    pub(crate) fn pool(&self) -> NonNull<()> {
        self.pool
    }

    pub(crate) fn rare(&self) -> &Rare {
        &self.own.rare
    }

    pub(crate) fn is_single(&self) -> bool {
        self.own.rare.is_single.get()
    }

    /// Whether neither a stack nor somebody who looks for a shard refers to it. For its owner.
    pub(crate) fn is_alone(&self) -> bool {
        self.place.is_alone()
    }

    pub(crate) fn next(&self) -> *const Shard {
        self.own.next.get()
    }

    pub(crate) fn set_next(&self, next: *const Shard) {
        self.own.next.set(next);
    }

    pub(crate) fn prev(&self) -> *const Shard {
        self.own.prev.get()
    }

    pub(crate) fn set_prev(&self, prev: *const Shard) {
        self.own.prev.set(prev);
    }

    /// Says whether the shard is carved from no more. For the owner.
    pub(crate) fn set_listed(&self, is_listed: bool) {
        // ORDER: Relaxed: for others it is a hint.
        self.own.is_listed.store(is_listed.into(), Ordering::Relaxed);
    }

    pub(crate) fn is_listed(&self) -> bool {
        // ORDER: Relaxed: the owner wrote it itself, and for others it is a hint.
        self.own.is_listed.load(Ordering::Relaxed) != 0
    }

    /// Makes a free shard the calling thread's, in its cache, whose address that is.
    pub(crate) fn own(&self, token: usize, cache: NonNull<()>) {
        let own = &self.own;
        own.bump.set(own.base.get());
        self.set_listed(false);
        own.cache.set(cache.as_ptr());
        // ORDER: Relaxed, for all: the shard is free, so nobody else reads them but for `stats`;
        // what hands over a buffer publishes them.
        own.taken.store(0, Ordering::Relaxed);
        own.returned.store(0, Ordering::Relaxed);
        self.word.store(0, Ordering::Relaxed);
        self.owner.store(token, Ordering::Relaxed);
    }

    /// Whether `bytes` bytes can be carved. For the owner.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.own.limit.get().saturating_sub(self.own.bump.get().addr())
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
        own.taken.store(own.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // SAFETY: the bytes from `bump` on are nobody's (B2), `step` of them are in the memory, and
        // blocks are aligned for it.
        unsafe { Block::write(start.cast(), self, step as u32) }
    }

    /// Makes a free shard the memory of one buffer, which nobody owns: the buffer's release is the
    /// last.
    pub(crate) fn single(&self) -> *mut Block {
        self.own.rare.is_single.set(true);
        // ORDER: Relaxed: the shard is free; what hands over the buffer publishes it.
        self.word.store(ABANDONED - 1, Ordering::Relaxed);
        // SAFETY: the start of memory that is nobody's, and has room for a header.
        unsafe { Block::write(self.own.base.get().cast(), self, 0) }
    }

    /// Whether nothing is out; then the owner has the shard alone. For the owner.
    pub(crate) fn is_back(&self) -> bool {
        let own = &self.own;
        // ORDER: Relaxed, for both: this thread wrote them.
        let out = own.taken.load(Ordering::Relaxed).wrapping_sub(own.returned.load(Ordering::Relaxed));
        // ORDER: Acquire pairs with the Release of `release_elsewhere`: all that others did with
        // the memory happened before.
        out == self.word.load(Ordering::Acquire)
    }

    /// Starts again at the first byte, with nothing out. For the owner, while the pool cannot end.
    pub(crate) fn restart(&self) {
        #[cfg(all(test, loom))]
        self.shadow.write();
        self.own.bump.set(self.own.base.get());
        // ORDER: Relaxed: whoever found nothing out has read it with Acquire.
        let others = self.word.load(Ordering::Relaxed);
        // SAFETY: the shard is there while it is borrowed.
        unsafe { fold(NonNull::from(self), others) };
    }

    /// Ends the ownership of a shard of which nothing is out, and which the calling thread has
    /// alone.
    pub(crate) fn disown(&self) {
        #[cfg(all(test, loom))]
        self.shadow.write();
        // ORDER: Relaxed: whatever hands the shard over publishes it.
        self.owner.store(NOBODY, Ordering::Relaxed);
    }

    /// Ends the ownership of the calling thread. Whether nothing is out: the caller then has the
    /// shard alone. Otherwise it is the last release's, and may be gone.
    pub(crate) fn abandon(&self) -> bool {
        let own = &self.own;
        // ORDER: Relaxed: only this thread's own releases compare with it, and they are in program
        // order.
        self.owner.store(NOBODY, Ordering::Relaxed);
        // ORDER: Relaxed, for both: this thread wrote them.
        let out = own.taken.load(Ordering::Relaxed).wrapping_sub(own.returned.load(Ordering::Relaxed));
        // ORDER: Release pairs with the Acquire of the last release: it sees this thread's
        // releases. Acquire pairs with the Release of others' releases, for the case that all were
        // before. `word` becomes `ABANDONED` less what is still out.
        self.word.fetch_add(ABANDONED.wrapping_sub(out), JOINED) == out
    }

    /// Marks a shard whose owner is another thread as one without pool. Whether nothing is out: the
    /// caller then has it alone.
    ///
    /// Nothing is being carved any more: no handle of the pool is left.
    pub(crate) fn orphan(&self) -> bool {
        // ORDER: Relaxed: where the owner reads the old value, its release is the plain one, which
        // is as good.
        self.owner.store(NOBODY, Ordering::Relaxed);
        // ORDER: Release pairs with the Acquire load in `release_elsewhere`, which then knows
        // `taken`. Acquire is for the look below.
        self.word.fetch_add(ORPHANED, Ordering::AcqRel);
        self.is_orphan_back()
    }

    /// Whether nothing of an orphaned shard is out.
    pub(crate) fn is_orphan_back(&self) -> bool {
        // ORDER: Relaxed: the owner's last store to it happened before the pool's end, and that
        // before this.
        let taken = self.own.taken.load(Ordering::Relaxed);
        // ORDER: Acquire, for both, pairs with the Release of `release_elsewhere` and
        // `release_here`: the last owners are done before the memory goes.
        let others = self.word.load(Ordering::Acquire).wrapping_sub(ORPHANED);
        taken == self.own.returned.load(Ordering::Acquire).wrapping_add(others)
    }

    /// Leaves an orphaned shard to the list.
    ///
    /// # Safety
    ///
    /// [`orphan`](Self::orphan) was called, once, and `self` is not used after this.
    pub(crate) unsafe fn adopt(this: NonNull<Shard>) {
        // SAFETY: `orphan` is the first field (`repr(C)`), `try_free` frees such a shard, and
        // nobody but the leases uses it.
        unsafe { orphans::adopt(this.cast()) };
    }

    /// Buffers that are out, and the bytes of the memory, as far as can be seen at this moment
    /// without stopping anybody.
    pub(crate) fn snapshot(&self) -> (usize, usize) {
        // ORDER: Relaxed, for all: numbers for people.
        let bytes = self.bytes.load(Ordering::Relaxed);
        let word = self.word.load(Ordering::Relaxed);
        let owner = self.owner.load(Ordering::Relaxed);
        let taken = self.own.taken.load(Ordering::Relaxed);
        let returned = self.own.returned.load(Ordering::Relaxed);
        let out = match word {
            _ if bytes == 0 => 0,
            word if word > ABANDONED => 0,
            word if word >= ABANDONED - MOST_OUT => ABANDONED - word,
            _ if owner == NOBODY => 0,
            word => taken.wrapping_sub(returned).wrapping_sub(word),
        };
        // Torn by a thread that is at work, the difference may be less than nothing.
        (if out > MOST_OUT { 0 } else { out }, bytes)
    }

    /// Whether a thread carves from it at this moment, as far as can be seen.
    pub(crate) fn is_current(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.owner.load(Ordering::Relaxed) != NOBODY && !self.is_listed()
    }
}

/// Moves the others' count of releases, `others`, to the owner's, when nothing is out but what the
/// caller is releasing: so that `word` never reaches its flags, however long the shard lives.
/// Counts the caller's release, in its last step (B4).
///
/// # Safety
///
/// For the owner; the shard is valid until the count is right.
pub(crate) unsafe fn fold(shard: NonNull<Shard>, others: usize) {
    // SAFETY: the caller's promise.
    let header = unsafe { shard.as_ref() };
    if others != 0 {
        // ORDER: Relaxed: the Release below publishes what it has to. Not a store: the pool's end
        // may add its flag meanwhile.
        header.word.fetch_sub(others, Ordering::Relaxed);
    }
    // ORDER: Relaxed: this thread wrote it.
    let taken = header.own.taken.load(Ordering::Relaxed);
    // ORDER: Release pairs with the Acquire loads in `is_orphan_back`.
    header.own.returned.store(taken, RELEASE);
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
        assert_eq!(out == 0, self.is_back(), "B1");
    }
}
