//! The bytes: where a frame is, and what stands in front of it.
//!
//! # Invariants
//!
//! - F1: positions are counted in bytes modulo twice the capacity, so that a full queue is not an
//!   empty one, whatever the capacity. They are multiples of [`WORD_BYTES`], and so is the
//!   capacity, so that no header lies across the border.
//! - F2: a frame at a position is always accessed through the addresses from
//!   `base + position % capacity` on, in one piece, by who writes it and by who reads it. So where
//!   memory is not mapped twice nothing has to be copied: the frames of one moment have no byte in
//!   common at either address.
//! - F3: a message that became shorter than the room that was claimed for it leaves the frame as
//!   long as it was. If that is longer than the message alone would need, the header says so, and
//!   the frame's last word is the message's length.

use core::ptr::NonNull;

use crate::map::Mirror;

/// The size of a header, and what frames are a multiple of.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();

/// What stands in front of a message: its length, or that of its room, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header(u64);

impl Header {
    const DONE: u64 = 1;
    const ABANDONED: u64 = 2;
    const SHORTENED: u64 = 4;
    const COPIED: u64 = 8;
    const LENGTH_SHIFT: u32 = 4;

    /// Makes the header of a claimed frame: it is being written, or being read. If `is_copy`, that
    /// takes no longer than a copy.
    #[inline]
    pub(crate) fn open(len: usize, is_copy: bool) -> Self {
        Self((len as u64) << Self::LENGTH_SHIFT | if is_copy { Self::COPIED } else { 0 })
    }

    /// Makes the header of a frame that was written, or read.
    pub(crate) fn done(len: usize) -> Self {
        Self(Self::open(len, false).0 | Self::DONE)
    }

    /// Makes the header of a frame that was never written, and never will be.
    pub(crate) fn abandoned(len: usize) -> Self {
        Self(Self::done(len).0 | Self::ABANDONED)
    }

    /// Makes the header of a frame that was written with fewer bytes than the `len` that there was
    /// room for (F3).
    pub(crate) fn shortened(len: usize) -> Self {
        Self(Self::done(len).0 | Self::SHORTENED)
    }

    /// Returns whether the message has fewer bytes than `len` (F3).
    #[inline]
    pub(crate) fn is_shortened(self) -> bool {
        self.0 & Self::SHORTENED != 0
    }

    /// Returns the bytes of the message, or of the room that there was for it: the frame's.
    pub(crate) fn len(self) -> usize {
        (self.0 >> Self::LENGTH_SHIFT) as usize
    }

    pub(crate) fn is_done(self) -> bool {
        self.0 & Self::DONE != 0
    }

    /// Returns whether the frame is open, and soon done.
    pub(crate) fn is_being_copied(self) -> bool {
        self.0 & (Self::COPIED | Self::DONE) == Self::COPIED
    }

    pub(crate) fn is_abandoned(self) -> bool {
        self.0 & Self::ABANDONED != 0
    }
}

/// Returns the bytes of the frame of a message of `len` bytes, which is at most a capacity less a
/// header.
#[inline]
pub(crate) fn frame_bytes(len: usize) -> usize {
    (WORD_BYTES + len).next_multiple_of(WORD_BYTES)
}

/// The memory of a queue.
pub(crate) struct Frames {
    mirror: Mirror,
    /// One for each word, for loom, which does not see the bytes.
    #[cfg(all(test, loom))]
    shadows: alloc::vec::Vec<bufkit::sync::checker::cell::UnsafeCell<()>>,
}

impl Frames {
    /// Makes frames over `mirror`, which starts at a multiple of [`WORD_BYTES`], and whose capacity
    /// is one.
    pub(crate) fn new(mirror: Mirror) -> Self {
        debug_assert!(mirror.capacity().is_multiple_of(WORD_BYTES));
        debug_assert!(mirror.base().addr().get().is_multiple_of(WORD_BYTES));
        Self {
            #[cfg(all(test, loom))]
            shadows: (0..mirror.capacity() / WORD_BYTES)
                .map(|_| bufkit::sync::checker::cell::UnsafeCell::new(()))
                .collect(),
            mirror,
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.mirror.capacity()
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.mirror.is_mapped()
    }

    /// Returns how far `to` is behind `from`.
    #[inline]
    pub(crate) fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + 2 * self.capacity() - from }
    }

    /// Returns the position `bytes` behind `position`; `bytes` is no more than a capacity.
    #[inline]
    pub(crate) fn behind(&self, position: usize, bytes: usize) -> usize {
        let sum = position + bytes;
        if sum >= 2 * self.capacity() { sum - 2 * self.capacity() } else { sum }
    }

    /// Returns the bytes from `position` on.
    #[inline]
    fn at(&self, position: usize) -> NonNull<u8> {
        debug_assert!(position < 2 * self.capacity() && position.is_multiple_of(WORD_BYTES));
        let offset = if position >= self.capacity() { position - self.capacity() } else { position };
        // SAFETY: less than the capacity, so within the memory (M1).
        unsafe { self.mirror.base().add(offset) }
    }

    /// Shows loom an access to this number of words.
    #[inline(always)]
    fn touch(&self, position: usize, bytes: usize, writes: bool) {
        #[cfg(all(test, loom))]
        for word in 0..bytes.div_ceil(WORD_BYTES) {
            let shadow = &self.shadows[(position / WORD_BYTES + word) % self.shadows.len()];
            if writes {
                shadow.with_mut(|_| ());
            } else {
                shadow.with(|_| ());
            }
        }
        let _ = (position, bytes, writes);
    }

    /// Reads the header at `position`.
    ///
    /// # Safety
    ///
    /// The frame at `position` has a header, which nobody writes meanwhile.
    #[inline]
    pub(crate) unsafe fn header(&self, position: usize) -> Header {
        self.touch(position, WORD_BYTES, false);
        // SAFETY: within the memory and aligned, since a header does not lie across the border
        // (F1); the rest is the caller's promise.
        Header(unsafe { self.at(position).cast::<u64>().read() })
    }

    /// Writes the header at `position`.
    ///
    /// # Safety
    ///
    /// Nobody else accesses the word at `position` meanwhile.
    #[inline]
    pub(crate) unsafe fn set_header(&self, position: usize, header: Header) {
        self.touch(position, WORD_BYTES, true);
        // SAFETY: within the memory and aligned, since a header does not lie across the border
        // (F1); the rest is the caller's promise.
        unsafe { self.at(position).cast::<u64>().write(header.0) }
    }

    /// Returns the last word of the frame at `position`, of a message of up to `len` bytes, which
    /// is not 0.
    #[inline]
    fn last_word(&self, position: usize, len: usize, writes: bool) -> NonNull<u64> {
        debug_assert!(0 < len && frame_bytes(len) <= self.capacity());
        let offset = frame_bytes(len) - WORD_BYTES;
        self.touch(position + offset, WORD_BYTES, writes);
        // SAFETY: a frame starts in the first half of the memory, and is no longer than that (F1,
        // M1).
        unsafe { self.at(position).add(offset) }.cast()
    }

    /// Returns the length of the message in the frame at `position`, which `header` is of.
    ///
    /// # Safety
    ///
    /// The frame was published with this header, and nobody writes to it meanwhile.
    #[inline]
    pub(crate) unsafe fn len_of(&self, position: usize, header: Header) -> usize {
        if header.is_shortened() {
            // SAFETY: the caller's promise.
            unsafe { self.shortened_len(position, header) }
        } else {
            header.len()
        }
    }

    /// Returns the length of the message in a frame that has more room (F3).
    ///
    /// # Safety
    ///
    /// The same.
    #[cold]
    #[inline(never)]
    unsafe fn shortened_len(&self, position: usize, header: Header) -> usize {
        let word = self.last_word(position, header.len(), false);
        // SAFETY: within the memory and aligned, being a whole number of words behind a header
        // (F1); the rest is the caller's promise.
        unsafe { word.read() as usize }
    }

    /// Makes the message of the frame at `position` one of `written` bytes, where there was room
    /// for `len`; the header that says so.
    ///
    /// # Safety
    ///
    /// The frame is claimed by the caller, and nothing of it is lent. `written <= len`.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn shorten(&self, position: usize, len: usize, written: usize) -> Header {
        debug_assert!(written <= len, "{written} of {len}");
        if frame_bytes(written) == frame_bytes(len) {
            return Header::done(written);
        }
        let word = self.last_word(position, len, true);
        // SAFETY: within the memory and aligned, as above. It is the caller's alone, and behind the
        // message, which needs a word less.
        unsafe { word.write(written as u64) };
        Header::shortened(len)
    }

    /// Makes the frame at `position`, which is being read, one that is done.
    ///
    /// # Safety
    ///
    /// The frame at `position` has a header, which nobody else accesses meanwhile.
    #[inline]
    pub(crate) unsafe fn set_done(&self, position: usize) {
        self.touch(position, WORD_BYTES, true);
        let header = self.at(position).cast::<u64>();
        // SAFETY: within the memory and aligned, since a header does not lie across the border
        // (F1); the rest is the caller's promise.
        let open = unsafe { header.read() };
        // SAFETY: as above.
        unsafe { header.write(open | Header::DONE) }
    }

    /// Returns where the message of the frame at `position` is: valid and initialised for as many
    /// bytes as the frame has behind its header. Only those who have claimed the frame write to
    /// them, or read them.
    #[inline]
    pub(crate) fn message(&self, position: usize, len: usize, writes: bool) -> NonNull<[u8]> {
        debug_assert!(frame_bytes(len) <= self.capacity());
        self.touch(position + WORD_BYTES, len, writes);
        // SAFETY: the header, and so its end, is within the first half of the memory (F1, M1).
        let first = unsafe { self.at(position).add(WORD_BYTES) };
        NonNull::slice_from_raw_parts(first, len)
    }
}
