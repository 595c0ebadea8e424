//! The enums that have a variant for each row of the table of strategies, and what differs from
//! row to row.

use bufcore::{BufferPool, ConfigError};
#[cfg(feature = "std")]
use bufkeeper::Watch;

use super::heap::HeapBuilder;
use super::setting::{Setting, SettingError};

/// A `match` with an arm for each row of the table, all of which do the same. The forms are:
///
/// - `each!(value, Enum(bound) => body)`: the value of `body`.
/// - `each!(value, Enum(bound), Other(wrap) => body)`: the value of `body`, in which `wrap` is the
///   variant of `Other` of the same row, as a function.
macro_rules! each {
    ($value:expr, $enum:ident($bound:ident) => $body:expr) => {
        strategies!(arms! { $value, $enum, $bound, $body })
    };
    ($value:expr, $enum:ident($bound:ident), $other:ident($wrap:ident) => $body:expr) => {
        strategies!(arms! { $value, $enum, $bound, $other, $wrap, $body })
    };
}

/// What `each` expands to, with the rows of the table.
macro_rules! arms {
    (
        { $value:expr, $enum:ident, $bound:ident, $body:expr }
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        match $value {
            $(#[cfg(feature = $feature)] $enum::$variant($bound) => $body,)*
        }
    };
    (
        { $value:expr, $enum:ident, $bound:ident, $other:ident, $wrap:ident, $body:expr }
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        match $value {
            $(#[cfg(feature = $feature)] $enum::$variant($bound) => {
                let $wrap = $other::$variant;
                $body
            })*
        }
    };
}

/// Makes a builder's settings known by their names.
macro_rules! settings {
    ($builder:ident, $setting:ident: $($(#[$attribute:meta])? $name:ident $kind:ident,)*) => {
        match $setting.name {
            $($(#[$attribute])? stringify!($name) => *$builder = $builder.$name($setting.$kind()?),)*
            _ => return Err($setting.unknown(&[$($(#[$attribute])? stringify!($name)),*])),
        }
    };
}

/// All of this file that needs the table's columns.
macro_rules! variants {
    (
        {}
        $(
            $(#[$doc:meta])*
            [$module:ident $variant:ident $name:literal if $feature:literal] {
                pool: $pool:ty,
                builder: $builder:ty,
                refuses: $refuses:literal,
                build: |$built:tt| $build:expr,
                is_fallback: |$lease:tt| $is_fallback:expr,
                share: |$shared:tt| $share:expr,
                watched: |$kept:tt| $watched:expr,
                settings: [$($setting:ident $kind:ident $(if $needs:literal)?),*],
            }
        )*
    ) => {
        /// A strategy with its settings, which builds any number of [`AnyPool`](super::AnyPool)s.
        ///
        /// Strategies whose features are disabled are not among the variants. The text form is the
        /// name and, after a colon, the settings, named like the methods of the strategy's builder:
        /// `"slot:capacity=1MiB,slots=64"`. The [module](super) describes that form and
        /// configuration files.
        ///
        /// ```
        /// use bufworks::any::{AnyBuilder, HeapBuilder};
        ///
        /// let builder: AnyBuilder = "heap:alignment=64".parse()?;
        /// assert_eq!(builder, AnyBuilder::Heap(HeapBuilder::new().alignment(64)));
        /// let mut pools = [builder.build()?, builder.build()?]; // one for each thread
        /// for pool in &mut pools {
        ///     assert_eq!(pool.acquire(100)?.as_ptr().addr() % 64, 0);
        /// }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(tag = "strategy"))]
        #[non_exhaustive]
        pub enum AnyBuilder {
            $(
                $(#[$doc])*
                #[cfg(feature = $feature)]
                #[cfg_attr(feature = "serde", serde(rename = $name))]
                $variant($builder),
            )*
        }

        /// The pool of a strategy.
        #[derive(Debug)]
        pub(super) enum Pool {
            $(#[cfg(feature = $feature)] $variant($pool),)*
        }

        /// The lease of a strategy.
        #[derive(Debug)]
        pub(super) enum Of {
            $(#[cfg(feature = $feature)] $variant(<$pool as BufferPool>::Lease),)*
        }

        /// The names of the strategies that are there.
        pub(super) const NAMES: &[&str] = &[$(#[cfg(feature = $feature)] $name),*];

        impl AnyBuilder {
            /// Returns the strategy `name` with the defaults of its builder, if it is there.
            pub(super) fn with_defaults(name: &str) -> Option<Self> {
                match name {
                    $(#[cfg(feature = $feature)] $name => Some(Self::$variant(<$builder>::new())),)*
                    _ => None,
                }
            }

            /// Returns the strategy's name.
            ///
            /// ```
            /// use bufworks::any::AnyBuilder;
            ///
            /// let builder: AnyBuilder = "heap:alignment=4KiB".parse()?;
            /// assert_eq!(builder.name(), "heap");
            /// # Ok::<(), bufworks::any::SettingError>(())
            /// ```
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant(_) => $name,)*
                }
            }

            /// Gives the setting its value; changes nothing where there is no such setting or
            /// value.
            pub(super) fn take(&mut self, setting: &Setting<'_>) -> Result<(), SettingError> {
                match self {
                    $(
                        #[cfg(feature = $feature)]
                        Self::$variant(builder) => settings! {
                            builder, setting:
                            $($(#[cfg(feature = $needs)])? $setting $kind,)*
                            #[cfg(feature = "wipe")] wipe switch,
                        },
                    )*
                }
                Ok(())
            }

            /// Builds the pool by the strategy's builder.
            pub(super) fn pool(self) -> Result<Pool, ConfigError> {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant($built) => $build.map(Pool::$variant),)*
                }
            }
        }

        impl Pool {
            /// Returns the strategy's name.
            pub(super) fn name(&self) -> &'static str {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant(_) => $name,)*
                }
            }

            /// Returns another handle to the same pool, of strategies that threads share.
            pub(super) fn share(&self) -> Option<Self> {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant($shared) => $share.map(Self::$variant),)*
                }
            }

            /// Returns the pool for a keeper, of strategies with idle memory.
            #[cfg(feature = "std")]
            pub(super) fn watched(&self) -> Option<&dyn Watch> {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant($kept) => $watched,)*
                }
            }
        }

        impl Of {
            /// Returns whether the strategy had no memory to give.
            #[inline]
            pub(super) fn is_fallback(&self) -> bool {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant($lease) => $is_fallback,)*
                }
            }
        }
    };
}

strategies!(variants! {});
