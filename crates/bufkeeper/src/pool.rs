//! Pools of handles, as keepers watch them.

use alloc::boxed::Box;
use core::any::TypeId;

use crate::{Trim, WeakPool};
use bufkit::{Handle, PoolCore, WeakHandle};

/// Converts it to the pool that a [`Keeper`](crate::Keeper) watches. `over` makes the pool of a
/// handle. The macro [`trimmed_pool`](crate::trimmed_pool) calls it.
#[must_use]
pub fn watched<S, P>(weak: WeakHandle<S>, over: fn(Handle<S>) -> P) -> Box<dyn WeakPool>
where
    S: PoolCore + Send + Sync + 'static,
    P: Trim + 'static,
{
    Box::new(Watched { weak, over })
}

/// A weak handle, with what makes the pool of a handle.
struct Watched<S: PoolCore, P> {
    weak: WeakHandle<S>,
    over: fn(Handle<S>) -> P,
}

impl<S: PoolCore + Send + Sync + 'static, P: Trim> WeakPool for Watched<S, P> {
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        let Some(handle) = self.weak.upgrade() else { return false };
        look(&mut (self.over)(handle));
        true
    }

    fn id(&self) -> Option<(TypeId, usize)> {
        Some((TypeId::of::<S>(), self.weak.as_ptr().addr().get()))
    }
}
