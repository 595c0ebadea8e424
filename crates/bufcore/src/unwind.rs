//! Unwinding: what may be used after it, and where it ends.
//!
//! After a panic that was caught, buffers and views may be used as before. As a `Box<[u8]>` they
//! have no state except their bytes and a length, and leases are only looked at and dropped. The
//! compiler cannot see that of every lease.

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{Buf, Frozen, Lease};

impl<L: Lease> UnwindSafe for Buf<L> {}
impl<L: Lease> RefUnwindSafe for Buf<L> {}
impl<L: Lease> UnwindSafe for Frozen<L> {}
impl<L: Lease> RefUnwindSafe for Frozen<L> {}

/// Calls code of the user's for a thread that has nothing to do with it, and returns `None` when it
/// panics. The panic was reported by its hook, and ends here.
///
/// Without `std` it passes through.
///
/// ```
/// use bufcore::strategy::caught;
///
/// assert_eq!(caught(|| 7), Some(7));
/// # #[cfg(feature = "std")]
/// assert_eq!(caught(|| -> u8 { panic!("on purpose") }), None);
/// ```
#[cfg(feature = "alloc")]
pub fn caught<R>(f: impl FnOnce() -> R) -> Option<R> {
    // The model checker reports by panics.
    #[cfg(all(feature = "std", not(any(loom, shuttle))))]
    {
        use core::panic::AssertUnwindSafe;
        use std::panic::catch_unwind;

        let payload = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(result) => return Some(result),
            Err(payload) => payload,
        };
        // The payload is the user's too.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            core::mem::forget(payload);
        }
        None
    }
    #[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
    Some(f())
}
