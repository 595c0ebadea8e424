//! The trait of a pool with idle memory, and how a keeper reaches such a pool.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::TypeId;
use core::task::Waker;
use core::time::Duration;
// Programs' own: also in models, which have locks of their own.
use std::sync::{Mutex, TryLockError};

use crate::PoolStats;

/// A pool that keeps memory which holds no buffers, and can give it back.
///
/// A [`Keeper`](crate::Keeper) calls these methods from time to time, on its own thread. A strategy
/// implements the trait with [`trimmed_pool`](crate::trimmed_pool).
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::{Duration, Instant};
///
/// use bufcore::{Keeper, Trim};
///
/// /// A program's own free list: vectors, each with the time at which it came back.
/// #[derive(Default)]
/// struct Vectors(Mutex<Vec<(Instant, Vec<u8>)>>);
///
/// impl Trim for Vectors {
///     fn trim(&self) {
///         self.0.lock().unwrap().clear();
///     }
///
///     fn trim_idle(&self, age: Duration) {
///         self.0.lock().unwrap().retain(|(since, _)| since.elapsed() < age);
///     }
///
///     fn reserved_bytes(&self) -> usize {
///         self.idle_bytes() // it does not know what is out
///     }
///
///     fn idle_bytes(&self) -> usize {
///         self.0.lock().unwrap().iter().map(|(_, vector)| vector.capacity()).sum()
///     }
/// }
///
/// let vectors = Arc::new(Vectors::default());
/// let _keeper = Keeper::new().watch(&vectors).spawn()?;
/// vectors.0.lock().unwrap().push((Instant::now(), Vec::with_capacity(1500)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Trim {
    /// Frees the memory that holds no buffers.
    fn trim(&self);

    /// Frees the memory that was not used for `age`, and keeps what comes and goes.
    ///
    /// A pool without time stamps compares what it sees with what it saw in the call before. Then
    /// memory goes at the second call, and a call that comes sooner than `age` after the last one
    /// may do nothing.
    fn trim_idle(&self, age: Duration);

    /// Returns the bytes that the pool has taken, idle and out.
    fn reserved_bytes(&self) -> usize;

    /// Returns the bytes that hold no buffers.
    fn idle_bytes(&self) -> usize;

    /// Returns what the pool says of itself, for programs that show or export it. It returns `None`
    /// while the pool cannot tell, because another thread has it.
    ///
    /// By default it has the reserved and the idle bytes alone.
    ///
    /// ```
    /// use bufcore::{PoolStats, Trim};
    ///
    /// fn print(pool: &dyn Trim) {
    ///     if let Some(stats) = pool.snapshot() {
    ///         println!("{} bytes, of which {} are idle", stats.reserved_bytes, stats.idle_bytes);
    ///     }
    /// }
    /// ```
    fn snapshot(&self) -> Option<PoolStats> {
        Some(PoolStats {
            reserved_bytes: self.reserved_bytes(),
            idle_bytes: self.idle_bytes(),
            ..PoolStats::default()
        })
    }

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
    /// [`Bell`](crate::strategy::Bell) implements it.
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }
}

/// A pool that one thread at a time uses, through `&mut self`, and that can give idle memory back.
///
/// In a [`Mutex`] it is a [`Trim`], so a [`Keeper`](crate::Keeper) watches it in an `Arc` of that.
/// The keeper does not wait for the lock: where another thread has it, the keeper leaves the pool
/// alone until its next look.
///
/// A pool that its thread has to itself needs no keeper. The thread calls the methods from time to
/// time, for example in a tick of its event loop.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// use bufcore::{Keeper, TrimMut};
///
/// /// A program's own free list, of vectors that came back.
/// #[derive(Default)]
/// struct Vectors(Vec<Vec<u8>>);
///
/// impl TrimMut for Vectors {
///     fn trim(&mut self) {
///         self.0.clear();
///     }
///
///     fn trim_idle(&mut self, _: Duration) {
///         self.0.truncate(self.0.len() / 2);
///     }
///
///     fn reserved_bytes(&self) -> usize {
///         self.idle_bytes() // it does not know what is out
///     }
///
///     fn idle_bytes(&self) -> usize {
///         self.0.iter().map(Vec::capacity).sum()
///     }
/// }
///
/// let vectors = Arc::new(Mutex::new(Vectors::default()));
/// let _keeper = Keeper::new().watch(&vectors).spawn()?;
/// vectors.lock().unwrap().0.push(Vec::with_capacity(1500));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait TrimMut {
    /// Frees the memory that holds no buffers, as [`Trim::trim`].
    fn trim(&mut self);

    /// Frees the memory that was not used for `age`, as [`Trim::trim_idle`].
    fn trim_idle(&mut self, age: Duration);

    /// Returns the bytes that the pool has taken, idle and out.
    fn reserved_bytes(&self) -> usize;

    /// Returns the bytes that hold no buffers.
    fn idle_bytes(&self) -> usize;

    /// Returns what the pool says of itself, as [`Trim::snapshot`]. By default it has the reserved
    /// and the idle bytes alone.
    fn snapshot(&self) -> PoolStats {
        PoolStats {
            reserved_bytes: self.reserved_bytes(),
            idle_bytes: self.idle_bytes(),
            ..PoolStats::default()
        }
    }

    /// Returns a number that changes when the pool is used, as [`Trim::uses`]. By default it is 0.
    fn uses(&self) -> usize {
        0
    }

    /// Keeps a clone of `waker` for when the pool next takes memory, and returns whether it does
    /// that, as [`Trim::wake_when_grown`]. By default it does not.
    ///
    /// In a mutex the waker is woken by whoever has the lock.
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }
}

/// Nothing here waits for the lock. While another thread has it, nothing is trimmed or kept, the
/// numbers are 0, and there is no snapshot. A pool whose lock is poisoned is trimmed like any
/// other.
impl<P: TrimMut> Trim for Mutex<P> {
    fn trim(&self) {
        at_hand(self, (), P::trim);
    }

    fn trim_idle(&self, age: Duration) {
        at_hand(self, (), |pool| pool.trim_idle(age));
    }

    fn reserved_bytes(&self) -> usize {
        at_hand(self, 0, |pool| pool.reserved_bytes())
    }

    fn idle_bytes(&self) -> usize {
        at_hand(self, 0, |pool| pool.idle_bytes())
    }

    fn snapshot(&self) -> Option<PoolStats> {
        at_hand(self, None, |pool| Some(pool.snapshot()))
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
/// The pools of all strategies that threads share implement it, and so does an `Arc` of whatever
/// implements [`Trim`], such as a pool in a mutex ([`TrimMut`]).
///
/// ```
/// use std::sync::Arc;
/// # use std::time::Duration;
/// use bufcore::{Trim, Watch};
///
/// struct Nothing;
/// impl Trim for Nothing {
///     // ...
/// #   fn trim(&self) {}
/// #   fn trim_idle(&self, _: Duration) {}
/// #   fn reserved_bytes(&self) -> usize {
/// #       0
/// #   }
/// #   fn idle_bytes(&self) -> usize {
/// #       0
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
    note = "a program's own pool implements `Trim`, and is watched in an `Arc`"
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
/// use bufcore::{Keeper, Trim, Watch, WeakPool};
///
/// /// A pool that a program never drops.
/// #[derive(Clone, Copy)]
/// struct Forever(&'static (dyn Trim + Sync));
///
/// impl WeakPool for Forever {
///     fn with(&self, look: &mut dyn FnMut(&dyn Trim)) -> bool {
///         look(self.0);
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
/// # impl Trim for Nothing {
/// #     fn trim(&self) {}
/// #     fn trim_idle(&self, _: std::time::Duration) {}
/// #     fn reserved_bytes(&self) -> usize {
/// #         0
/// #     }
/// #     fn idle_bytes(&self) -> usize {
/// #         0
/// #     }
/// # }
/// # static POOL: Nothing = Nothing;
/// # let keeper = Keeper::new().watch(&Forever(&POOL));
/// ```
pub trait WeakPool: Send {
    /// Calls `look` with the pool, and returns `true`. It returns `false`, and does not call it,
    /// when the pool has ended.
    fn with(&self, look: &mut dyn FnMut(&dyn Trim)) -> bool;

    /// Returns the identity of the pool: a type of its implementation, and its address. Two weak
    /// handles that exist at the same time return the same value only if they are of one pool.
    ///
    /// A [`Keeper`](crate::Keeper) watches a pool with an identity once, however often it is added.
    /// By default there is none, and each weak handle is taken for a pool of its own.
    ///
    /// ```
    /// use std::sync::Arc;
    /// # use std::time::Duration;
    /// use bufcore::{Trim, Watch, WeakPool};
    ///
    /// # struct Nothing;
    /// # impl Trim for Nothing {
    /// #     fn trim(&self) {}
    /// #     fn trim_idle(&self, _: Duration) {}
    /// #     fn reserved_bytes(&self) -> usize {
    /// #         0
    /// #     }
    /// #     fn idle_bytes(&self) -> usize {
    /// #         0
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

impl<P: Trim + Send + Sync + 'static> Watch for Arc<P> {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(Arc::downgrade(self))
    }
}

impl<P: Trim + Send + Sync + 'static> WeakPool for Weak<P> {
    fn with(&self, look: &mut dyn FnMut(&dyn Trim)) -> bool {
        let Some(pool) = self.upgrade() else { return false };
        look(&*pool);
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
/// [`Handle`](crate::strategy::Handle) of bookkeeping that is `Send` and `Sync`. The closure makes
/// a pool of another such handle. Further methods of [`Trim`] may follow, in braces.
///
/// ```
/// # use core::time::Duration;
/// # use std::ptr::NonNull;
/// # use bufcore::PoolStats;
/// use bufcore::strategy::{Bookkeeping, Handle, RefCounts};
///
/// struct Shared {
///     counts: RefCounts,
/// }
/// # // SAFETY: one field, made with the value; nothing but handles is counted.
/// # unsafe impl Bookkeeping for Shared {
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
/// bufcore::trimmed_pool!(impl Pool, |handle| Pool { handle });
///
/// let handle = Handle::new(Shared { counts: RefCounts::one_handle() }).expect("room");
/// let pool = Pool { handle };
/// let keeper = bufcore::Keeper::new().watch(&pool);
/// # drop(keeper);
/// ```
#[macro_export]
macro_rules! trimmed_pool {
    (impl $pool:ty, |$handle:ident| $over:expr $(, { $($methods:tt)* })?) => {
        impl $crate::Trim for $pool {
            fn trim(&self) {
                <$pool>::trim(self);
            }

            fn trim_idle(&self, age: ::core::time::Duration) {
                <$pool>::trim_idle(self, age);
            }

            fn reserved_bytes(&self) -> usize {
                <$pool>::stats(self).reserved_bytes
            }

            fn idle_bytes(&self) -> usize {
                <$pool>::stats(self).idle_bytes
            }

            fn snapshot(&self) -> ::core::option::Option<$crate::PoolStats> {
                ::core::option::Option::Some(<$pool>::stats(self))
            }

            $($($methods)*)?
        }

        impl $crate::Watch for $pool {
            fn downgrade(&self) -> ::std::boxed::Box<dyn $crate::WeakPool> {
                self.handle.downgrade().watched(|$handle| $over)
            }
        }
    };
}
