//! Pools that serve through a shared reference.

use core::cell::RefCell;

use crate::{AcquireError, Buf, BufferPool, Lease};

/// Serves whole buffers through a shared reference, as an allocator must.
///
/// Pools that threads share implement it, and so do pools of one thread in a `RefCell` or a
/// `Mutex`.
///
/// ```
/// use std::cell::RefCell;
///
/// use bufcore::HeapPool;
/// use bufcore::SharedPool;
///
/// let pool = RefCell::new(HeapPool::new());
/// let (first, second) = (pool.acquire_shared(100)?, pool.acquire_shared(200)?);
/// assert_eq!((first.capacity(), second.capacity()), (100, 200));
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
pub trait SharedPool {
    /// The lease type: the part of the pool that its buffers keep.
    type Lease: Lease;

    /// Takes one empty buffer with room for `capacity` bytes; see
    /// [`acquire`](BufferPool::acquire).
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](BufferPool::acquire). A pool in a `RefCell` that is
    /// borrowed is [`Exhausted`](AcquireError::Exhausted).
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_shared(&self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError>;
}

impl<P: BufferPool> SharedPool for RefCell<P> {
    type Lease = P::Lease;

    #[inline]
    fn acquire_shared(&self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
        let Ok(mut pool) = self.try_borrow_mut() else {
            return Err(AcquireError::Exhausted { requested: capacity, available: 0 });
        };
        pool.acquire(capacity)
    }
}

/// Waits for the lock, and ignores poisoning.
#[cfg(feature = "std")]
impl<P: BufferPool> SharedPool for std::sync::Mutex<P> {
    type Lease = P::Lease;

    fn acquire_shared(&self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
        let mut pool = match self.lock() {
            Ok(pool) => pool,
            Err(poisoned) => poisoned.into_inner(),
        };
        pool.acquire(capacity)
    }
}

/// Serves through what `$pointer` points to.
macro_rules! pointers {
    ($($pointer:ty),*) => {
        $(
            impl<P: SharedPool + ?Sized> SharedPool for $pointer {
                type Lease = P::Lease;

                #[inline]
                fn acquire_shared(&self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
                    (**self).acquire_shared(capacity)
                }
            }
        )*
    };
}

pointers!(&P);
#[cfg(feature = "alloc")]
pointers!(alloc::rc::Rc<P>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pointers!(alloc::sync::Arc<P>);
