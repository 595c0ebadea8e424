//! The ring of entries by which the kernel learns of provided buffers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bufcore::{MapOptions, Region};
use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::Refused;

/// What owns the buffers of a group.
pub(crate) trait BufRingOwner: Send + Sync {}

/// The entries of a group, with the owner of its buffers.
///
/// - B1: `entries` has room for `mask + 1` entries, a power of two, and starts on a page.
/// - B2: the first entry's last two bytes are the tail, which the kernel reads at any time. They
///   are written atomically, and by [`provide`](Self::provide) alone.
pub(crate) struct BufRing {
    entries: Region,
    mask: u16,
    tail: u16,
    owner: Arc<dyn BufRingOwner>,
}

impl BufRing {
    /// Maps entries for at least `buffers` buffers.
    pub(crate) fn new(buffers: u16, owner: Arc<dyn BufRingOwner>) -> Result<Self, Refused> {
        let count = usize::from(buffers).next_power_of_two();
        let bytes = count * size_of::<BufRingEntry>();
        let entries = Region::mapped(bytes, MapOptions::new().populate(true))
            .map_err(|_| Refused { call: "mmap", errno: libc::ENOMEM })?;
        Ok(Self { entries, mask: (count - 1) as u16, tail: 0, owner })
    }

    /// Tells the kernel of them, as those of the group `id`.
    ///
    /// # Safety
    ///
    /// They stay until the group was unregistered, or for ever.
    pub(crate) unsafe fn register(&self, uring: &IoUring, id: u16) -> Result<(), Refused> {
        let start = self.entries.as_ptr().as_ptr().expose_provenance() as u64;
        // The kernel takes 2^15 at most, and says so.
        let count = self.mask.saturating_add(1);
        // SAFETY: mapped, zeroed and long enough (B1); they stay, as the caller promises.
        unsafe { uring.submitter().register_buf_ring_with_flags(start, count, id, 0) }
            .map_err(|error: io::Error| Refused::new("io_uring_register", &error))
    }

    /// Whether nothing else shares the owner: no handle, and no operation.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.owner) == 1
    }

    /// Lends a buffer.
    ///
    /// # Safety
    ///
    /// As [`Ring::provide`](crate::ring::Ring::provide).
    pub(crate) unsafe fn provide(&mut self, buffer: u16, start: *mut u8, len: u32) {
        let base: *mut BufRingEntry = self.entries.as_ptr().as_ptr().cast();
        // SAFETY: at most `mask`, so within the entries (B1).
        let place = unsafe { base.add(usize::from(self.tail & self.mask)) };
        // SAFETY: a structure of numbers in zeroed memory. The kernel reads no entry from the tail
        // on, and what it reads of the first one, the tail, is not written through this.
        let entry = unsafe { &mut *place };
        entry.set_addr(start.expose_provenance() as u64);
        entry.set_len(len);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the start of the entries, which are initialised.
        let tail = unsafe { BufRingEntry::tail(base) };
        // SAFETY: in the mapping, aligned, and written in no other way (B2).
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        // ORDER: Release pairs with the kernel's acquiring load of the tail: it sees the entry.
        tail.store(self.tail, Ordering::Release);
    }
}
