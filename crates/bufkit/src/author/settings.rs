//! The struct of a builder: its settings, their defaults, and how they print.

/// Makes the struct of a builder, with a method for each setting, `new`, `Default`, and a `Display`
/// that prints the settings that differ from the defaults ([`SettingsText`](crate::SettingsText)).
///
/// A setting has a kind, a name, the name of the method's argument, and a default. The kinds are
/// `bytes`, `bound` for a limit of bytes of at most `isize::MAX`, `count` and `switch`. Settings in
/// `unset` have no default: the builder stores `None` until they are set. Settings in `mmap`, the
/// options of mappings, need the feature of that name. Each builder has a setting `wipe`, with the
/// feature of that name. With the feature `serde` the settings can be deserialized from a
/// configuration file. The features are those of the package that calls the macro.
///
/// ```
/// bufkit::settings! {
///     /// The settings of a pool.
///     pub struct Builder {
///         new {
///             /// Returns the defaults: 8 slots, staggered.
///         }
///         unset {
///             /// Sets the bytes that the buffers share.
///             bytes capacity(bytes);
///         }
///         set {
///             /// Sets the number of slots.
///             count slots(slots) = 8;
///             /// Sets whether buffers are spread over the sets of the cache.
///             switch stagger(stagger) = true;
///         }
///         wipe {
///             /// Sets whether the bytes of a buffer are zeroed when it is released.
///         }
///     }
/// }
///
/// const SETTINGS: Builder = Builder::new().slots(3).capacity(65536);
/// assert_eq!(SETTINGS.to_string(), "capacity=64KiB,slots=3");
/// assert_eq!(Builder::default().stagger(true).to_string(), "");
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$doc:meta])*
        pub struct $builder:ident {
            new { $(#[$new_doc:meta])* }
            $(unset {
                $($(#[$unset_doc:meta])* $unset_kind:ident $unset:ident($unset_arg:ident);)*
            })?
            set { $($(#[$set_doc:meta])* $kind:ident $set:ident($arg:ident) = $default:expr;)* }
            $(mmap {
                $(#[$options_doc:meta])* $options:ident(options);
            })?
            wipe { $(#[$wipe_doc:meta])* }
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        pub struct $builder {
            $($(
                #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
                $unset: Option<$crate::setting_type!($unset_kind)>,
            )*)?
            $(pub(crate) $set: $crate::setting_type!($kind),)*
            $(
                #[cfg(feature = "mmap")]
                #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
                $options: Option<::bufcore::MapOptions>,
            )?
            // Not a setting without the feature: a file that asks for it is refused.
            #[cfg_attr(all(feature = "serde", not(feature = "wipe")), serde(skip))]
            #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
            wipe: bool,
        }

        impl $builder {
            $(#[$new_doc])*
            #[inline]
            #[must_use]
            pub const fn new() -> Self {
                Self {
                    $($($unset: None,)*)?
                    $($set: $default,)*
                    $(
                        #[cfg(feature = "mmap")]
                        $options: None,
                    )?
                    wipe: false,
                }
            }

            $($(
                $(#[$unset_doc])*
                #[inline]
                #[must_use]
                pub const fn $unset(mut self, $unset_arg: $crate::setting_type!($unset_kind)) -> Self {
                    self.$unset = Some($crate::setting_value!($unset_kind $unset_arg));
                    self
                }
            )*)?

            $(
                $(#[$set_doc])*
                #[inline]
                #[must_use]
                pub const fn $set(mut self, $arg: $crate::setting_type!($kind)) -> Self {
                    self.$set = $arg;
                    self
                }
            )*

            $(
                $(#[$options_doc])*
                #[cfg(feature = "mmap")]
                #[inline]
                #[must_use]
                pub fn $options(mut self, options: ::bufcore::MapOptions) -> Self {
                    self.$options = (options != ::bufcore::MapOptions::new()).then_some(options);
                    self
                }

                /// Returns where the pages come from that no provider supplies.
                #[cfg_attr(not(feature = "mmap"), allow(clippy::unused_self, reason = "no such setting"))]
                pub(crate) fn page_source(&self) -> $crate::PageSource {
                    #[cfg(feature = "mmap")]
                    if let Some(options) = self.$options {
                        return $crate::PageSource::Mapped(options);
                    }
                    $crate::PageSource::System
                }
            )?

            $(#[$wipe_doc])*
            #[cfg(feature = "wipe")]
            #[inline]
            #[must_use]
            pub const fn wipe(mut self, wipe: bool) -> Self {
                self.wipe = wipe;
                self
            }
        }

        impl Default for $builder {
            #[inline]
            fn default() -> Self {
                Self::new()
            }
        }

        /// The settings that differ from the defaults, as `AnyBuilder` of `bufworks` reads them.
        impl ::core::fmt::Display for $builder {
            #[inline]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let default = Self::new();
                let mut text = $crate::SettingsText::new(f);
                $($($crate::setting_text!($unset_kind text $unset, self.$unset, None);)*)?
                $($crate::setting_text!($kind text $set, Some(self.$set), Some(default.$set));)*
                $(
                    #[cfg(feature = "mmap")]
                    text.text(stringify!($options), self.$options, None)?;
                )?
                text.text("wipe", Some(self.wipe), Some(default.wipe))
            }
        }
    };
}

/// The type of a setting of a kind.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_type {
    (switch) => {
        bool
    };
    ($number:ident) => {
        usize
    };
}

/// The value that a builder keeps of a setting of a kind. Of a bound no more is ever counted than
/// `isize::MAX`, and formats whose integers are signed have a number for that.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_value {
    (bound $value:ident) => {
        if $value > isize::MAX as usize { isize::MAX as usize } else { $value }
    };
    ($kind:ident $value:ident) => {
        $value
    };
}

/// Writes a setting of a kind into a `SettingsText`.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_text {
    (count $($rest:tt)*) => {
        $crate::setting_text!(switch $($rest)*)
    };
    (switch $text:ident $name:ident, $value:expr, $default:expr) => {
        $text.text(stringify!($name), $value, $default)?
    };
    ($bytes:ident $text:ident $name:ident, $value:expr, $default:expr) => {
        $text.bytes(stringify!($name), $value, $default)?
    };
}
