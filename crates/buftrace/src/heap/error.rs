//! Why a recording does not start.

use core::fmt;

use super::output::Stop;
use crate::heap_settings::EXPECTED;

/// Why a heap recording did not start.
///
/// ```
/// let error = buftrace::start_heap_recording("no-such-folder/app.heap", "").unwrap_err();
/// println!("{error}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapError(pub(super) Cause);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Running,
    Setting,
    NoMemory,
    Stopped(Stop),
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Running => write!(f, "a heap recording is already running"),
            Cause::Setting => {
                write!(f, "a setting is not understood: expected some of {EXPECTED}, with commas")
            }
            Cause::NoMemory => write!(f, "no memory for a heap recording"),
            Cause::Stopped(reason) => write!(f, "cannot record the heap: {reason}"),
        }
    }
}

impl core::error::Error for HeapError {}
