//! Who keeps a pool; see [`crate::strategy::Keepers`].

use crate::sync::{AtomicUsize, Ordering};

/// Who keeps a pool that threads share: its handles, with the last of which it ends, and whatever may outlive them and still needs the
/// pool's bookkeeping.
///
/// All handles together count as one of the latter, which the pool's end gives back.
///
/// There is nothing in it but atomics, so who counts itself off may do so by a reference into what another frees at that moment.
#[derive(Debug)]
pub struct Keepers {
    handles: AtomicUsize,
    refs: AtomicUsize,
    /// In models: a pool that is not freed, for want of one of its references, is reported.
    #[cfg(loom)]
    _freed: loom::sync::Arc<()>,
}

impl Keepers {
    /// One handle, and the reference of all handles.
    #[must_use]
    pub fn one_handle() -> Self {
        Self {
            handles: AtomicUsize::new(1),
            refs: AtomicUsize::new(1),
            #[cfg(loom)]
            _freed: loom::sync::Arc::new(()),
        }
    }

    /// One more handle. For holders of one.
    #[inline]
    pub fn add_handle(&self) {
        // ORDER: Relaxed: the caller's handle keeps the pool.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// One handle less. `true` when it was the last: what all others did with theirs happened before.
    #[must_use = "the last handle ends the pool"]
    #[inline]
    pub fn drop_handle(&self) -> bool {
        // ORDER: Release pairs with the Acquire of the last: what other handles did happened before the end.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// One more that keeps the bookkeeping. For those who do already, and holders of a handle.
    #[inline]
    pub fn add_ref(&self) {
        // ORDER: Relaxed: the caller has a reference already, or a handle.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// So many less that keep the bookkeeping. `true` when they were the last: what all others did with it happened before.
    #[must_use = "the last reference frees the bookkeeping"]
    #[inline]
    pub fn drop_refs(&self, count: usize) -> bool {
        // ORDER: Release pairs with the Acquire of the last: all uses of the bookkeeping happened before it is freed.
        self.refs.fetch_sub(count, Ordering::AcqRel) == count
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_told() {
        let keepers = Keepers::one_handle();
        keepers.add_handle();
        assert_eq!([keepers.drop_handle(), keepers.drop_handle()], [false, true]);
        keepers.add_ref();
        keepers.add_ref();
        keepers.add_ref();
        assert_eq!([keepers.drop_refs(1), keepers.drop_refs(2), keepers.drop_refs(1)], [false, false, true]);
    }
}
