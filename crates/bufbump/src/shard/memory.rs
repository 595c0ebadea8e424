//! The memory of a shard: how a header comes by it, and how it goes.

use bufkit::Span;
use bufkit::sync::Ordering;

use super::{HEADER_BYTES, Shard};

impl Shard {
    /// Gives a free header a span, whose first block starts `first` bytes behind its start. All of
    /// it is for buffers; `mask` is the pool's alignment minus one.
    ///
    /// # Safety
    ///
    /// The span is the caller's, who gives it up, and has room for a block of the alignment.
    pub(crate) unsafe fn attach_memory(&self, span: Span, first: usize, mask: usize) {
        // SAFETY: the caller's promise.
        let start = unsafe { span.start() };
        // SAFETY: likewise.
        let len = unsafe { span.len() };
        let own = &self.own;
        // SAFETY: less than the length.
        let base = unsafe { start.add(first) };
        own.base.set(base.as_ptr());
        own.limit.set(base.addr().get() + ((len - first) & !mask) - HEADER_BYTES);
        self.span.set(Some(span));
        // ORDER: Relaxed, for both: others read them for `stats` only.
        own.allocated.store(0, Ordering::Relaxed);
        self.bytes.store(len, Ordering::Relaxed);
    }

    /// Takes the memory of a free shard.
    pub(crate) fn detach_memory(&self) -> Option<Span> {
        // ORDER: Relaxed, as in `attach_memory`.
        self.bytes.store(0, Ordering::Relaxed);
        #[cfg(all(test, loom))]
        crate::tests::loom::goes(&self.shadow);
        self.span.take()
    }
}
