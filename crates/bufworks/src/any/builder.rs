//! Builders: a strategy and its settings.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use bufcore::{ConfigError, HeapPool};
use bufkit::SettingsText;

use super::pool::AnyPool;
use super::setting::{Setting, SettingError};
use super::variants::{self, AnyBuilder};

/// The settings of a [`HeapPool`].
///
/// ```
/// use bufworks::any::{AnyBuilder, HeapBuilder};
///
/// let builder = HeapBuilder::new().alignment(4096);
/// assert_eq!(AnyBuilder::Heap(builder).to_string(), "heap:alignment=4KiB");
/// assert_eq!(builder.build()?.acquire(100)?.as_ptr().addr() % 4096, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Returns the defaults: no alignment beyond a pointer's.
    ///
    /// ```
    /// use bufworks::any::{AnyBuilder, HeapBuilder};
    ///
    /// assert_eq!(AnyBuilder::named("heap")?, AnyBuilder::Heap(HeapBuilder::new()));
    /// # Ok::<(), bufworks::any::SettingError>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every buffer start at a multiple of `bytes`, a power of two; at least a pointer's
    /// alignment.
    ///
    /// ```
    /// use bufworks::any::HeapBuilder;
    ///
    /// let mut pages = HeapBuilder::new().alignment(4096).build()?; // for direct I/O
    /// assert!(pages.acquire(10_000)?.as_ptr().addr().is_multiple_of(4096));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets whether the bytes of a buffer are zeroed when it is released.
    ///
    /// Cost: zeroing the capacity of every buffer.
    ///
    /// ```
    /// use bufworks::any::{AnyBuilder, HeapBuilder};
    ///
    /// let builder = AnyBuilder::Heap(HeapBuilder::new().wipe(true));
    /// assert_eq!(builder.to_string(), "heap:wipe=true");
    /// let mut key = builder.build()?.acquire(32)?;
    /// key.extend_from_slice(b"a secret")?;
    /// drop(key); // overwritten, then given back
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "wipe")]
    #[must_use]
    pub fn wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }

    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadAlignment`] for an alignment that is no power of two, and
    /// [`ConfigError::TooLarge`] for one that is too large.
    ///
    /// ```
    /// use bufworks::ConfigError;
    /// use bufworks::any::HeapBuilder;
    ///
    /// let refused = HeapBuilder::new().alignment(3).build().unwrap_err();
    /// assert_eq!(refused, ConfigError::BadAlignment { alignment: 3 });
    /// ```
    pub fn build(self) -> Result<HeapPool, ConfigError> {
        let pool = HeapPool::new().with_alignment(self.alignment)?;
        #[cfg(feature = "wipe")]
        let pool = pool.with_wipe(self.wipe);
        Ok(pool)
    }
}

impl AnyBuilder {
    /// The names of the strategies whose features are on.
    pub const NAMES: &[&str] = variants::NAMES;

    /// Returns the strategy of this name, with the defaults of its builder.
    ///
    /// # Errors
    ///
    /// [`SettingError::UnknownStrategy`] for a name that no strategy has, or one whose feature is
    /// off.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// for name in AnyBuilder::NAMES {
    ///     let mut pool = AnyBuilder::named(name)?.build()?;
    ///     assert_eq!(pool.acquire(100)?.capacity(), 100);
    /// }
    /// assert!(AnyBuilder::named("slab").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, SettingError> {
        Self::with_defaults(name).ok_or_else(|| SettingError::UnknownStrategy { name: name.to_owned() })
    }

    /// Returns the names of the strategy's settings, which are the methods of its builder.
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

    /// Sets the setting that the strategy's builder has as method `name`.
    ///
    /// The value is `true`, `false` or a number; a number of bytes may have a unit. The
    /// [module](super) lists the units. Only building the pool shows whether the value makes sense.
    ///
    /// # Errors
    ///
    /// [`SettingError::UnknownSetting`] and [`SettingError::BadValue`]. The builder is unchanged
    /// then.
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
        self.take(&Setting { strategy: self.name(), name, value })
    }

    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// As the `build` method of the strategy's builder.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = AnyBuilder::named("heap")?.build()?;
    /// assert_eq!((pool.strategy(), pool.acquire(100)?.capacity()), ("heap", 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<AnyPool, ConfigError> {
        self.pool().map(AnyPool::over)
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

/// `name`, or `name:setting=value,setting=value` with the settings that differ from the defaults.
/// The builder that is read from it is equal to this.
impl fmt::Display for AnyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        if Self::named(name).as_ref() == Ok(self) {
            return f.write_str(name);
        }
        each!(self, AnyBuilder(builder) => write!(f, "{name}:{builder}"))
    }
}

/// `name`, or `name:setting=value,setting=value`, with each setting once.
impl FromStr for AnyBuilder {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut builder = Self::named(name.trim())?;
        let mut given = Vec::new();
        for setting in settings.split(',').filter(|setting| !setting.trim().is_empty()) {
            // A setting without a value has an empty one, which no setting takes.
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let name = name.trim();
            builder.set(name, value.trim())?;
            if given.contains(&name) {
                return Err(SettingError::Repeated { setting: name.to_owned() });
            }
            given.push(name);
        }
        Ok(builder)
    }
}
