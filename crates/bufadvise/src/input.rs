//! The file that a command reads: the trace of a pool's buffers, or the recording of a heap.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use buftrace::{Ending, Fault, Profile, Trace, format};

use crate::number::memory;
use crate::print;

/// Objects and reallocations of a heap that are read. What comes behind them is left out, which is
/// said.
const MOST_OBJECTS: usize = 1 << 18;

/// What is in the file.
pub(crate) enum Input {
    Trace(Trace),
    Heap(Profile),
}

/// Reads the file.
///
/// # Errors
///
/// When there is no such file, or it is of neither kind.
pub(crate) fn read(path: &Path) -> Result<Input> {
    let file = bytes(path).with_context(|| format!("cannot read {}", path.display()))?;
    let decoded = match Trace::decode(&file) {
        Ok(trace) => Ok(Input::Trace(trace)),
        // The recording of a heap is the next version of the same format.
        Err(error) if matches!(error.fault, Fault::UnknownVersion { .. }) => {
            Profile::decode_first(&file, MOST_OBJECTS).map(Input::Heap)
        }
        Err(error) => Err(error),
    };
    decoded.with_context(|| format!("cannot decode {}", path.display()))
}

/// Reads a file whose first bytes are those of a recording, and the first bytes of another: it may
/// have no end.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    file.by_ref().take(format::MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == format::MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl Input {
    /// Returns whether nothing was requested.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Trace(trace) => trace.events().is_empty(),
            Self::Heap(heap) => heap.objects().is_empty(),
        }
    }

    /// Says what may be behind few requests.
    pub(crate) fn why_few(&self) -> String {
        let not_recorded = match self {
            Self::Heap(heap) if heap.ending() == Ending::Limit => {
                "The file has reached its limit, which `limit=1GiB` sets. ".into()
            }
            Self::Heap(heap) if heap.info().min_bytes > 1 => format!(
                "Requests of less than {} are recorded with --settings exact,min=1. ",
                memory(heap.info().min_bytes)
            ),
            _ => String::new(),
        };
        not_recorded
            + "Requests to an allocator of its own, and those of programs that it starts, are not recorded."
    }

    /// Says how much is in it, how it ends, and what is not in it.
    pub(crate) fn ending(&self) -> String {
        match self {
            Self::Trace(trace) => print::count(trace.events().len() as u64, "event"),
            Self::Heap(heap) => {
                let objects = print::count(heap.whole().objects, "object");
                format!("{objects}, {} lost; {}", heap.lost(), ending(heap))
            }
        }
    }
}

/// Says how a heap recording ends, and what is not in it.
pub(crate) fn ending(heap: &Profile) -> String {
    let mut ending = match heap.ending() {
        Ending::Stopped => "complete".to_owned(),
        Ending::Limit => "it stopped at its limit while the program continued".to_owned(),
        Ending::Torn(error) => format!("the end of the file is damaged: {error}"),
        _ => {
            "it has no end: the program was killed, went on in a child or as another program, or the recorder \
              stopped early and said so; its last requests may be missing"
                .to_owned()
        }
    };
    if heap.is_cut() {
        let seconds = heap.duration_ns() as f64 / 1e9;
        let (read, whole) = (heap.objects().len(), heap.whole());
        ending += &format!(
            "; it is large, and only the first {read} of {} objects are read, of {seconds:.1} of {:.1} s",
            whole.objects,
            whole.duration_ns as f64 / 1e9
        );
    }
    let usage = heap.usage();
    if usage.forks > 0 || usage.children_ns > 0 {
        let seconds = usage.children_ns as f64 / 1e9;
        ending += &format!("; its child processes are not recorded ({seconds:.1} s of processor time)");
    }
    ending
}
