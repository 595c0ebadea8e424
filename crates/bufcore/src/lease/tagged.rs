//! The parts that all leases of one word share.

/// Implements the code that all one-word leases share, for a struct with one field, `tagged`.
///
/// It is for authors of strategies. It implements `Send`, `Sync` and
/// [`SplitLease`](crate::SplitLease), and two methods for the strategy itself. `of` makes the lease
/// of a block. `block` returns the block, or `None` for a buffer of no bytes. The strategy
/// implements [`Lease`](crate::Lease).
///
/// # Safety
///
/// The author who writes `unsafe` in an invocation promises:
///
/// 1. The struct has one field, `tagged`, a [`TaggedPtr`](crate::author::TaggedPtr) to the header
///    of a block.
/// 2. Its [`Lease::is_shared`](crate::Lease::is_shared) returns the same as that of `tagged`, and
///    its `views` is `None` if there is no block.
/// 3. Any thread may drop it, and any number may use shared references to it at once.
///
/// ```
/// # use std::ptr::NonNull;
/// use bufcore::author::{TaggedPtr, RefCount};
/// use bufcore::{Lease, SplitLease};
///
/// #[repr(align(16))]
/// struct Header {
///     views: RefCount,
/// }
///
/// struct StaticLease {
///     tagged: TaggedPtr<Header>,
/// }
///
/// // SAFETY: one field; headers live for ever, and their counts are atomic.
/// bufcore::tagged_lease!(unsafe impl StaticLease => Header);
///
/// // SAFETY: as above; it says what `tagged` says.
/// unsafe impl Lease for StaticLease {
///     fn views(&self) -> Option<&RefCount> {
///         // SAFETY: headers live for ever.
///         self.block().map(|block| unsafe { &(*block.as_ptr()).views })
///     }
///
///     fn is_shared(&self) -> bool {
///         self.tagged.is_shared()
///     }
///
///     fn empty() -> Option<Self> {
///         Some(Self::empty())
///     }
/// }
///
/// let header = Box::leak(Box::new(Header { views: RefCount::new() }));
/// let lease = StaticLease::of(NonNull::from(header));
/// assert!(lease.views().is_some() && !lease.is_shared() && lease.into_shared().is_shared());
/// assert!(StaticLease::empty().views().is_none());
/// ```
#[macro_export]
macro_rules! tagged_lease {
    // SAFETY: a word for the invoker to write, who promises the above.
    (unsafe impl $lease:ident => $header:ty) => {
        // SAFETY: the invocation's promise.
        unsafe impl ::core::marker::Send for $lease {}
        // SAFETY: likewise.
        unsafe impl ::core::marker::Sync for $lease {}

        impl $lease {
            /// Makes the lease of a block that was just taken.
            #[inline(always)]
            pub(crate) fn of(block: ::core::ptr::NonNull<$header>) -> Self {
                Self { tagged: $crate::author::TaggedPtr::of(block) }
            }

            /// Makes the lease of a buffer of no bytes.
            #[inline]
            pub(crate) fn empty() -> Self {
                Self { tagged: $crate::author::TaggedPtr::empty() }
            }

            /// Returns the block, or `None` for a buffer of no bytes.
            #[inline(always)]
            pub(crate) fn block(&self) -> ::core::option::Option<::core::ptr::NonNull<$header>> {
                self.tagged.block()
            }
        }

        // SAFETY: the mark is in the pointer, which is what copies are made of; a new lease has
        // none, as blocks are aligned.
        unsafe impl $crate::SplitLease for $lease {
            #[inline]
            fn into_shared(self) -> Self {
                // Not released: the marked one is the same lease.
                let lease = ::core::mem::ManuallyDrop::new(self);
                Self { tagged: lease.tagged.shared() }
            }
        }
    };
}
