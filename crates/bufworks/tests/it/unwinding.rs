//! Which types may be used again after a panic that was caught: pools and handles, whole or
//! borrowed, since no call of theirs leaves a half-made state behind (T9, T22). What writes for a
//! pool that it borrows mutably is as `&mut` is: not.

use std::panic::{RefUnwindSafe, UnwindSafe};

use bufworks::any::{AnyBuilder, HeapBuilder};
use bufworks::{
    AnyBuf, AnyPool, Buf, BufferPool, Frozen, HeapBuf, HeapPool, HeapView, NoFallback, Region, SharedBytes,
};
use testkit::have;

have!(UnwindSafe, RefUnwindSafe => HeapPool, HeapBuf, HeapView, SharedBytes, Region, NoFallback, AnyPool, AnyBuf, AnyBuilder);

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
                have!(UnwindSafe, RefUnwindSafe => $pool, $builder, Buf<Lease>, Frozen<Lease>);
            };
        )*
    };
}
strategies!(of_each! {});

#[cfg(feature = "slot")]
mod slot {
    use super::*;
    use bufworks::slot::{Builder, SlotBuf, SlotPool, SlotView};

    have!(UnwindSafe, RefUnwindSafe => SlotPool, SlotPool<NoFallback>, SlotBuf, SlotView, Builder);
}

#[cfg(feature = "ring")]
mod ring {
    use super::*;
    use bufworks::ring::{Builder, LocalRing, RingBuf, RingPool, RingVec, RingView};

    have!(UnwindSafe, RefUnwindSafe => RingPool, LocalRing, RingBuf, RingView, RingVec<u8>, Builder);
}

#[cfg(feature = "bump")]
mod bump {
    use super::*;
    use bufworks::bump::{Builder, BumpBuf, BumpPool, BumpView};

    have!(UnwindSafe, RefUnwindSafe => BumpPool, BumpBuf, BumpView, Builder);
}

#[cfg(feature = "shard")]
mod shard {
    use super::*;
    use bufworks::shard::{Acquire, Builder, ShardBuf, ShardPool, ShardView};

    have!(UnwindSafe, RefUnwindSafe => ShardPool, ShardBuf, ShardView, Acquire<'static>, Builder);
}

#[cfg(feature = "mirror")]
mod mirror {
    use super::*;
    use bufworks::mirror::messages::{Receiver, Sender};
    use bufworks::mirror::{Builder, Consumer, MirrorRing, Producer};

    have!(UnwindSafe, RefUnwindSafe => MirrorRing, Producer, Consumer, Sender, Receiver, Builder);

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    mod shared {
        use super::*;
        use bufworks::mirror::{SharedConsumer, SharedProducer, SharedRing};

        have!(UnwindSafe, RefUnwindSafe => SharedRing, SharedProducer, SharedConsumer);
    }
}
