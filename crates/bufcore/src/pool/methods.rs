//! The methods of the pool trait as a pool's own, so that its users import no trait, and the other
//! way round.

/// Gives a pool the methods of [`BufferPool`](bufcore::BufferPool), which it implements, as
/// inherent ones.
///
/// It is for authors of strategies: their users need not import the trait.
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
/// bufcore::pool_methods!(impl[] Empty => NoLease);
/// assert!(Empty(NoFallback).acquire(1).is_err()); // the same without the trait
/// ```
#[macro_export]
macro_rules! pool_methods {
    (impl[$($generics:tt)*] $pool:ty => $lease:ty) => {
        /// Methods of [`BufferPool`](bufcore::BufferPool), without an import of the trait.
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
            /// Returns one of these errors. The pool is then unchanged. The call never waits.
            ///
            /// - [`AcquireError::TooLarge`](bufcore::AcquireError::TooLarge): the request can never
            ///   succeed.
            /// - [`AcquireError::Exhausted`](bufcore::AcquireError::Exhausted): it may succeed when
            ///   buffers are released.
            /// - [`AcquireError::OutOfMemory`](bufcore::AcquireError::OutOfMemory): the system
            ///   failed.
            #[inline(always)]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn acquire(&mut self, capacity: usize) -> Result<$crate::Buf<$lease>, $crate::AcquireError> {
                $crate::BufferPool::acquire(self, capacity)
            }

            /// Takes one buffer with `len` filled bytes, all zero.
            ///
            /// Cost: zeroing in addition to [`acquire`](Self::acquire), unless the memory is known
            /// to be zero.
            ///
            /// # Errors
            ///
            /// The errors are those of [`acquire`](Self::acquire).
            #[inline]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn acquire_zeroed(&mut self, len: usize) -> Result<$crate::Buf<$lease>, $crate::AcquireError> {
                $crate::BufferPool::acquire_zeroed(self, len)
            }

            /// Makes room in `buf` for at least `additional` bytes after the filled ones.
            ///
            /// Cost: that of [`BufferPool::grow`](bufcore::BufferPool::grow).
            ///
            /// # Errors
            ///
            /// The errors are those of [`acquire`](Self::acquire). The filled bytes are unchanged
            /// then; see [`BufferPool::grow`](bufcore::BufferPool::grow).
            #[inline]
            #[cfg_attr(feature = "track", track_caller)]
            pub fn grow(
                &mut self,
                buf: &mut $crate::Buf<$lease>,
                additional: usize,
            ) -> Result<(), $crate::AcquireError> {
                $crate::BufferPool::grow(self, buf, additional)
            }

            /// Lowers the capacity of `buf` to its length.
            ///
            /// Cost: that of [`BufferPool::shrink`](bufcore::BufferPool::shrink).
            #[inline]
            pub fn shrink(&mut self, buf: &mut $crate::Buf<$lease>) {
                $crate::BufferPool::shrink(self, buf);
            }

            /// Returns the largest request, in bytes, that can ever succeed.
            #[inline]
            #[must_use]
            pub fn max_capacity(&self) -> usize {
                $crate::BufferPool::max_capacity(self)
            }

            /// Returns a snapshot of the pool's statistics. The counters are zero unless the
            /// `stats` feature is on.
            #[inline]
            #[must_use]
            pub fn stats(&self) -> $crate::PoolStats {
                $crate::BufferPool::stats(self)
            }
        }
    };
}

/// The methods of [`BufferPool`](bufcore::BufferPool) for what passes them on to a pool: a
/// reference, or a pool whose own methods have the trait's names.
#[doc(hidden)]
#[macro_export]
macro_rules! forwarded_pool {
    ($pool:ty => $lease:ty) => {
        type Lease = $lease;

        #[inline(always)]
        fn acquire(&mut self, capacity: usize) -> Result<$crate::Buf<$lease>, $crate::AcquireError> {
            <$pool>::acquire(self, capacity)
        }

        #[inline(always)]
        fn acquire_zeroed(&mut self, len: usize) -> Result<$crate::Buf<$lease>, $crate::AcquireError> {
            <$pool>::acquire_zeroed(self, len)
        }

        #[inline(always)]
        fn grow(
            &mut self,
            buf: &mut $crate::Buf<$lease>,
            additional: usize,
        ) -> Result<(), $crate::AcquireError> {
            <$pool>::grow(self, buf, additional)
        }

        #[inline]
        fn max_capacity(&self) -> usize {
            <$pool>::max_capacity(self)
        }

        #[inline]
        fn stats(&self) -> $crate::PoolStats {
            <$pool>::stats(self)
        }
    };
}
