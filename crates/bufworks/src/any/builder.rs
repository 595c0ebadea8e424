//! Which strategy, and its settings.

use alloc::borrow::ToOwned;
use core::fmt;
use core::str::FromStr;

use bufcore::strategy::SettingsText;
use bufcore::{ConfigError, HeapPool};

use super::pool::{AnyPool, Pool};
use super::setting::{Setting, SettingError};

/// Makes a variant's settings known by their names.
macro_rules! settings {
    ($builder:ident, $setting:ident: $($(#[$attribute:meta])? $name:ident $kind:ident,)*) => {
        match $setting.name {
            $($(#[$attribute])? stringify!($name) => *$builder = $builder.$name($setting.$kind()?),)*
            _ => return Err($setting.unknown(&[$($(#[$attribute])? stringify!($name)),*])),
        }
    };
}

/// A strategy with its settings, which makes [`AnyPool`]s, any number of them.
///
/// Strategies whose features are off are not among the variants. As text it is the name, and behind a colon the settings, each as its
/// method on the strategy's builder is called: `"slot:capacity=1MiB,slots=64"`. See the [module](super) for that and for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "strategy", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum AnyBuilder {
    /// Every buffer is a fresh allocation.
    Heap(HeapBuilder),
    /// The slot pool, which falls back on the heap.
    #[cfg(feature = "slot")]
    Slot(bufslot::Builder),
    /// The slot pool, which refuses when it has no room.
    #[cfg(feature = "slot")]
    BoundedSlot(bufslot::Builder),
    /// The ring.
    #[cfg(feature = "ring")]
    Ring(bufring::Builder),
    /// The bump-pointer shards.
    #[cfg(feature = "bump")]
    Bump(bufbump::Builder),
    /// The sharded thread-local pool.
    #[cfg(feature = "shard")]
    Shard(bufshard::Builder),
}

/// The settings of a [`HeapPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct HeapBuilder {
    alignment: usize,
    // Not a setting without the feature: a file that asks for it is refused.
    #[cfg_attr(all(feature = "serde", not(feature = "wipe")), serde(skip))]
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    wipe: bool,
}

impl Default for HeapBuilder {
    fn default() -> Self {
        Self { alignment: 1, wipe: false }
    }
}

impl HeapBuilder {
    /// The defaults: no alignment beyond a pointer's.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The start of every buffer is a multiple of `bytes`, a power of two; a pointer's alignment at the least.
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Whether the bytes of a buffer are zeroed when it is released.
    ///
    /// Cost: zeroing the capacity of every buffer.
    #[cfg(feature = "wipe")]
    #[must_use]
    pub fn wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadAlignment`].
    pub fn build(self) -> Result<HeapPool, ConfigError> {
        let pool = HeapPool::new().with_alignment(self.alignment)?;
        #[cfg(feature = "wipe")]
        let pool = pool.with_wipe(self.wipe);
        Ok(pool)
    }
}

impl AnyBuilder {
    /// The names of the strategies that are there.
    pub const NAMES: &[&str] = &[
        "heap",
        #[cfg(feature = "slot")]
        "slot",
        #[cfg(feature = "slot")]
        "bounded-slot",
        #[cfg(feature = "ring")]
        "ring",
        #[cfg(feature = "bump")]
        "bump",
        #[cfg(feature = "shard")]
        "shard",
    ];

    /// The strategy of this name, with the defaults of its builder.
    ///
    /// # Errors
    ///
    /// [`SettingError::UnknownStrategy`].
    pub fn named(name: &str) -> Result<Self, SettingError> {
        Ok(match name {
            "heap" => Self::Heap(HeapBuilder::new()),
            #[cfg(feature = "slot")]
            "slot" => Self::Slot(bufslot::Builder::new()),
            #[cfg(feature = "slot")]
            "bounded-slot" => Self::BoundedSlot(bufslot::Builder::new()),
            #[cfg(feature = "ring")]
            "ring" => Self::Ring(bufring::Builder::new()),
            #[cfg(feature = "bump")]
            "bump" => Self::Bump(bufbump::Builder::new()),
            #[cfg(feature = "shard")]
            "shard" => Self::Shard(bufshard::Builder::new()),
            _ => return Err(SettingError::UnknownStrategy { name: name.to_owned() }),
        })
    }

    /// The strategy's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Heap(_) => "heap",
            #[cfg(feature = "slot")]
            Self::Slot(_) => "slot",
            #[cfg(feature = "slot")]
            Self::BoundedSlot(_) => "bounded-slot",
            #[cfg(feature = "ring")]
            Self::Ring(_) => "ring",
            #[cfg(feature = "bump")]
            Self::Bump(_) => "bump",
            #[cfg(feature = "shard")]
            Self::Shard(_) => "shard",
        }
    }

    /// The names of the settings that the strategy has, which are the methods of its builder.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// assert!(AnyBuilder::named("heap")?.settings().contains(&"alignment"));
    /// # Ok::<(), bufworks::any::SettingError>(())
    /// ```
    #[must_use]
    pub fn settings(&self) -> &'static [&'static str] {
        // No setting has no name.
        match { *self }.set("", "") {
            Err(SettingError::UnknownSetting { known, .. }) => known,
            _ => &[],
        }
    }

    /// Gives the setting that the strategy's builder has as method `name` this value: a number, which may have a unit behind it if it is
    /// of bytes, or `true` or `false`. See the [module](super) for the units. Whether the value makes sense is seen when the pool is
    /// built.
    ///
    /// # Errors
    ///
    /// [`SettingError::UnknownSetting`] and [`SettingError::BadValue`]; the builder is unchanged then.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut builder = AnyBuilder::named("heap")?;
    /// builder.set("alignment", "4K")?;
    /// assert_eq!(builder.to_string(), "heap:alignment=4KiB");
    /// # Ok::<(), bufworks::any::SettingError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let setting = Setting { strategy: self.name(), name, value };
        match self {
            Self::Heap(builder) => settings! {
                builder, setting:
                alignment bytes,
                #[cfg(feature = "wipe")] wipe switch,
            },
            #[cfg(feature = "slot")]
            Self::Slot(builder) | Self::BoundedSlot(builder) => settings! {
                builder, setting:
                capacity bytes,
                slots count,
                alignment bytes,
                stagger switch,
                #[cfg(feature = "wipe")] wipe switch,
            },
            #[cfg(feature = "ring")]
            Self::Ring(builder) => settings! {
                builder, setting:
                capacity bytes,
                buffers count,
                alignment bytes,
                #[cfg(feature = "wipe")] wipe switch,
            },
            #[cfg(feature = "bump")]
            Self::Bump(builder) => settings! {
                builder, setting:
                shard_size bytes,
                max_probes count,
                max_idle_bytes bytes,
                alignment bytes,
                preallocate count,
                #[cfg(feature = "wipe")] wipe switch,
            },
            #[cfg(feature = "shard")]
            Self::Shard(builder) => settings! {
                builder, setting:
                thread_cache count,
                smallest_pooled bytes,
                largest_pooled bytes,
                shard_buffers count,
                shards count,
                max_bytes bytes,
                alignment bytes,
                #[cfg(feature = "wipe")] wipe switch,
            },
        }
        Ok(())
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// As the `build` of the strategy's builder.
    pub fn build(self) -> Result<AnyPool, ConfigError> {
        Ok(AnyPool::over(match self {
            Self::Heap(builder) => Pool::Heap(builder.build()?),
            #[cfg(feature = "slot")]
            Self::Slot(builder) => Pool::Slot(builder.build()?),
            #[cfg(feature = "slot")]
            Self::BoundedSlot(builder) => Pool::BoundedSlot(builder.build_with(bufcore::Reject)?),
            #[cfg(feature = "ring")]
            Self::Ring(builder) => Pool::Ring(builder.build()?),
            #[cfg(feature = "bump")]
            Self::Bump(builder) => Pool::Bump(builder.build()?),
            #[cfg(feature = "shard")]
            Self::Shard(builder) => Pool::Shard(builder.build()?),
        }))
    }
}

/// The settings that differ from the defaults, as [`AnyBuilder`] reads them: `alignment=64`.
impl fmt::Display for HeapBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut text = SettingsText::new(f);
        text.bytes("alignment", self.alignment, default.alignment)?;
        text.switch("wipe", self.wipe, default.wipe)
    }
}

/// `name`, or `name:setting=value,setting=value` with the settings that differ from the defaults. What is read from it is equal to this.
impl fmt::Display for AnyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        if Self::named(name).as_ref() == Ok(self) {
            return f.write_str(name);
        }
        match self {
            Self::Heap(builder) => write!(f, "{name}:{builder}"),
            #[cfg(feature = "slot")]
            Self::Slot(builder) | Self::BoundedSlot(builder) => write!(f, "{name}:{builder}"),
            #[cfg(feature = "ring")]
            Self::Ring(builder) => write!(f, "{name}:{builder}"),
            #[cfg(feature = "bump")]
            Self::Bump(builder) => write!(f, "{name}:{builder}"),
            #[cfg(feature = "shard")]
            Self::Shard(builder) => write!(f, "{name}:{builder}"),
        }
    }
}

/// `name`, or `name:setting=value,setting=value`.
impl FromStr for AnyBuilder {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut builder = Self::named(name.trim())?;
        for setting in settings.split(',').filter(|setting| !setting.trim().is_empty()) {
            // A setting without a value has an empty one, which no setting takes.
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            builder.set(name.trim(), value.trim())?;
        }
        Ok(builder)
    }
}
