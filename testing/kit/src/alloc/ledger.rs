//! An allocator that keeps a ledger.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Marks an allocation that is out.
const OUT: usize = 0x0A11_0CA7;
/// Marks one that came back.
const BACK: usize = 0x0BAC_CA5E;

/// What stands in front of each allocation.
#[repr(C)]
struct Entry {
    size: usize,
    alignment: usize,
    state: usize,
}

/// Checks that every free is of something that is out, with the layout that it was taken with, and
/// counts what is out.
///
/// A violation ends the process with a message: an allocator cannot panic. Freed memory is
/// overwritten with `0xDD`, so that a use after the free shows in the bytes, and kept back for ever
/// while [`keep`](Self::keep) is on, so that a second free shows too.
#[derive(Debug, Default)]
pub struct Ledger {
    calls: AtomicUsize,
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    keep: AtomicUsize,
}

impl Ledger {
    /// Makes a ledger with nothing out.
    pub const fn new() -> Self {
        Self {
            calls: AtomicUsize::new(0),
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            keep: AtomicUsize::new(0),
        }
    }

    /// Calls that took memory since the start.
    pub fn calls(&self) -> usize {
        // ORDER: Relaxed: only counted.
        self.calls.load(Relaxed)
    }

    /// Returns the blocks and bytes that are out.
    pub fn outstanding(&self) -> (usize, usize) {
        // ORDER: Relaxed, for both: only counted.
        (self.blocks.load(Relaxed), self.bytes.load(Relaxed))
    }

    /// Sets whether to keep freed blocks from being used again, until the process ends.
    pub fn keep(&self, keep: bool) {
        // ORDER: Relaxed: a test's switch, set before its threads start.
        self.keep.store(usize::from(keep), Relaxed);
    }

    /// Runs `body` twice, and asserts that the second time leaves nothing out: the first pays for
    /// what threads set up once. `settle` makes this thread let go of what it may keep for a while.
    #[track_caller]
    pub fn balanced(&self, what: &str, settle: impl Fn(), body: impl Fn()) {
        body();
        settle();
        let before = self.outstanding();
        body();
        settle();
        assert_eq!(self.outstanding(), before, "blocks and bytes out after {what}");
        println!("{what}: ok");
    }

    /// Returns the bytes in front of what is handed out, and the layout with them.
    fn padded(layout: Layout) -> Option<(usize, Layout)> {
        let head = size_of::<Entry>().next_multiple_of(layout.align().max(align_of::<Entry>()));
        let size = head.checked_add(layout.size())?;
        let padded = Layout::from_size_align(size, layout.align().max(align_of::<Entry>())).ok()?;
        Some((head, padded))
    }

    fn note(&self, layout: Layout, take: impl FnOnce(Layout) -> *mut u8) -> *mut u8 {
        let Some((head, padded)) = Self::padded(layout) else { return std::ptr::null_mut() };
        let block = take(padded);
        if block.is_null() {
            return block;
        }
        let entry = Entry { size: layout.size(), alignment: layout.align(), state: OUT };
        // SAFETY: `head` is at least an entry, and `head` bytes stand in front of what is handed
        // out.
        let bytes = unsafe { block.add(head) };
        // SAFETY: within the block, and aligned since `head` and the block are.
        let place = unsafe { bytes.sub(size_of::<Entry>()) }.cast::<Entry>();
        // SAFETY: likewise.
        unsafe { place.write(entry) };
        // ORDER: Relaxed, for all: only counted.
        self.calls.fetch_add(1, Relaxed);
        self.blocks.fetch_add(1, Relaxed);
        self.bytes.fetch_add(layout.size(), Relaxed);
        bytes
    }

    fn violated(what: &str, entry: &Entry, layout: Layout) -> ! {
        // No allocation here: the text goes out in pieces.
        let mut err = std::io::stderr();
        let _ = writeln!(
            err,
            "ledger: {what}: taken as {} bytes aligned to {}, freed as {layout:?}",
            entry.size, entry.alignment
        );
        process::abort();
    }
}

// SAFETY: memory is the system's, with room for an entry in front; `dealloc` gives back what `note`
// took, with its layout.
unsafe impl GlobalAlloc for Ledger {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not of zero size: an entry is in it.
        self.note(layout, |padded| unsafe { System.alloc(padded) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        self.note(layout, |padded| unsafe { System.alloc_zeroed(padded) })
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        // SAFETY: an entry stands in front of everything that was handed out.
        let place = unsafe { bytes.sub(size_of::<Entry>()) }.cast::<Entry>();
        // SAFETY: likewise; nobody else uses it.
        let entry = unsafe { &mut *place };
        if entry.state == BACK {
            Self::violated("freed twice", entry, layout);
        }
        if entry.state != OUT {
            Self::violated("freed what was never taken", entry, layout);
        }
        if entry.size != layout.size() || entry.alignment != layout.align() {
            Self::violated("freed with another layout", entry, layout);
        }
        entry.state = BACK;
        // ORDER: Relaxed, for all: only counted.
        self.blocks.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the bytes are the block's, and nobody may use them any more.
        unsafe { bytes.write_bytes(0xDD, layout.size()) };
        if self.keep.load(Relaxed) != 0 {
            return;
        }
        let Some((head, padded)) = Self::padded(layout) else { return };
        // SAFETY: the block starts `head` bytes in front.
        let block = unsafe { bytes.sub(head) };
        // SAFETY: taken with this very layout in `note`.
        unsafe { System.dealloc(block, padded) }
    }
}
