//! The errors of this crate: small, `Copy`, with the numbers of the call that failed.

use core::fmt;

/// The reason why a ring could not be made. Everything that was open or mapped by then is closed
/// and unmapped again.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufmirror::{MapError, MirrorRing};
///
/// assert!(matches!(MirrorRing::new(0), Err(MapError::Empty)));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapError {
    /// A ring has at least one byte.
    Empty,
    /// The size cannot be expressed: rounded up to whole pages and taken twice it passes
    /// `isize::MAX`.
    TooLarge {
        /// Bytes asked for.
        requested: usize,
    },
    /// The allocator refused.
    OutOfMemory {
        /// Bytes asked for from the allocator: twice the ring's capacity.
        requested: usize,
    },
    /// The region that was given does not hold the ring's bytes twice.
    RegionTooSmall {
        /// Bytes that the ring needs.
        required: usize,
        /// Bytes that the region has.
        available: usize,
    },
    /// The operating system refused.
    Refused {
        /// The system call that failed.
        call: &'static str,
        /// The operating system's error number, 0 where it gave none.
        errno: i32,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => write!(f, "a ring needs at least one byte"),
            Self::TooLarge { requested } => write!(f, "a ring of {requested} bytes cannot exist"),
            Self::OutOfMemory { requested } => write!(f, "allocator refused {requested} bytes for a ring"),
            Self::RegionTooSmall { required, available } => {
                write!(f, "region too small: {required} bytes required, {available} bytes available")
            }
            Self::Refused { call, errno } => write!(f, "{call} failed with os error {errno}"),
        }
    }
}

impl core::error::Error for MapError {}

/// The system's own error where it was the system that refused; else one of kind `InvalidInput` or
/// `OutOfMemory`.
#[cfg(feature = "std")]
impl From<MapError> for std::io::Error {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Refused { errno, .. } if errno != 0 => Self::from_raw_os_error(errno),
            MapError::Refused { .. } => Self::new(std::io::ErrorKind::Unsupported, error),
            MapError::OutOfMemory { .. } => Self::new(std::io::ErrorKind::OutOfMemory, error),
            _ => Self::new(std::io::ErrorKind::InvalidInput, error),
        }
    }
}

/// A [`get`](crate::MirrorRing::get) of more bytes than the ring holds. Nothing was taken out.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufmirror::MirrorRing;
///
/// let mut ring = MirrorRing::new(4096)?;
/// ring.put(b"abc")?;
/// let error = ring.get(&mut [0; 8]).unwrap_err();
/// assert_eq!((error.requested, error.available), (8, 3));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GetError {
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes that the ring held.
    pub available: usize,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot get {} bytes: {} bytes available", self.requested, self.available)
    }
}

impl core::error::Error for GetError {}
