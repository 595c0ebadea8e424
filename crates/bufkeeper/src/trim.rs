//! The trait of a pool with idle memory, and how a keeper reaches such a pool.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::TypeId;
use core::task::Waker;
use core::time::Duration;
// Programs' own: also in models, which have locks of their own.
use std::sync::{Mutex, TryLockError};

use bufcore::PoolStats;

/// A pool that keeps memory which holds no buffers, and can give it back.
///
/// A [`Keeper`](crate::Keeper) calls these methods from time to time, on its own thread:
///
/// - A pool that threads share implements the trait for its handle. A strategy does so with
///   [`trimmed_pool`](crate::trimmed_pool).
/// - A pool that one thread at a time uses is watched in an `Arc<Mutex<_>>`. The keeper does not
///   wait for the lock. While another thread has it, the keeper leaves the pool alone.
/// - A pool that has its locks inside implements the trait for a reference to it, and is watched in
///   an `Arc`.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::{Duration, Instant};
///
/// use bufcore::PoolStats;
/// use bufkeeper::{Keeper, Trim};
///
/// /// A program's own free list: vectors, each with the time at which it was released.
/// #[derive(Default)]
/// struct Vectors(Vec<(Instant, Vec<u8>)>);
///
/// impl Trim for Vectors {
///     fn trim(&mut self) {
///         self.0.clear();
///     }
///
///     fn trim_idle(&mut self, age: Duration) {
///         self.0.retain(|(since, _)| since.elapsed() < age);
///     }
///
///     fn stats(&self) -> Option<PoolStats> {
///         let mut stats = PoolStats::default();
///         stats.idle_bytes = self.0.iter().map(|(_, vector)| vector.capacity()).sum();
///         stats.reserved_bytes = stats.idle_bytes; // it does not know what is in use
///         Some(stats)
///     }
/// }
///
/// let vectors = Arc::new(Mutex::new(Vectors::default()));
/// let _keeper = Keeper::new().watch(&vectors).spawn()?;
/// vectors.lock().unwrap().0.push((Instant::now(), Vec::with_capacity(1500)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Trim {
    /// Frees the memory that holds no buffers.
    fn trim(&mut self);

    /// Frees the memory that was not used for `age`. A pool that does not know what that is frees
    /// all that holds no buffers, as the method does where it is not overridden.
    ///
    /// A pool without time stamps compares what it sees with what it saw in the call before. Then
    /// memory goes at the second call, and a call that comes sooner than `age` after the last one
    /// may do nothing.
    fn trim_idle(&mut self, age: Duration) {
        let _ = age;
        self.trim();
    }

    /// Returns what the pool says of itself: a keeper reads the reserved and the idle bytes,
    /// programs show or export all of it. It returns `None` while the pool cannot tell, because
    /// another thread has it.
    ///
    /// ```
    /// use bufkeeper::Trim;
    ///
    /// fn print(pool: &dyn Trim) {
    ///     if let Some(stats) = pool.stats() {
    ///         println!("{} bytes, of which {} are idle", stats.reserved_bytes, stats.idle_bytes);
    ///     }
    /// }
    /// ```
    fn stats(&self) -> Option<PoolStats>;

    /// Returns a number that changes when the pool is used, if the pool counts its uses cheaply.
    ///
    /// A keeper looks rarely at a pool in which nothing changes: neither this number nor the bytes.
    /// A pool that counts no uses returns 0, as the method does where it is not overridden.
    fn uses(&self) -> usize {
        0
    }

    /// Keeps a clone of `waker`, and wakes it once when the pool next takes memory. It returns
    /// whether the pool does that; by default it does not.
    ///
    /// A keeper asks for it before it sleeps for long, and then looks at the bytes once more. So a
    /// pool that takes memory either wakes the waker, or shows that look what it has taken.
    /// [`GrowthSignal`](bufkit::GrowthSignal) implements it. The waker of a pool in a mutex is
    /// woken by whoever has the lock.
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }
}

/// Nothing here waits for the lock. While another thread has it, nothing is trimmed or kept, and
/// there are no numbers. A pool whose lock is poisoned is trimmed like any other.
impl<P: Trim> Trim for &Mutex<P> {
    fn trim(&mut self) {
        at_hand(self, (), P::trim);
    }

    fn trim_idle(&mut self, age: Duration) {
        at_hand(self, (), |pool| pool.trim_idle(age));
    }

    fn stats(&self) -> Option<PoolStats> {
        at_hand(self, None, |pool| pool.stats())
    }

    fn uses(&self) -> usize {
        at_hand(self, 0, |pool| pool.uses())
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        at_hand(self, false, |pool| pool.wake_when_grown(waker))
    }
}

/// Returns what `look` says of the pool, or `busy` while another thread has it.
fn at_hand<P, R>(pool: &Mutex<P>, busy: R, look: impl FnOnce(&mut P) -> R) -> R {
    match pool.try_lock() {
        Ok(mut pool) => look(&mut pool),
        Err(TryLockError::Poisoned(poisoned)) => look(&mut poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => busy,
    }
}

/// A handle of a pool that a [`Keeper`](crate::Keeper) can watch, which does not keep the pool from
/// its end.
///
/// The pools of all strategies that threads share implement it, and so does an `Arc` of what
/// implements [`Trim`] through a shared reference, such as any pool in a mutex.
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
    /// Returns what finds the pool, and does not keep it.
    ///
    /// Cost: an allocation.
    fn downgrade(&self) -> Box<dyn WeakPool>;
}

/// Finds a pool, as [`Watch::downgrade`] returns it.
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
    /// Calls `look` with the pool, and returns `true`. It returns `false`, and does not call it,
    /// when the pool has ended.
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool;

    /// Returns the identity of the pool: a type of its implementation, and its address. Two weak
    /// handles that exist at the same time return the same value only if they are of one pool.
    ///
    /// A [`Keeper`](crate::Keeper) watches a pool with an identity once, however often it is added.
    /// By default there is none, and each weak handle is taken for a pool of its own.
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
/// It is for authors of strategies. The pool has a field `handle`, a
/// [`Handle`](bufkit::Handle) of bookkeeping that is `Send` and `Sync`. The closure makes
/// a pool of another such handle. Further methods of [`Trim`] may follow, in braces.
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
            fn trim(&mut self) {
                <$pool>::trim(self);
            }

            fn trim_idle(&mut self, age: ::core::time::Duration) {
                <$pool>::trim_idle(self, age);
            }

            fn stats(&self) -> ::core::option::Option<$crate::bufcore::PoolStats> {
                ::core::option::Option::Some(<$pool>::stats(self))
            }

            $($($methods)*)?
        }

        impl $crate::Watch for $pool {
            fn downgrade(&self) -> ::std::boxed::Box<dyn $crate::WeakPool> {
                $crate::watched(self.handle.downgrade(), |$handle| $over)
            }
        }
    };
}
