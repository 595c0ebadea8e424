//! The error of pools that are built in a region that they are given.

use core::fmt;

use crate::{ConfigError, Error, Region};

/// Why a pool could not be built, with the region and fallback that were given.
///
/// `F` is the fallback that was given with the region, if the pool has one.
///
/// ```
/// use bufcore::{BuildInError, ConfigError, Region};
///
/// /// Builds a pool of 1 KiB.
/// fn build_in(region: Region) -> Result<Region, BuildInError> {
///     let (required, available) = (1024, region.len());
///     if available < required {
///         let error = ConfigError::RegionTooSmall { required, available };
///         return Err(BuildInError { error, region, fallback: () });
///     }
///     Ok(region)
/// }
///
/// static mut MEMORY: [u8; 512] = [0; 512];
/// // SAFETY: no other code uses it.
/// let region = Region::from_static(unsafe { &mut *(&raw mut MEMORY) });
/// let refused = build_in(region).unwrap_err();
/// assert_eq!(refused.to_string(), "region too small: 1024 bytes required, 512 bytes available");
/// assert_eq!(refused.region.len(), 512); // it is not lost
/// ```
pub struct BuildInError<F = ()> {
    /// The reason.
    pub error: ConfigError,
    /// The region, unchanged.
    pub region: Region,
    /// The fallback, unchanged.
    pub fallback: F,
}

impl<F> fmt::Debug for BuildInError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildInError")
            .field("error", &self.error)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for BuildInError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

// What it has inside prints as itself.
impl<F> core::error::Error for BuildInError<F> {}

impl<F> From<BuildInError<F>> for ConfigError {
    fn from(refused: BuildInError<F>) -> Self {
        refused.error
    }
}

impl<F> From<BuildInError<F>> for Error {
    fn from(refused: BuildInError<F>) -> Self {
        refused.error.into()
    }
}
