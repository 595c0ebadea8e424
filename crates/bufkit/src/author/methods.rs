//! The methods of the pool traits as a pool's own, so that its users import no trait.

/// Gives a pool the methods of [`BufferPool`](bufcore::BufferPool), which it implements, as its
/// own.
///
/// It is for authors of strategies: their users then import no trait.
///
/// ```
/// # use bufcore::{AcquireError, Buf, BufferPool, NoLease, PoolStats, NoFallback};
/// struct Empty(NoFallback);
///
/// impl BufferPool for Empty {
///     type Lease = NoLease;
/// #   fn acquire(&mut self, capacity: usize) -> Result<Buf<NoLease>, AcquireError> {
/// #       self.0.acquire(capacity)
/// #   }
/// #   fn max_capacity(&self) -> usize {
/// #       0
/// #   }
/// #   fn stats(&self) -> PoolStats {
/// #       self.0.stats()
/// #   }
///     // ...
/// }
///
/// bufkit::pool_methods!(impl[] Empty => NoLease);
/// assert!(Empty(NoFallback).acquire(1).is_err()); // the same without the trait
/// ```
#[macro_export]
macro_rules! pool_methods {
    (impl[$($generics:tt)*] $pool:ty => $lease:ty) => {
        /// Methods of [`BufferPool`](bufcore::BufferPool), which need no import of the trait here.
        impl<$($generics)*> $pool {
            /// Takes one empty buffer with room for `capacity` bytes.
            ///
            /// `acquire(0)` always succeeds.
            ///
            /// Contents: the filled part is empty; [`Buf::spare_mut`](bufcore::Buf::spare_mut)
            /// shows recycled bytes.
            ///
            /// Cost: that of [`BufferPool::acquire`](bufcore::BufferPool::acquire) for this pool,
            /// described below.
            ///
            /// # Errors
            ///
            /// Returns one of these errors. The pool is unchanged then, and nothing waits.
            ///
            /// - [`AcquireError::TooLarge`](bufcore::AcquireError::TooLarge): the request can never
            ///   succeed.
            /// - [`AcquireError::Exhausted`](bufcore::AcquireError::Exhausted): it may succeed when
            ///   buffers have been released.
            /// - [`AcquireError::OutOfMemory`](bufcore::AcquireError::OutOfMemory): the system
            ///   refused.
            #[inline(always)]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn acquire(&mut self, capacity: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                $crate::bufcore::BufferPool::acquire(self, capacity)
            }

            /// Takes one buffer with `len` filled bytes, all zero.
            ///
            /// Cost: zeroing on top of [`acquire`](Self::acquire), unless the strategy knows the
            /// memory to be zero.
            ///
            /// # Errors
            ///
            /// The errors are those of [`acquire`](Self::acquire).
            #[inline]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn acquire_zeroed(&mut self, len: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                $crate::bufcore::BufferPool::acquire_zeroed(self, len)
            }

            /// Gives `buf` room for at least `additional` bytes behind the filled ones.
            ///
            /// Cost: that of [`BufferPool::grow`](bufcore::BufferPool::grow).
            ///
            /// # Errors
            ///
            /// The errors are those of [`acquire`](Self::acquire). `buf` is unchanged then.
            #[inline]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn grow(
                &mut self,
                buf: &mut $crate::bufcore::Buf<$lease>,
                additional: usize,
            ) -> Result<(), $crate::bufcore::AcquireError> {
                $crate::bufcore::BufferPool::grow(self, buf, additional)
            }

            /// Lowers the capacity of `buf` to what is filled.
            ///
            /// Cost: that of [`BufferPool::shrink`](bufcore::BufferPool::shrink).
            #[inline]
            pub fn shrink(&mut self, buf: &mut $crate::bufcore::Buf<$lease>) {
                $crate::bufcore::BufferPool::shrink(self, buf);
            }

            /// Returns the largest request, in bytes, that can ever succeed.
            #[must_use]
            pub fn max_capacity(&self) -> usize {
                $crate::bufcore::BufferPool::max_capacity(self)
            }

            /// Returns a snapshot of what the pool has done and holds. The counters are zero unless
            /// the `stats` feature is on.
            #[must_use]
            pub fn stats(&self) -> $crate::bufcore::PoolStats {
                $crate::bufcore::BufferPool::stats(self)
            }
        }
    };
}

/// Implements [`BufferPool`](bufcore::BufferPool) for a pool that threads share, and for references
/// to it. The pool's own methods of the same names do the work. A clone shares its field `handle`.
///
/// It is for authors of strategies, and the reverse of [the other macro](crate::pool_methods): the
/// methods exist, and the trait is made of them.
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
            /// With more handles than half of what a `usize` counts, nearly all of which were
            /// forgotten (`mem::forget`).
            fn clone(&self) -> Self {
                Self { handle: self.handle.clone(), ..*self }
            }
        }

        $crate::shared_pool!(impl $pool => $lease, for $pool);
        $crate::shared_pool!(impl $pool => $lease, for &$pool);

        impl $crate::bufcore::SharedPool for $pool {
            type Lease = $lease;

            #[inline]
            fn acquire_shared(&self, capacity: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                self.acquire(capacity)
            }
        }
    };
    (impl $pool:ty => $lease:ty, for $holder:ty) => {
        /// The pool's own methods, as the trait. A shared pool serves through a shared reference,
        /// as `&File` implements `std::io::Read`.
        impl $crate::bufcore::BufferPool for $holder {
            type Lease = $lease;

            #[inline(always)]
            fn acquire(&mut self, capacity: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                <$pool>::acquire(self, capacity)
            }

            fn acquire_zeroed(&mut self, len: usize) -> Result<$crate::bufcore::Buf<$lease>, $crate::bufcore::AcquireError> {
                <$pool>::acquire_zeroed(self, len)
            }

            fn grow(&mut self, buf: &mut $crate::bufcore::Buf<$lease>, additional: usize) -> Result<(), $crate::bufcore::AcquireError> {
                <$pool>::grow(self, buf, additional)
            }

            fn max_capacity(&self) -> usize {
                <$pool>::max_capacity(self)
            }

            fn stats(&self) -> $crate::bufcore::PoolStats {
                <$pool>::stats(self)
            }
        }
    };
}
