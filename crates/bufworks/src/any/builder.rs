//! Builders of all strategies, as text and as pools.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use bufcore::ConfigError;

use super::pool::AnyPool;
use super::setting::{Setting, SettingError};
use super::variants::{self, AnyBuilder};

impl AnyBuilder {
    /// The names of the strategies whose features are enabled.
    pub const NAMES: &[&str] = variants::NAMES;

    /// Returns the strategy of this name, with the defaults of its builder.
    ///
    /// # Errors
    ///
    /// [`SettingError::UnknownStrategy`] for a name that no strategy has, or one whose feature is
    /// disabled.
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

    /// Sets the setting `name`, a method of the strategy's builder.
    ///
    /// The value is `true`, `false` or a number; a number of bytes may have a unit. The
    /// [module](super) lists the units. The value itself is checked only when the pool is built.
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

/// `name`, or `name:setting=value,setting=value` with the settings that differ from the defaults.
/// Parsing it gives an equal builder.
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
