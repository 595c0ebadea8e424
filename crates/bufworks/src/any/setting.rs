//! Settings as text: `name=value`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

/// Why a text is no strategy with settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// There is no strategy of that name, or its feature is off.
    UnknownStrategy {
        /// What was asked for.
        name: String,
    },
    /// The strategy has no such setting, or its feature is off.
    UnknownSetting {
        /// The strategy.
        strategy: &'static str,
        /// What was asked for.
        setting: String,
    },
    /// The setting has no such value.
    BadValue {
        /// The setting.
        setting: String,
        /// What was asked for.
        value: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStrategy { name } => {
                write!(f, "no strategy `{name}` here, but {}", super::AnyBuilder::NAMES.join(", "))
            }
            Self::UnknownSetting { strategy, setting } => {
                write!(f, "strategy `{strategy}` has no setting `{setting}`")
            }
            Self::BadValue { setting, value } => write!(f, "`{value}` is no value of `{setting}`"),
        }
    }
}

impl core::error::Error for SettingError {}

/// One setting that is looked for by its name.
pub(super) struct Setting<'a> {
    pub(super) strategy: &'static str,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl Setting<'_> {
    /// A number, with `KiB`, `MiB` or `GiB` behind it for so many bytes.
    pub(super) fn number(&self) -> Result<usize, SettingError> {
        const UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let unit = UNITS.iter().find_map(|&(unit, shift)| Some((self.value.strip_suffix(unit)?, shift)));
        let (digits, shift) = unit.unwrap_or((self.value, 0));
        let number = digits.trim_end().parse::<usize>().ok();
        number
            .and_then(|number| number.checked_mul(1usize.checked_shl(shift)?))
            .ok_or_else(|| self.bad_value())
    }

    /// `true` or `false`.
    #[cfg_attr(
        not(any(feature = "slot", feature = "wipe")),
        allow(dead_code, reason = "no other has such a setting")
    )]
    pub(super) fn switch(&self) -> Result<bool, SettingError> {
        self.value.parse().map_err(|_| self.bad_value())
    }

    pub(super) fn unknown(&self) -> SettingError {
        SettingError::UnknownSetting { strategy: self.strategy, setting: self.name.to_owned() }
    }

    fn bad_value(&self) -> SettingError {
        SettingError::BadValue { setting: self.name.to_owned(), value: self.value.to_owned() }
    }
}
