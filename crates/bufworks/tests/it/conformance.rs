//! The suite over every strategy behind the one that is chosen at run time.

use bufworks::AnyPool;

use super::any::built;

macro_rules! suite {
    ($module:ident, $name:literal, $rejects:expr) => {
        buftest::conformance! {
            name: $module,
            pool: AnyPool = || built($name),
            frames: |_| None,
            is_fallback: |buf| buf.lease().is_fallback(),
            rejects: $rejects,
            share: 20,
        }
    };
}

suite!(heap, "heap", false);
#[cfg(feature = "slot")]
suite!(slot, "slot", false);
#[cfg(feature = "slot")]
suite!(bounded_slot, "bounded-slot", true);
#[cfg(feature = "ring")]
suite!(ring, "ring", true);
#[cfg(feature = "bump")]
suite!(bump, "bump", false);
#[cfg(feature = "shard")]
suite!(shard, "shard", false);
