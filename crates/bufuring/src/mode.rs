//! How a driver reaches the kernel, and what the system refused it.

use core::fmt;
use std::io;

/// A call that the system refused.
///
/// ```
/// use bufcore::{HugePages, MapOptions};
/// use bufuring::Arena;
///
/// let arena = Arena::mapped(4 << 20, MapOptions::new().huge_pages(HugePages::Require))?;
/// if let Some(refused) = arena.refused() {
///     eprintln!("ordinary pages: {refused}");
/// }
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Refused {
    /// The call.
    pub call: &'static str,
    /// The system's error number.
    pub errno: i32,
}

impl Refused {
    pub(crate) fn new(call: &'static str, error: &io::Error) -> Self {
        Self { call, errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was refused: {}", self.call, io::Error::from_raw_os_error(self.errno))
    }
}

impl core::error::Error for Refused {}

/// How a [`Driver`](crate::Driver) reaches the kernel.
///
/// ```
/// use bufcore::MapOptions;
/// use bufuring::{Arena, Driver, Mode};
///
/// let driver = Driver::new(&Arena::mapped(64 << 10, MapOptions::new())?);
/// match driver.mode() {
///     Mode::Registered => {}
///     other => eprintln!("reads cost more here: {other}"),
/// }
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// By an `io_uring` with a registered arena: operations on its memory are fixed ones.
    Registered,
    /// By an `io_uring` without registered memory: none was given, or the system refused to
    /// register it.
    Plain {
        /// The refusal, if registration was requested.
        refused: Option<Refused>,
    },
    /// By blocking calls, each made when the operation starts.
    Blocking {
        /// The refusal, unless blocking calls were requested.
        refused: Option<Refused>,
    },
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, refused) = match self {
            Self::Registered => ("registered", None),
            Self::Plain { refused } => ("not registered", refused.as_ref()),
            Self::Blocking { refused } => ("blocking calls", refused.as_ref()),
        };
        match refused {
            Some(refused) => write!(f, "{name}: {refused}"),
            None => f.write_str(name),
        }
    }
}
