//! The errors of all strategies. Each is small and `Copy` and holds the numbers of the call that
//! failed, in bytes unless a field says otherwise.
//!
//! An error that passes another on prints as that one does and has its source, so that a chain of
//! causes says everything once. One that has something to say for itself says only that, and names
//! the other as its source.

use core::fmt;

/// Why a pool could not serve a request. The failed call leaves the pool unchanged.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{AcquireError, HeapPool};
///
/// let refused = HeapPool::new().acquire(usize::MAX).unwrap_err();
/// assert!(matches!(refused, AcquireError::TooLarge { requested: usize::MAX, .. }));
/// println!("{refused}"); // lower case, with the numbers of the call
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireError {
    /// Waiting does not help: the pool can never serve a request of this size.
    TooLarge {
        /// Requested bytes.
        requested: usize,
        /// The largest request, in bytes, that can ever succeed.
        limit: usize,
    },
    /// The pool cannot serve the request now. It may succeed when buffers are released.
    Exhausted {
        /// Requested bytes.
        requested: usize,
        /// Contiguous bytes that the pool could have served at that moment.
        available: usize,
    },
    /// The operating system or the allocator failed.
    OutOfMemory {
        /// Requested bytes.
        requested: usize,
    },
}

impl fmt::Display for AcquireError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLarge { requested, limit } => {
                write!(f, "request of {requested} bytes is over the pool's limit of {limit} bytes")
            }
            Self::Exhausted { requested, available } => {
                write!(f, "pool is exhausted: {requested} bytes requested, {available} bytes available")
            }
            Self::OutOfMemory { requested } => write!(f, "system refused {requested} bytes"),
        }
    }
}

impl core::error::Error for AcquireError {}

/// A buffer or sink has no room for a write. Nothing was written.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::HeapPool;
///
/// let mut buf = HeapPool::new().acquire(4)?;
/// let full = buf.extend_from_slice(b"hello").unwrap_err();
/// assert_eq!((full.requested, full.available), (5, 4));
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReserveError {
    /// Requested bytes.
    pub requested: usize,
    /// Bytes of available room.
    pub available: usize,
}

impl fmt::Display for ReserveError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room for {} bytes: {} bytes available", self.requested, self.available)
    }
}

impl core::error::Error for ReserveError {}

/// Why memory for a region could not be allocated.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{Region, RegionError};
///
/// let refused = Region::heap(64, 3).unwrap_err();
/// assert_eq!(refused, RegionError::BadAlignment { alignment: 3 }); // no power of two
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegionError {
    /// A region has at least one byte.
    Empty,
    /// The size is too large: rounded up to `alignment` it exceeds `isize::MAX`.
    TooLarge {
        /// Requested bytes.
        requested: usize,
    },
    /// An alignment is a power of two.
    BadAlignment {
        /// The requested alignment, in bytes.
        alignment: usize,
    },
    /// The allocator refused.
    OutOfMemory {
        /// Requested bytes.
        requested: usize,
    },
    /// The operating system returned an error.
    Refused {
        /// The system call that failed.
        call: &'static str,
        /// The operating system's error number, or 0 if there was none.
        errno: i32,
    },
}

impl fmt::Display for RegionError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => write!(f, "a region needs at least one byte"),
            Self::TooLarge { requested } => write!(f, "a region of {requested} bytes cannot exist"),
            Self::BadAlignment { alignment } => write!(f, "alignment {alignment} is not a power of two"),
            Self::OutOfMemory { requested } => write!(f, "allocator refused a region of {requested} bytes"),
            Self::Refused { call, errno } => write!(f, "{call} failed with os error {errno}"),
        }
    }
}

impl core::error::Error for RegionError {}

/// Why a pool could not be built from its settings.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{ConfigError, HeapPool};
///
/// let refused = HeapPool::new().with_alignment(3).unwrap_err();
/// assert_eq!(refused, ConfigError::BadAlignment { alignment: 3 }); // no power of two
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting that must be at least one was zero.
    Zero {
        /// The setting.
        setting: &'static str,
    },
    /// A setting is over the limit of the strategy.
    TooLarge {
        /// The setting.
        setting: &'static str,
        /// The requested value.
        requested: usize,
        /// The largest valid value.
        limit: usize,
    },
    /// With this setting the pool could serve no request.
    TooSmall {
        /// The setting.
        setting: &'static str,
        /// The requested value.
        requested: usize,
        /// The smallest value that works.
        least: usize,
    },
    /// An alignment is a power of two.
    BadAlignment {
        /// The requested alignment, in bytes.
        alignment: usize,
    },
    /// The given region cannot hold the pool's bookkeeping and at least one byte of buffers.
    RegionTooSmall {
        /// The least number of bytes that the pool needs.
        required: usize,
        /// Bytes of the region after aligning its start.
        available: usize,
    },
    /// The memory could not be allocated.
    Region(RegionError),
}

impl fmt::Display for ConfigError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Zero { setting } => write!(f, "{setting} must be at least 1"),
            Self::TooLarge { setting, requested, limit } => {
                write!(f, "{setting} of {requested} is over the limit of {limit}")
            }
            Self::TooSmall { setting, requested, least } => {
                write!(f, "{setting} of {requested} can serve nothing: {least} is the least that works")
            }
            Self::BadAlignment { alignment } => write!(f, "alignment {alignment} is not a power of two"),
            Self::RegionTooSmall { required, available } => {
                write!(f, "region too small: {required} bytes required, {available} bytes available")
            }
            Self::Region(error) => error.fmt(f),
        }
    }
}

// What it has inside prints as itself.
impl core::error::Error for ConfigError {}

impl From<RegionError> for ConfigError {
    #[inline]
    fn from(error: RegionError) -> Self {
        Self::Region(error)
    }
}

/// Unites the errors of this crate, for callers that only pass them on with `?`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{AcquireError, Error, HeapPool, ReserveError};
///
/// fn packet() -> Result<usize, Error> {
///     let mut buf = HeapPool::new().acquire(6)?; // may be an `AcquireError`
///     buf.extend_from_slice(b"packet")?; // may be a `ReserveError`
///     Ok(buf.len())
/// }
/// assert_eq!(packet()?, 6);
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// Building a pool failed.
    Config(ConfigError),
    /// Acquiring a buffer failed.
    Acquire(AcquireError),
    /// Writing into a buffer failed.
    Reserve(ReserveError),
}

impl fmt::Display for Error {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Acquire(error) => error.fmt(f),
            Self::Reserve(error) => error.fmt(f),
        }
    }
}

// What it has inside prints as itself.
impl core::error::Error for Error {}

impl From<ConfigError> for Error {
    #[inline]
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<RegionError> for Error {
    #[inline]
    fn from(error: RegionError) -> Self {
        Self::Config(ConfigError::Region(error))
    }
}

impl From<AcquireError> for Error {
    #[inline]
    fn from(error: AcquireError) -> Self {
        Self::Acquire(error)
    }
}

impl From<ReserveError> for Error {
    #[inline]
    fn from(error: ReserveError) -> Self {
        Self::Reserve(error)
    }
}
