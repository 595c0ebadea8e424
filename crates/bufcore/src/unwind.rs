//! Unwinding: what may be used after it, and where it ends.

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{Buf, Frozen, Lease};

/// Declares that types may be used as before after a caught panic, owned and through references.
///
/// It is for authors of strategies, for handles of pools and similar types: their methods leave no
/// inconsistent state, and hold nothing while they call the user's code. The compiler cannot deduce
/// that behind pointers to cells.
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

/// Calls the user's code for an unrelated thread, and returns `None` if it panics. The panic's hook
/// has run, and the panic is caught here.
///
/// Without `std` it propagates.
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
