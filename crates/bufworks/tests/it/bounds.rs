//! T16: which types may go to other threads, or be shared by them, and which must not: the compiler
//! says so.
//!
//! The bounds of a type do not depend on features.

use std::cell::Cell;
use std::rc::Rc;

use bufworks::any::{AnyBuilder, AnyLease, HeapBuilder, SettingError};
use bufworks::{
    AcquireError, AnyPool, Buf, BufferPool, ConfigError, Error, Frozen, HeapLease, HeapPool, NoFallback,
    NoLease, PoolStats, Region, ReserveError, SharedBytes,
};
use testkit::{have, lack};

/// A pool that is not `Sync`, and one that is not `Send` either.
struct Owned<T>(T);

impl<T> BufferPool for Owned<T> {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        let _ = &self.0;
        HeapPool::new().acquire(capacity)
    }

    fn max_capacity(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

type NotShared = Owned<Cell<u8>>;
type NotSent = Owned<Rc<u8>>;

have!(Send, Sync => SharedBytes);
have!(Send, Sync => Buf<HeapLease>, Frozen<HeapLease>, HeapLease, NoLease, HeapPool, NoFallback, Region, PoolStats);
have!(Send, Sync => AcquireError, ConfigError, Error, ReserveError, AnyLease, AnyBuilder, HeapBuilder, SettingError);
have!(Send => AnyPool, NotShared);
lack!(Sync => AnyPool, NotShared, NotSent);
lack!(Send => NotSent);
lack!(Clone => Buf<HeapLease>, HeapLease, AnyLease, AnyPool, Region);

/// What is asked of every strategy in the table.
macro_rules! of_each {
    (
        {}
        $(
            $(#[$doc:meta])*
            [$module:ident $variant:ident $name:literal if $feature:literal] {
                pool: $pool:ty,
                builder: $builder:ty,
                $($columns:tt)*
            }
        )*
    ) => {
        $(
            #[cfg(feature = $feature)]
            const _: () = {
                type Lease = <$pool as BufferPool>::Lease;
                have!(Send => $pool);
                have!(Send, Sync, Copy => $builder);
                have!(Send, Sync => Lease);
                lack!(Clone => Lease);
            };
        )*
    };
}
strategies!(of_each! {});

/// What lies in a `SharedBytes` without an allocation: the leases of all strategies.
#[cfg(not(feature = "track"))]
const _: () = assert!(size_of::<AnyLease>() <= 4 * size_of::<usize>());

mod vocabulary {
    use bufkit::orphan::Orphan;
    use bufkit::thread_cache::Cache;
    use bufkit::{Link, RefCounts};
    use bufworks::bufcore::author::{RefCount, Released, TaggedPtr, Tracker};
    use testkit::{have, lack};

    have!(Send, Sync => RefCounts, Released, Tracker, RefCount);
    lack!(Send => Orphan, TaggedPtr<u64>, Cache, Link<u64>);
    lack!(Sync => Orphan, TaggedPtr<u64>, Cache, Link<u64>);
}

#[cfg(feature = "slot")]
mod slot {
    use super::{NotSent, NotShared};
    use bufworks::slot::{BuildInError, Builder, SlotLease, SlotPool};
    use bufworks::{HeapLease, HeapPool};
    use testkit::{have, lack};

    have!(Send, Sync => SlotPool, SlotLease<HeapLease>, BuildInError<HeapPool>, Builder);
    have!(Send => SlotPool<NotShared>, BuildInError<NotShared>);
    lack!(Sync => SlotPool<NotShared>, BuildInError<NotShared>, SlotPool<NotSent>);
    lack!(Send => SlotPool<NotSent>, BuildInError<NotSent>);
    lack!(Clone => SlotPool, SlotLease<HeapLease>);
}

#[cfg(feature = "ring")]
mod ring {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::MutexGuard;

    use bufworks::ring::{Builder, IntoIter, LocalError, LocalRing, PushError, RingLease, RingPool, RingVec};
    use testkit::{have, lack};

    have!(Send, Sync => RingLease, RingVec<u8>, IntoIter<u8>, PushError<u8>, LocalError, Builder);
    have!(Send => RingPool, LocalRing, RingVec<Cell<u8>>, IntoIter<Cell<u8>>);
    have!(Sync => RingVec<MutexGuard<'static, u8>>, IntoIter<MutexGuard<'static, u8>>);
    lack!(Sync => RingPool, LocalRing, RingVec<Cell<u8>>, IntoIter<Cell<u8>>, PushError<Cell<u8>>);
    lack!(Send => RingVec<Rc<u8>>, IntoIter<Rc<u8>>, PushError<Rc<u8>>, RingVec<MutexGuard<'static, u8>>);
    lack!(Send => IntoIter<MutexGuard<'static, u8>>);
    lack!(Clone => RingPool, RingLease, RingVec<u8>, IntoIter<u8>, LocalRing);
}

#[cfg(feature = "bump")]
mod bump {
    use bufworks::bump::{BumpLease, BumpPool};
    use testkit::{have, lack};

    have!(Send, Sync => BumpPool, BumpLease);
    lack!(Clone => BumpLease);
}

#[cfg(feature = "shard")]
mod shard {
    use bufworks::shard::{Acquire, ClassStats, ShardLease, ShardPool};
    use testkit::{have, lack};

    have!(Send, Sync => ShardPool, ShardLease, ClassStats, Acquire<'static>);
    lack!(Clone => ShardLease, Acquire<'static>);
}

#[cfg(feature = "mirror")]
mod mirror {
    use bufworks::mirror::messages::{Message, Receiver, Sender};
    use bufworks::mirror::{Builder, Consumer, MirrorRing, Producer};
    use testkit::{have, lack};

    have!(Send, Sync => MirrorRing, Producer, Consumer, Sender, Receiver, Message<'static>, Builder);
    lack!(Clone => MirrorRing, Producer, Consumer, Message<'static>);

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    mod shared {
        use bufworks::mirror::{SharedConsumer, SharedProducer, SharedRing};
        use testkit::{have, lack};

        have!(Send, Sync => SharedRing, SharedProducer, SharedConsumer);
        lack!(Clone => SharedRing, SharedProducer, SharedConsumer);
    }
}
