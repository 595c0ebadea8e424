//! The suite over every strategy behind the one that is chosen at run time.

use bufworks::AnyPool;

use super::any::built;

/// One suite for each row of the table.
macro_rules! suites {
    (
        {}
        $(
            $(#[$doc:meta])*
            [$module:ident $variant:ident $name:literal if $feature:literal] {
                pool: $pool:ty,
                builder: $builder:ty,
                refuses: $refuses:literal,
                $($columns:tt)*
            }
        )*
    ) => {
        $(
            #[cfg(feature = $feature)]
            testkit::conformance! {
                name: $module,
                pool: AnyPool = || built($name),
                is_fallback: |buf| buf.lease().is_fallback(),
                rejects: $refuses,
                share: 20,
                handle: AnyPool::share,
                trim: testkit::trials::trim,
            }
        )*
    };
}

strategies!(suites! {});
