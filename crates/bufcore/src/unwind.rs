//! Unwinding: what may be used after it, and where it ends.

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{Buf, Frozen, Lease};

/// Says of types that they may be used as before after a panic that was caught, in whole and
/// through references.
///
/// It is for authors of strategies, for handles of pools and the like: no call of theirs leaves a
/// half-made state behind, and nothing is open while the user's code is called. The compiler cannot
/// see that behind pointers to cells.
///
/// ```
/// use std::cell::Cell;
/// use std::panic::{RefUnwindSafe, UnwindSafe};
///
/// struct Pool<'a> {
///     free: &'a Cell<usize>,
/// }
/// bufcore::unwind_safe!(Pool<'_>);
///
/// fn may_be_used<T: UnwindSafe + RefUnwindSafe>(_: &T) {}
/// may_be_used(&Pool { free: &Cell::new(3) });
/// ```
#[macro_export]
macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => {$(
        impl ::core::panic::UnwindSafe for $type {}
        impl ::core::panic::RefUnwindSafe for $type {}
    )+};
}

// As a `Box<[u8]>` they have no state except their bytes and a length, and leases are only looked
// at and dropped. The compiler cannot see that of every lease.
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
/// use bufcore::author::catch_user_panic;
///
/// assert_eq!(catch_user_panic(|| 7), Some(7));
/// # #[cfg(feature = "std")]
/// assert_eq!(catch_user_panic(|| -> u8 { panic!("on purpose") }), None);
/// ```
#[cfg(feature = "alloc")]
pub fn catch_user_panic<R>(f: impl FnOnce() -> R) -> Option<R> {
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
