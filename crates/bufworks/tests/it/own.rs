//! Each strategy's own pool, of ordinary size: a function for each row of the table, of its name.

macro_rules! own {
    (
        {}
        $(
            $(#[$doc:meta])*
            [$module:ident $variant:ident $name:literal if $feature:literal] {
                pool: $pool:ty,
                builder: $builder:ty,
                refuses: $refuses:literal,
                build: |$built:tt| $build:expr,
                $($columns:tt)*
            }
        )*
    ) => {
        $(
            #[cfg(feature = $feature)]
            pub(super) fn $module() -> $pool {
                let bufworks::any::AnyBuilder::$variant($built) = super::any::sized($name) else {
                    panic!("{} is a builder of another strategy", $name)
                };
                $build.expect("settings are right")
            }
        )*
    };
}
strategies!(own! {});
