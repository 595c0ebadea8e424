//! Buffers that are split, of every strategy behind the one that is chosen at run time.

use bufworks::AnyPool;

use super::any::built;

/// One suite for each row of the table.
macro_rules! suites {
    (
        {}
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        $(
            #[cfg(feature = $feature)]
            mod $module {
                use super::*;

                testkit::conformance_split! {
                    pool: AnyPool = || built($name),
                }
            }
        )*
    };
}

strategies!(suites! {});
