//! Which cells run, and how often.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use bufadvise::measure::host::{self, Host};
use buftrials::median;
use buftrials::run::{Scale, answer};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Measured, Row, Work};
use crate::engine::Engine;
use crate::file::Tensors;
use crate::trial::Options;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The most bytes that are in flight.
const MOST_IN_FLIGHT: usize = 128 * MIB;

/// The rows, in the order of the tables.
#[must_use]
pub fn rows(scale: Scale) -> Vec<Row> {
    let row = |work, direct, bytes, depth, threads| Row { work, direct, bytes, depth, threads };
    let mut rows = Vec::new();
    let (sizes, depths, threads): (&[usize], &[usize], &[usize]) = match scale {
        Scale::Full => (&[4 * KIB, 64 * KIB, MIB, 16 * MIB], &[1, 8, 32], &[1, 2]),
        Scale::Quick => (&[4 * KIB, 64 * KIB, MIB], &[8], &[1]),
        Scale::Test => (&[4 * KIB, MIB], &[1, 2], &[1, 2]),
    };
    for direct in [true, false] {
        for &threads in threads {
            for &bytes in sizes {
                let fits = |depth: &usize| bytes * depth * threads <= MOST_IN_FLIGHT;
                let depths = depths.iter().copied().filter(fits);
                rows.extend(depths.map(|depth| row(Work::Read, direct, bytes, depth, threads)));
            }
        }
        let depth = if scale == Scale::Test { 2 } else { 8 };
        rows.extend(threads.iter().map(|&threads| row(Work::Tensors, direct, MIB, depth, threads)));
    }
    if scale != Scale::Full {
        rows.push(row(Work::Tensors, false, MIB, 1, 1));
    }
    rows
}

/// All that was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// Where.
    pub host: Host,
    /// How much.
    pub scale: Scale,
    /// The number of times that each cell ran.
    pub rounds: usize,
    /// Each cell with what it measured, round by round.
    pub cells: Vec<(Cell, Vec<Measured>)>,
}

impl Results {
    /// The rows that something was measured in, in order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (cell, _) in &self.cells {
            if !rows.contains(&cell.row) {
                rows.push(cell.row);
            }
        }
        rows
    }

    /// The median of something over the rounds of a cell.
    #[must_use]
    pub fn median(&self, cell: &Cell, of: impl Fn(&Measured) -> f64) -> Option<f64> {
        let (_, rounds) = self.cells.iter().find(|(other, _)| other == cell)?;
        median(rounds.iter().map(of))
    }

    /// The median, over the rounds, of the ratio of a cell to another, round by round.
    #[must_use]
    pub fn ratio(&self, cell: &Cell, to: &Cell, of: impl Fn(&Measured) -> f64) -> Option<f64> {
        let rounds = |cell: &Cell| self.cells.iter().find(|(other, _)| other == cell).map(|found| &found.1);
        median(rounds(cell)?.iter().zip(rounds(to)?).map(|(one, other)| of(one) / of(other)))
    }
}

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// How much.
    pub scale: Scale,
    /// The number of times that each cell runs.
    pub rounds: usize,
    /// Only these engines, unless it is empty.
    pub engines: Vec<Engine>,
}

impl Plan {
    /// The cells, a row after the other.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for row in rows(self.scale) {
            for &engine in Engine::value_variants() {
                if !self.engines.is_empty() && !self.engines.contains(&engine) {
                    continue;
                }
                let memories = engine.memories().iter().filter(|&&memory| row.has(engine, memory));
                cells.extend(memories.map(|&memory| Cell { row, engine, memory }));
            }
        }
        cells
    }

    /// Runs all of it, over a file in `folder`.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or a cell fails.
    pub fn run(&self, folder: &Path) -> Result<Results> {
        let (mib, millis) = match self.scale {
            Scale::Full => (500, 250),
            Scale::Quick => (500, 200),
            Scale::Test => (8, 5),
        };
        let file = Tensors::at(&folder.join(format!("words-{mib}.bin")), mib << 20)?;
        file.warm()?;
        let cells = self.cells();
        let bar = ProgressBar::new((cells.len() * self.rounds) as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
            bar.set_style(style);
        }
        let mut results: Vec<(Cell, Vec<Measured>)> = cells.iter().map(|&cell| (cell, Vec::new())).collect();
        for row in rows(self.scale) {
            for round in 0..self.rounds {
                // So that nobody is first each time. The rounds of a row are close to each other.
                let mut turns: Vec<_> = results.iter_mut().filter(|(cell, _)| cell.row == row).collect();
                let by = if turns.is_empty() { 0 } else { round * 3 % turns.len() };
                turns.rotate_left(by);
                for (cell, measured) in turns {
                    bar.set_message(format!("{}: {}", cell.row.title(), cell.name()));
                    let found = apart(*cell, &file, millis);
                    measured.push(found.with_context(|| format!("{}: {}", cell.row.title(), cell.name()))?);
                    bar.inc(1);
                }
            }
        }
        bar.finish_and_clear();
        Ok(Results { host: host::look(), scale: self.scale, rounds: self.rounds, cells: results })
    }
}

/// Runs a cell in a process of its own.
fn apart(cell: Cell, file: &Tensors, millis: u64) -> Result<Measured> {
    let options = Options { cell, file: file.path.clone(), file_bytes: file.bytes, millis };
    answer(Command::new(env::current_exe()?).arg("cell").arg(serde_json::to_string(&options)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_cell() {
        for scale in [Scale::Full, Scale::Quick, Scale::Test] {
            let plan = Plan { scale, rounds: 1, engines: Vec::new() };
            let cells = plan.cells();
            for &engine in Engine::value_variants() {
                let has = cells.iter().any(|cell| cell.engine == engine);
                assert!(has || !cfg!(feature = "peers") && engine == Engine::Zeropool, "{engine:?}");
            }
        }
    }
}
