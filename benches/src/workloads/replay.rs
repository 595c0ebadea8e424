//! `replay`: the requests of a recorded program, in the order in which they came, by one thread.
//!
//! Traces lie in `benches/traces/*.buftrace`. A buffer's first byte is written when it is acquired;
//! what the program did with it is not replayed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use buftrace::{EventKind, Trace};

use super::script::{self, Script, Step};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Pool;

const EXTENSION: &str = "buftrace";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces")
}

pub(super) fn cases() -> Vec<Case> {
    let mut traces: Vec<String> = fs::read_dir(folder())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    traces.sort();
    traces.into_iter().map(|trace| Case::Replay { trace }).collect()
}

/// Gives each buffer a place, leaves out what cannot be replayed (empty buffers, those of 4 GiB and
/// more), and releases at the end what the program still held.
fn script(events: impl IntoIterator<Item = EventKind>) -> Script {
    let mut steps = Vec::new();
    let (mut live, mut vacant, mut places) = (HashMap::new(), Vec::new(), 0);
    for event in events {
        match event {
            EventKind::Acquire { id, bytes } => {
                let Some(bytes) = u32::try_from(bytes).ok().filter(|&bytes| bytes > 0) else { continue };
                let place = vacant.pop().unwrap_or_else(|| {
                    places += 1;
                    places - 1
                });
                live.insert(id, place);
                steps.push(Step { place, bytes });
            }
            EventKind::Release { id } => {
                if let Some(place) = live.remove(&id) {
                    vacant.push(place);
                    steps.push(Step { place, bytes: 0 });
                }
            }
        }
    }
    let mut left: Vec<u32> = live.into_values().collect();
    left.sort_unstable();
    steps.extend(left.into_iter().map(|place| Step { place, bytes: 0 }));
    Script::new(steps)
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let Case::Replay { trace } = case else { return Err(super::not_mine(case)) };
    let path = folder().join(trace).with_extension(EXTENSION);
    let cannot = |error: &dyn core::fmt::Display| format!("cannot read {}: {error}", path.display());
    let file = fs::read(&path).map_err(|error| cannot(&error))?;
    let trace = Trace::decode(&file).map_err(|error| cannot(&error))?;
    let script = script(trace.events().iter().map(|event| event.kind));
    if script.acquires == 0 {
        return Err("the trace asks for nothing".into());
    }
    let plan = script.plan();
    script::cell::<P>(script, plan, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reuses_places_and_releases_everything() {
        let acquire = |id, bytes| EventKind::Acquire { id, bytes };
        let events = [
            EventKind::Release { id: 9 },
            acquire(1, 100),
            acquire(2, 0),
            acquire(3, 50),
            EventKind::Release { id: 1 },
            acquire(4, 30),
            acquire(5, 1 << 40),
        ];
        let steps = [(0, 100), (1, 50), (0, 0), (0, 30), (0, 0), (1, 0)];
        assert_eq!(script(events).steps, steps.map(|(place, bytes)| Step { place, bytes }));
        assert_eq!(script([acquire(1, 0)]), Script::default());
    }
}
