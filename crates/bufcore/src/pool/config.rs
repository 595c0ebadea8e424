//! The checks of settings that builders share.

use crate::ConfigError;

/// Checks a setting of a builder: at least 1, and at most `limit`.
///
/// # Errors
///
/// [`ConfigError::Zero`] and [`ConfigError::TooLarge`].
///
/// ```
/// use bufcore::ConfigError;
/// use bufcore::author::check_setting;
///
/// assert_eq!(check_setting("slots", 8, 1000), Ok(()));
/// assert_eq!(check_setting("slots", 0, 1000), Err(ConfigError::Zero { setting: "slots" }));
/// let large = check_setting("slots", 2000, 1000).unwrap_err();
/// assert_eq!(large.to_string(), "slots of 2000 is over the limit of 1000");
/// ```
pub const fn check_setting(setting: &'static str, requested: usize, limit: usize) -> Result<(), ConfigError> {
    match requested {
        0 => Err(ConfigError::Zero { setting }),
        _ if requested > limit => Err(ConfigError::TooLarge { setting, requested, limit }),
        _ => Ok(()),
    }
}

/// Checks an alignment setting of a builder: a power of two of at most `limit` bytes.
///
/// # Errors
///
/// [`ConfigError::BadAlignment`] for a number that is no power of two. [`ConfigError::TooLarge`]
/// for a larger one, with the largest power of two that is allowed.
///
/// ```
/// use bufcore::ConfigError;
/// use bufcore::author::check_alignment;
///
/// assert_eq!(check_alignment(4096, 5000), Ok(()));
/// assert_eq!(check_alignment(48, 5000), Err(ConfigError::BadAlignment { alignment: 48 }));
/// let large = check_alignment(8192, 5000).unwrap_err();
/// assert_eq!(large.to_string(), "alignment of 8192 is over the limit of 4096");
/// ```
pub const fn check_alignment(alignment: usize, limit: usize) -> Result<(), ConfigError> {
    if !alignment.is_power_of_two() {
        return Err(ConfigError::BadAlignment { alignment });
    }
    check_setting("alignment", alignment, 1 << limit.ilog2())
}
