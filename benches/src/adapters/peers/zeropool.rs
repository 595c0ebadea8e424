//! `zeropool`: thread-local caches over shards.

use zeropool::{BufUninit, ZeroPool};

use super::Theirs;
use crate::adapters::defaults;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "zeropool",
        Kind::Peer,
        "`ZeroPool` that keeps small buffers too, with caches of at least eight and as large as the burst: `alloc_uninit`, so \
         that nothing is zeroed. One pool for all threads",
    )
    .whole::<Zero>()
    .sends::<Zero>()
    .threads_share::<Zero>()
    .no_frames(super::NO_FRAMES)
}

/// As a program makes it that sets nothing. The other peers have nothing to set, or are told how
/// much they hold when they are made.
pub(super) fn without_settings() -> Contestant {
    let idiom = "`ZeroPool::new()`: `alloc_uninit`; one pool for all threads";
    defaults::of(contestant(), "zeropool-default", idiom)
}

#[derive(Clone)]
struct Zero(&'static ZeroPool);

// SAFETY: the buffer has the length that was asked for, at one place, and is its holder's alone.
unsafe impl Block for Theirs<BufUninit<'static>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_uninit_mut().as_mut_ptr().cast()
    }
}

impl Pool for Zero {
    type Buf = Theirs<BufUninit<'static>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let mut pool = ZeroPool::new();
        if plan.settings == Settings::Planned {
            pool = pool
                .min_buffer_size(0)
                .tls_cache_size(plan.room.max(8))
                .max_buffers_per_class(plan.room.max(32));
        }
        Ok(Self(Box::leak(Box::new(pool))))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        Theirs(self.0.alloc_uninit(bytes))
    }
}
