//! The file that a command reads: the trace of a pool's buffers, or the recording of a heap.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use buftrace::{Ending, Fault, Growth, Profile, Trace};

/// A sampled recording may stand for any number of requests: what comes after this number of events
/// is left out.
const MOST_EXPANDED: usize = 1 << 22;

/// What is in the file.
pub(crate) struct Input {
    pub(crate) trace: Trace,
    /// The recording that the trace was made of, if the file has one.
    pub(crate) heap: Option<Profile>,
}

/// Reads the file.
///
/// A recording of a heap becomes a trace with one buffer for each object, of the largest size that
/// it ever had: this is what the program would ask a pool for. Each sampled object is there as
/// often as its weight says.
///
/// # Errors
///
/// When there is no such file, or it is of neither kind.
pub(crate) fn read(path: &Path) -> Result<Input> {
    let file = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let error = match Trace::decode(&file) {
        Ok(trace) => return Ok(Input { trace, heap: None }),
        Err(error) => error,
    };
    let decoded = match error.fault {
        // The recording of a heap is the next version of the same format.
        Fault::UnknownVersion { .. } => Profile::decode(&file),
        _ => Err(error),
    };
    let heap = decoded.with_context(|| format!("cannot decode {}", path.display()))?;
    let trace = heap.expanded_trace(Growth::Largest, MOST_EXPANDED, |_| true);
    Ok(Input { trace, heap: Some(heap) })
}

/// Says how a heap recording ends.
pub(crate) fn ending(heap: &Profile) -> String {
    match heap.ending() {
        Ending::Stopped => "complete".to_owned(),
        Ending::Limit => "it stopped at its limit while the program continued".to_owned(),
        Ending::Torn(error) => format!("the end of the file is damaged: {error}"),
        _ => {
            "it has no end: the program was killed, it started another in its place, or the recorder stopped \
              early and said so; a second or more may be missing"
                .to_owned()
        }
    }
}
