//! `replay`: the requests of a recorded program, in the order in which they came, by one thread.
//!
//! Traces lie in `benches/traces/*.buftrace`. A buffer's first byte is written when it is acquired;
//! what the program did with it is not replayed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use buftrace::{EventKind, Trace};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
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

/// One step of the replay. Places are small numbers that are used again, so that the replay itself
/// stays in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Acquire { place: u32, bytes: u32 },
    Release { place: u32 },
}

/// A trace, ready to be replayed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Script {
    steps: Vec<Step>,
    acquires: u64,
    most_live: usize,
    peak_bytes: usize,
    largest: usize,
}

impl Script {
    /// Gives each buffer a place, leaves out what cannot be replayed (empty buffers, those of 4 GiB
    /// and more), and releases at the end what the program still held.
    fn new(events: impl IntoIterator<Item = EventKind>) -> Self {
        let mut script = Self::default();
        let mut live: HashMap<u32, (u32, u32)> = HashMap::new();
        let mut vacant: Vec<u32> = Vec::new();
        let mut bytes_out = 0;
        for event in events {
            match event {
                EventKind::Acquire { bytes: 0, .. } => {}
                EventKind::Acquire { id, bytes } => {
                    let Ok(bytes) = u32::try_from(bytes) else { continue };
                    let place = vacant.pop().unwrap_or(script.most_live as u32);
                    live.insert(id, (place, bytes));
                    bytes_out += bytes as usize;
                    script.steps.push(Step::Acquire { place, bytes });
                    script.acquires += 1;
                    script.most_live = script.most_live.max(live.len());
                    script.peak_bytes = script.peak_bytes.max(bytes_out);
                    script.largest = script.largest.max(bytes as usize);
                }
                EventKind::Release { id } => {
                    if let Some((place, bytes)) = live.remove(&id) {
                        vacant.push(place);
                        bytes_out -= bytes as usize;
                        script.steps.push(Step::Release { place });
                    }
                }
            }
        }
        let mut left: Vec<u32> = live.into_values().map(|(place, _)| place).collect();
        left.sort_unstable();
        script.steps.extend(left.into_iter().map(|place| Step::Release { place }));
        script
    }
}

impl Script {
    /// The bytes of the first requests.
    fn first_sizes(&self) -> Vec<usize> {
        const SIZES: usize = 4096;
        let bytes = |step: &Step| match step {
            Step::Acquire { bytes, .. } => Some(*bytes as usize),
            Step::Release { .. } => None,
        };
        self.steps.iter().filter_map(bytes).take(SIZES).collect()
    }
}

struct Replay<P: Pool> {
    pool: P,
    plan: Plan,
    script: Script,
    live: Vec<Option<P::Buf>>,
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let Case::Replay { trace } = case else { return Err(not_mine(case)) };
    let path = folder().join(trace).with_extension(EXTENSION);
    make::<P>(load(&path)?, settings)
}

fn make<P: Pool>(events: Vec<EventKind>, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let script = Script::new(events);
    if script.acquires == 0 {
        return Err("the trace asks for nothing".into());
    }
    let plan = Plan::mixed(script.most_live, script.largest, script.peak_bytes).with(settings);
    let live = check::empty(script.most_live);
    Ok(Box::new(Replay { pool: P::build(&plan)?, plan, script, live }))
}

/// Reads a trace.
fn load(path: &Path) -> Result<Vec<EventKind>, Unsupported> {
    let cannot = |error: &dyn core::fmt::Display| format!("cannot read {}: {error}", path.display());
    let file = fs::read(path).map_err(|error| cannot(&error))?;
    let trace = Trace::decode(&file).map_err(|error| cannot(&error))?;
    Ok(trace.events().iter().map(|event| event.kind).collect())
}

impl<P: Pool> Cell for Replay<P> {
    fn check(&mut self) -> Result<(), String> {
        let sizes = self.script.first_sizes();
        check::pool(&mut self.pool, &self.plan, &|index| sizes[index % sizes.len()])
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            for step in &self.script.steps {
                match *step {
                    Step::Acquire { place, bytes } => {
                        let mut buf = self.pool.acquire(bytes as usize);
                        touch(&mut buf);
                        self.live[place as usize] = Some(buf);
                    }
                    Step::Release { place } => self.live[place as usize] = None,
                }
            }
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.script.acquires
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters;
    use crate::adapters::vec::VecPool;

    /// Traffic of a made-up program: sizes and lifetimes at random, some buffers never released.
    fn traffic(requests: u32) -> Vec<EventKind> {
        let mut random = fastrand::Rng::with_seed(4);
        let mut live = Vec::new();
        let mut events = Vec::new();
        for id in 0..requests {
            events.push(EventKind::Acquire { id, bytes: random.u64(0..5000) });
            live.push(id);
            if random.bool() || live.len() > 30 {
                events.push(EventKind::Release { id: live.swap_remove(random.usize(..live.len())) });
            }
        }
        events
    }

    #[test]
    fn a_script_is_balanced_and_reuses_places() {
        let script = Script::new(traffic(1000));
        let mut live = vec![None; script.most_live];
        let (mut bytes_out, mut peak) = (0, 0);
        for step in &script.steps {
            match *step {
                Step::Acquire { place, bytes } => {
                    assert_eq!(live[place as usize].replace(bytes), None, "place {place} is taken");
                    bytes_out += bytes as usize;
                }
                Step::Release { place } => {
                    bytes_out -= live[place as usize].take().expect("released once") as usize;
                }
            }
            peak = peak.max(bytes_out);
        }
        assert_eq!(bytes_out, 0);
        assert_eq!(peak, script.peak_bytes);
        assert!((20..=31).contains(&script.most_live), "{} live", script.most_live);
    }

    #[test]
    fn what_cannot_be_replayed_is_left_out() {
        let events = [EventKind::Release { id: 9 }, EventKind::Acquire { id: 1, bytes: 0 }];
        assert_eq!(Script::new(events), Script::default());
        assert!(make::<VecPool>(events.into(), Settings::Planned).is_err());
    }

    #[test]
    fn a_trace_is_replayed_rightly() {
        let mut cell = make::<adapters::slot::SlotBuffers>(traffic(2000), Settings::Planned)
            .unwrap_or_else(|_| panic!("slot"));
        assert_eq!(cell.check(), Ok(()));
        assert!(cell.run(3) > Duration::ZERO);
    }
}
