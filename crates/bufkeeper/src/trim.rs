//! How a keeper reaches a pool with idle memory.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::TypeId;

use bufkit::Trim;

/// A handle of a pool that a [`Keeper`](crate::Keeper) can watch, which does not keep the pool
/// alive.
///
/// The shared pools of all strategies implement it, and so does an `Arc` of a type that implements
/// [`Trim`] through a shared reference, such as any pool in a mutex.
///
/// ```
/// use std::sync::Arc;
///
/// use bufcore::PoolStats;
/// use bufkeeper::{Trim, Watch};
///
/// struct Nothing;
/// impl Trim for &Nothing {
///     // ...
/// #   fn trim(&mut self) {}
/// #   fn stats(&self) -> Option<PoolStats> {
/// #       None
/// #   }
/// }
///
/// let pool = Arc::new(Nothing);
/// let weak = pool.downgrade();
/// assert!(weak.with(&mut |pool| pool.trim()));
/// drop(pool);
/// assert!(!weak.with(&mut |_| unreachable!("the pool has ended")));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a pool that a keeper can watch",
    label = "this has no idle memory, or no weak handle",
    note = "a program's own pool implements `Trim`, and is watched in an `Arc<Mutex<_>>`"
)]
pub trait Watch {
    /// Returns a weak handle of the pool.
    ///
    /// Cost: an allocation.
    fn downgrade(&self) -> Box<dyn WeakPool>;
}

/// Finds the pool of a handle that [`Watch::downgrade`] returned.
///
/// ```
/// use bufcore::PoolStats;
/// use bufkeeper::{Keeper, Trim, Watch, WeakPool};
///
/// /// A pool that a program never drops.
/// #[derive(Clone, Copy)]
/// struct Forever(&'static Nothing);
///
/// impl WeakPool for Forever {
///     fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
///         look(&mut { self.0 });
///         true
///     }
/// }
///
/// impl Watch for Forever {
///     fn downgrade(&self) -> Box<dyn WeakPool> {
///         Box::new(*self)
///     }
/// }
/// # struct Nothing;
/// # impl Trim for &Nothing {
/// #     fn trim(&mut self) {}
/// #     fn stats(&self) -> Option<PoolStats> {
/// #         None
/// #     }
/// # }
/// # static POOL: Nothing = Nothing;
/// # let keeper = Keeper::new().watch(&Forever(&POOL));
/// ```
pub trait WeakPool: Send {
    /// Calls `look` with the pool, and returns `true`. It returns `false` without the call if the
    /// pool was dropped.
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool;

    /// Returns the identity of the pool: a type of its implementation, and its address. Two weak
    /// handles that exist at the same time return the same value only if they are of one pool.
    ///
    /// A [`Keeper`](crate::Keeper) watches a pool with an identity once, however often it is added.
    /// The default is none: each weak handle counts as a pool of its own.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use bufcore::PoolStats;
    /// use bufkeeper::{Trim, Watch, WeakPool};
    ///
    /// # struct Nothing;
    /// # impl Trim for &Nothing {
    /// #     fn trim(&mut self) {}
    /// #     fn stats(&self) -> Option<PoolStats> {
    /// #         None
    /// #     }
    /// # }
    /// let (pool, other) = (Arc::new(Nothing), Arc::new(Nothing));
    /// assert_eq!(pool.downgrade().id(), pool.clone().downgrade().id());
    /// assert_ne!(pool.downgrade().id(), other.downgrade().id());
    /// ```
    fn id(&self) -> Option<(TypeId, usize)> {
        None
    }
}

impl<P: Send + Sync + 'static> Watch for Arc<P>
where
    for<'a> &'a P: Trim,
{
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(Arc::downgrade(self))
    }
}

impl<P: Send + Sync + 'static> WeakPool for Weak<P>
where
    for<'a> &'a P: Trim,
{
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        let Some(pool) = self.upgrade() else { return false };
        look(&mut &*pool);
        true
    }

    fn id(&self) -> Option<(TypeId, usize)> {
        Some((TypeId::of::<P>(), self.as_ptr().addr()))
    }
}

/// Implements [`Trim`] and [`Watch`] for a strategy's pool, whose own
/// methods `trim`, `trim_idle` and `stats` do the work.
///
/// It is for authors of strategies. The pool has a field `handle`, a [`Handle`](bufkit::Handle) of
/// bookkeeping that is `Send` and `Sync`. The closure makes a pool from another such handle.
/// Further methods of [`Trim`] may follow, in braces.
///
/// ```
/// # use core::time::Duration;
/// # use std::ptr::NonNull;
/// # use bufcore::PoolStats;
/// use bufkit::{PoolCore, Handle, RefCounts};
///
/// struct Shared {
///     counts: RefCounts,
/// }
/// # // SAFETY: one field, made with the value; nothing but handles is counted.
/// # unsafe impl PoolCore for Shared {
/// #     fn ref_counts(&self) -> &RefCounts {
/// #         &self.counts
/// #     }
/// #     unsafe fn close(_: NonNull<Self>) {}
/// # }
///
/// struct Pool {
///     handle: Handle<Shared>,
/// }
/// # impl Pool {
/// #     fn trim(&self) {}
/// #     fn trim_idle(&self, _: Duration) {}
/// #     fn stats(&self) -> PoolStats {
/// #         PoolStats::default()
/// #     }
/// # }
///
/// bufkeeper::trimmed_pool!(impl Pool, |handle| Pool { handle });
///
/// let handle = Handle::new(Shared { counts: RefCounts::one_handle() }).expect("room");
/// let pool = Pool { handle };
/// let keeper = bufkeeper::Keeper::new().watch(&pool);
/// # drop(keeper);
/// ```
#[macro_export]
macro_rules! trimmed_pool {
    (impl $pool:ty, |$handle:ident| $over:expr $(, { $($methods:tt)* })?) => {
        impl $crate::Trim for $pool {
            #[inline]
            fn trim(&mut self) {
                <$pool>::trim(self);
            }

            #[inline]
            fn trim_idle(&mut self, age: ::core::time::Duration) {
                <$pool>::trim_idle(self, age);
            }

            #[inline]
            fn stats(&self) -> ::core::option::Option<$crate::bufcore::PoolStats> {
                ::core::option::Option::Some(<$pool>::stats(self))
            }

            $($($methods)*)?
        }

        impl $crate::Watch for $pool {
            #[inline]
            fn downgrade(&self) -> ::std::boxed::Box<dyn $crate::WeakPool> {
                $crate::watched(self.handle.downgrade(), |$handle| $over)
            }
        }
    };
}
