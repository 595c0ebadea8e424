//! The check of the one setting that all builders have.

use crate::ConfigError;

/// Checks an alignment that a builder was given: a power of two of at most `limit` bytes.
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
    if alignment > limit {
        let limit = 1 << limit.ilog2();
        return Err(ConfigError::TooLarge { setting: "alignment", requested: alignment, limit });
    }
    Ok(())
}
