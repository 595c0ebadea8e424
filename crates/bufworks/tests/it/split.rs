//! Buffers that are split, of every strategy behind the one that is chosen at run time.

use bufworks::AnyPool;

use super::any::built;

macro_rules! split {
    ($module:ident, $name:literal) => {
        mod $module {
            use super::*;

            buftest::conformance_split! {
                pool: AnyPool = || built($name),
            }
        }
    };
}

split!(heap, "heap");
#[cfg(feature = "slot")]
split!(slot, "slot");
#[cfg(feature = "slot")]
split!(bounded_slot, "bounded-slot");
#[cfg(feature = "ring")]
split!(ring, "ring");
#[cfg(feature = "bump")]
split!(bump, "bump");
#[cfg(feature = "shard")]
split!(shard, "shard");
