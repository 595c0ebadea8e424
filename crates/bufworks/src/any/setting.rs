//! Settings as text: `name=value`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

#[cfg(feature = "mmap")]
use bufcore::{HugePages, MapOptions};

use super::variants::NAMES;

/// Why a text is not a strategy with settings. The message contains the valid forms.
///
/// ```
/// use bufworks::any::{AnyBuilder, SettingError};
///
/// let error = "heap:aligment=64".parse::<AnyBuilder>().unwrap_err();
/// assert!(matches!(error, SettingError::UnknownSetting { .. }));
/// println!("{error}"); // names the settings that there are
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// There is no strategy of that name, or its feature is disabled.
    UnknownStrategy {
        /// The given text.
        name: String,
    },
    /// The strategy has no such setting, or its feature is disabled.
    UnknownSetting {
        /// The strategy.
        strategy: &'static str,
        /// The given text.
        setting: String,
        /// The settings of the strategy.
        known: &'static [&'static str],
    },
    /// The value is invalid for the setting.
    BadValue {
        /// The setting.
        setting: String,
        /// The given text; empty if there was none.
        value: String,
        /// A description of the valid values.
        expected: &'static str,
    },
    /// A text contains the setting more than once.
    Repeated {
        /// The setting.
        setting: String,
    },
}

const BYTES: &str = "a number of bytes, such as 65536, 64K or 64KiB (K, M and G are powers of 1024)";
const COUNT: &str = "a whole number, such as 64";
const SMALLER: &str = if usize::BITS < 64 { "at most 4294967295" } else { "at most 18446744073709551615" };
const SWITCH: &str = "`true` or `false`";
#[cfg(feature = "mmap")]
const PAGES: &str =
    "`plain`, or words with `+` between: `advise` or `require` for huge pages, `populate`, `lock`";

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStrategy { name } => {
                write!(f, "unknown strategy `{name}`")?;
                expected_names(f, NAMES)?;
                if name.contains(['=', ',']) {
                    f.write_str("; settings follow a colon, as in `shard:thread_cache=8,max_bytes=256MiB`")?;
                }
                Ok(())
            }
            Self::UnknownSetting { strategy, setting, known } => {
                write!(f, "strategy `{strategy}` has no setting `{setting}`")?;
                expected_names(f, known)?;
                match &**setting {
                    "map_options" if !cfg!(feature = "mmap") => {
                        f.write_str("; the feature `mmap` is disabled")
                    }
                    "wipe" if !cfg!(feature = "wipe") => f.write_str("; the feature `wipe` is disabled"),
                    _ => Ok(()),
                }
            }
            Self::BadValue { setting, value, expected } if value.is_empty() => {
                write!(f, "setting `{setting}` has no value: expected {expected}")
            }
            Self::BadValue { setting, value, expected } => {
                write!(f, "invalid value `{value}` for setting `{setting}`: expected {expected}")
            }
            Self::Repeated { setting } => write!(f, "setting `{setting}` is given twice"),
        }
    }
}

impl core::error::Error for SettingError {}

/// Says which names there are.
fn expected_names(f: &mut fmt::Formatter<'_>, names: &[&str]) -> fmt::Result {
    f.write_str(": expected ")?;
    for (index, name) in names.iter().enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == names.len() => " or ",
            _ => ", ",
        };
        write!(f, "{before}`{name}`")?;
    }
    Ok(())
}

/// One setting that is looked for by its name.
pub(super) struct Setting<'a> {
    pub(super) strategy: &'static str,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl Setting<'_> {
    /// Parses a number of bytes: as it is, or with a unit behind it, whatever the case of its
    /// letters.
    pub(super) fn bytes(&self) -> Result<usize, SettingError> {
        const UNITS: [(&str, u32); 6] =
            [("kib", 10), ("mib", 20), ("gib", 30), ("k", 10), ("m", 20), ("g", 30)];
        let lower = self.value.to_ascii_lowercase();
        let unit = UNITS.iter().find_map(|&(unit, shift)| Some((lower.strip_suffix(unit)?, shift)));
        let (digits, shift) = unit.unwrap_or((&lower, 0));
        let number = self.number(digits.trim_end(), BYTES)?;
        let bytes = 1_usize.checked_shl(shift).and_then(|unit| number.checked_mul(unit));
        bytes.ok_or_else(|| self.bad_value(SMALLER))
    }

    /// Parses a number of other things, which has no unit.
    #[allow(dead_code, reason = "there may be no strategy that has such a setting")]
    pub(super) fn count(&self) -> Result<usize, SettingError> {
        self.number(self.value, COUNT)
    }

    /// Parses `true` or `false`.
    #[allow(dead_code, reason = "there may be no strategy that has such a setting")]
    pub(super) fn switch(&self) -> Result<bool, SettingError> {
        self.value.parse().map_err(|_| self.bad_value(SWITCH))
    }

    /// Parses the options of mappings.
    #[cfg(feature = "mmap")]
    #[allow(dead_code, reason = "there may be no strategy that has such a setting")]
    pub(super) fn pages(&self) -> Result<MapOptions, SettingError> {
        let mut options = MapOptions::new();
        if self.value == "plain" {
            return Ok(options);
        }
        let mut huge_pages = None;
        for word in self.value.split('+') {
            match word.trim() {
                "advise" if huge_pages.is_none() => huge_pages = Some(HugePages::Advise),
                "require" if huge_pages.is_none() => huge_pages = Some(HugePages::Require),
                "populate" => options = options.populate(true),
                "lock" => options = options.lock(true),
                _ => return Err(self.bad_value(PAGES)),
            }
        }
        Ok(options.huge_pages(huge_pages.unwrap_or_default()))
    }

    fn number(&self, digits: &str, expected: &'static str) -> Result<usize, SettingError> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.bad_value(expected));
        }
        // Of digits, only too many are no number.
        digits.parse().map_err(|_| self.bad_value(SMALLER))
    }

    pub(super) fn unknown(&self, known: &'static [&'static str]) -> SettingError {
        SettingError::UnknownSetting { strategy: self.strategy, setting: self.name.to_owned(), known }
    }

    fn bad_value(&self, expected: &'static str) -> SettingError {
        SettingError::BadValue { setting: self.name.to_owned(), value: self.value.to_owned(), expected }
    }
}
