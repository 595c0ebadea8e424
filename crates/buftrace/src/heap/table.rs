//! The sampled objects, by address.
//!
//! # Invariants
//!
//! - H1: `FILTER` has a 1 for each bucket with an entry, whenever no thread has the bucket's shard.
//! - H2: an address is in at most one entry: it is taken out before its memory is given back, and
//!   put in after its memory was handed out.
//! - H3: an entry is on the chain of its address' bucket, or on the shard's list of free ones.

use core::sync::atomic::{AtomicU8, Ordering};

use super::lock::{Held, Lock};

const BUCKET_BITS: u32 = 16;
const BUCKETS: usize = 1 << BUCKET_BITS;
const SHARDS: usize = 64;
const SHARD_BUCKETS: usize = BUCKETS / SHARDS;
/// A shard has room for this number of objects at once: 2 MiB of addresses, of which only what is
/// used becomes memory.
const SHARD_ENTRIES: usize = 1 << 16;

/// By bucket: 1 if an object may be in it. In the program itself, so that no pointer is in the way.
static FILTER: [AtomicU8; BUCKETS] = [const { AtomicU8::new(0) }; BUCKETS];

/// A sampled object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) address: usize,
    pub(super) id: u64,
    pub(super) bytes: usize,
    /// The recording that it belongs to.
    pub(super) era: u32,
    /// The next entry of its chain, counted from 1; 0 at the end.
    next: u32,
}

impl Entry {
    pub(super) fn new(address: usize, id: u64, bytes: usize, era: u32) -> Self {
        Self { address, id, bytes, era, next: 0 }
    }
}

/// A part of the table. All fields begin as zeros.
pub(super) struct Shard {
    /// The first free entry among those used before, counted from 1; 0 when there is none.
    free: u32,
    /// Entries from here on were never used.
    used: u32,
    /// By bucket: the first entry of its chain, counted from 1.
    heads: [u32; SHARD_BUCKETS],
    entries: [Entry; SHARD_ENTRIES],
}

pub(super) struct Table([Lock<Shard>; SHARDS]);

/// Blocks are aligned to 16 bytes at least, and the multiplication spreads what is left.
#[inline]
fn bucket(address: usize) -> usize {
    ((address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKET_BITS)) as usize
}

/// Returns whether an object may be sampled. Six instructions and one load, no lock.
#[inline]
pub(super) fn may_have(address: usize) -> bool {
    // ORDER: Relaxed: the caller is about to free the address. It was handed out after the filter
    // was set for it, and the program's own order between that and the free makes the store
    // visible.
    FILTER.get(bucket(address)).is_some_and(|mark| mark.load(Ordering::Relaxed) != 0)
}

impl Table {
    fn shard(&self, address: usize) -> Option<Held<'_, Shard>> {
        self.0.get(bucket(address) / SHARD_BUCKETS)?.take()
    }

    /// Takes out the object at `address`.
    pub(super) fn remove(&self, address: usize) -> Option<Entry> {
        self.shard(address)?.remove(address)
    }

    /// Puts an object in. Returns the one that had its address, of which the release was not seen;
    /// the error says that there is no room.
    pub(super) fn insert(&self, entry: Entry) -> Result<Option<Entry>, NoRoom> {
        let mut shard = self.shard(entry.address).ok_or(NoRoom)?;
        let stale = shard.remove(entry.address);
        shard.insert(entry)?;
        Ok(stale)
    }

    /// Forgets all objects. Those that are put in meanwhile may be forgotten, too.
    pub(super) fn clear(&self) {
        for (shard, marks) in self.0.iter().zip(FILTER.chunks(SHARD_BUCKETS)) {
            let Some(mut shard) = shard.take() else { continue };
            if shard.used > 0 {
                (shard.used, shard.free) = (0, 0);
                shard.heads.fill(0);
                for mark in marks {
                    // ORDER: Relaxed: as in `may_have`; a free that misses this looks in vain.
                    mark.store(0, Ordering::Relaxed);
                }
            }
        }
    }
}

/// The table is full, or its lock was not to be had.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoRoom;

impl Shard {
    fn head(&mut self, address: usize) -> Option<&mut u32> {
        self.heads.get_mut(bucket(address) % SHARD_BUCKETS)
    }

    fn entry(&mut self, number: u32) -> Option<&mut Entry> {
        self.entries.get_mut((number as usize).checked_sub(1)?)
    }

    fn remove(&mut self, address: usize) -> Option<Entry> {
        let (mut number, mut before) = (*self.head(address)?, 0);
        loop {
            let found = *self.entry(number)?;
            if found.address == address {
                match self.entry(before) {
                    Some(before) => before.next = found.next,
                    None => *self.head(address)? = found.next,
                }
                let free = self.free;
                self.entry(number)?.next = free;
                self.free = number;
                self.mark(address);
                return Some(found);
            }
            (before, number) = (number, found.next);
        }
    }

    fn insert(&mut self, entry: Entry) -> Result<(), NoRoom> {
        let number = if self.free > 0 { self.free } else { self.used + 1 };
        let head = *self.head(entry.address).ok_or(NoRoom)?;
        let place = self.entry(number).ok_or(NoRoom)?;
        let free = place.next;
        *place = Entry { next: head, ..entry };
        if self.free > 0 {
            self.free = free;
        } else {
            self.used = number;
        }
        *self.head(entry.address).ok_or(NoRoom)? = number;
        self.mark(entry.address);
        Ok(())
    }

    /// Tells the filter whether the bucket of `address` has an entry (H1).
    fn mark(&mut self, address: usize) {
        let some = self.head(address).is_some_and(|head| *head > 0);
        if let Some(mark) = FILTER.get(bucket(address)) {
            // ORDER: Relaxed: as in `may_have`. The shard's lock orders it with other stores.
            mark.store(u8::from(some), Ordering::Relaxed);
        }
    }
}
