//! The lease inside a buffer, with what happens around its release for every strategy alike.

use core::mem::ManuallyDrop;
use core::ptr;

use crate::lease::ref_count::RefCount;
use crate::lease::track::TrackId;
use crate::{Lease, SplitLease};

/// A lease and the tracker's id for it. Dropping it is one handle's end: the last of a memory
/// wipes, if the pool asked for that, and releases.
pub(crate) struct LeaseGuard<L: Lease> {
    pub(crate) lease: ManuallyDrop<L>,
    pub(crate) track_id: ManuallyDrop<TrackId>,
}

/// Returns whether no other buffer or view shares the memory of this lease, at this moment. Their
/// accesses to the memory happened before this call returns.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::author::is_alone;
///
/// let mut buf = bufcore::HeapPool::new().acquire(100)?;
/// assert!(is_alone(buf.lease()));
/// let rest = buf.split_off(10);
/// assert!(!is_alone(buf.lease()));
/// drop(rest);
/// assert!(is_alone(buf.lease()));
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
pub fn is_alone(lease: &impl Lease) -> bool {
    !lease.is_shared() || lease.views().is_none_or(RefCount::is_one)
}

impl<L: Lease> LeaseGuard<L> {
    #[inline]
    pub(crate) fn new(lease: L, track_id: TrackId) -> Self {
        Self { lease: ManuallyDrop::new(lease), track_id: ManuallyDrop::new(track_id) }
    }

    /// Takes the two apart without wiping or releasing.
    #[inline]
    pub(crate) fn into_parts(self) -> (L, TrackId) {
        let guard = ManuallyDrop::new(self);
        // SAFETY: `guard` is never dropped, so this moves the lease out, once.
        let lease = unsafe { ptr::read(&raw const *guard.lease) };
        // SAFETY: likewise for the id.
        let track_id = unsafe { ptr::read(&raw const *guard.track_id) };
        (lease, track_id)
    }

    /// Wipes and releases, whatever the count of handles says.
    ///
    /// # Safety
    ///
    /// This is the last handle of its memory, and is not used or dropped again.
    #[inline]
    pub(crate) unsafe fn release(&mut self) {
        #[cfg(feature = "wipe")]
        if let Some(range) = self.lease.wipe_range() {
            // SAFETY: the range is the memory of a lease that is being dropped (`Lease`, rule 4):
            // valid, initialised, and by rule 1 exclusive to this last holder.
            unsafe { crate::lease::wipe::wipe(range) };
        }
        // Dropped behind the lease, also when code of the user's that the release calls, such as a
        // waker, panics.
        // SAFETY: not used again, by the caller's promise.
        let _track_id = unsafe { ManuallyDrop::take(&mut self.track_id) };
        // SAFETY: likewise.
        unsafe { ManuallyDrop::drop(&mut self.lease) };
    }
}

impl<L: SplitLease> LeaseGuard<L> {
    /// Makes the guard of a buffer of no bytes.
    #[inline]
    pub(crate) fn empty() -> Self {
        let Some(lease) = L::empty() else { unreachable!("`SplitLease` promises an empty one") };
        Self::new(lease, TrackId::none())
    }
}

impl<L: Lease> Drop for LeaseGuard<L> {
    #[inline]
    fn drop(&mut self) {
        // An exclusive buffer is not counted. A part of one that was split is, together with all
        // other parts and views.
        if self.lease.is_shared() {
            // SAFETY: this is being dropped, and so moved out once.
            let part = unsafe { ptr::read(self) };
            // SAFETY: as above.
            return unsafe { drop_part(ManuallyDrop::new(part)) };
        }
        // SAFETY: the only handle, and it is being dropped.
        unsafe { self.release() }
    }
}

/// Drops one part of a buffer that was split, in a call and by value. So the code that drops a
/// buffer stays small enough to be compiled in where it is dropped, and the buffer need not be in
/// memory.
///
/// # Safety
///
/// The handle is not used or dropped again.
#[cold]
#[inline(never)]
unsafe fn drop_part<L: Lease>(mut part: ManuallyDrop<LeaseGuard<L>>) {
    if part.lease.views().is_none_or(RefCount::release) {
        // SAFETY: the last of several handles, which is not used or dropped again, by the caller's
        // promise.
        unsafe { part.release() };
    }
}
