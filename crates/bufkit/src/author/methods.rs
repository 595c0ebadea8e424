//! The traits of a pool that threads share.

/// Implements [`BufferPool`](bufcore::BufferPool) for a shared pool, and for references to it. The
/// pool's own methods of the same names do the work; the macro adds `shrink`. A clone shares its
/// field `handle`.
///
/// It is for authors of strategies, and the reverse of [`bufcore::pool_methods`]: the methods
/// exist, and the trait calls them.
///
/// ```
/// # use bufcore::{AcquireError, Buf, BufferPool, NoLease, PoolStats, NoFallback};
/// struct Empty {
///     handle: (),
/// }
///
/// impl Empty {
///     fn acquire(&self, capacity: usize) -> Result<Buf<NoLease>, AcquireError> {
///         // ...
/// #       NoFallback.acquire(capacity)
///     }
/// #   fn acquire_zeroed(&self, len: usize) -> Result<Buf<NoLease>, AcquireError> {
/// #       NoFallback.acquire_zeroed(len)
/// #   }
/// #   fn grow(&self, buf: &mut Buf<NoLease>, additional: usize) -> Result<(), AcquireError> {
/// #       NoFallback.grow(buf, additional)
/// #   }
/// #   fn max_capacity(&self) -> usize {
/// #       0
/// #   }
/// #   fn stats(&self) -> PoolStats {
/// #       NoFallback.stats()
/// #   }
/// }
///
/// bufkit::shared_pool!(impl Empty => NoLease);
/// assert!(BufferPool::acquire(&mut &Empty { handle: () }, 1).is_err());
/// ```
#[macro_export]
macro_rules! shared_pool {
    (impl $pool:ty => $lease:ty) => {
        impl ::core::clone::Clone for $pool {
            /// Makes another handle of the same pool.
            ///
            /// Cost: one locked instruction.
            ///
            /// # Panics
            ///
            /// Panics if more than `usize::MAX / 2` handles exist, which needs forgotten ones
            /// (`mem::forget`).
            #[inline]
            fn clone(&self) -> Self {
                Self { handle: self.handle.clone(), ..*self }
            }
        }

        impl $pool {
            /// Lowers the capacity of `buf` to its length, as
            /// [`BufferPool::shrink`](bufcore::BufferPool::shrink) does, through a shared
            /// reference.
            #[inline]
            pub fn shrink(&self, buf: &mut $crate::bufcore::Buf<$lease>) {
                $crate::bufcore::BufferPool::shrink(&mut &*self, buf);
            }
        }

        /// The pool's own methods, as the trait.
        impl $crate::bufcore::BufferPool for $pool {
            $crate::bufcore::forwarded_pool!($pool => $lease);
        }

        /// The pool's own methods, as the trait. A shared pool serves through a shared reference,
        /// as `&File` implements `std::io::Read`.
        impl $crate::bufcore::BufferPool for &$pool {
            $crate::bufcore::forwarded_pool!($pool => $lease);
        }

        impl $crate::bufcore::SharedPool for $pool {
            type Lease = $lease;

            #[inline]
            fn acquire_shared(&self, capacity: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                self.acquire(capacity)
            }
        }
    };
}
