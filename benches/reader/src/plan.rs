//! Which cells run, and how often.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bufadvise::measure::host::{self, Host};
use buftrials::median;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Measured, Row, Work};
use crate::contestant::Contestant;
use crate::file::Tensors;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The most bytes that are in flight.
const MOST_IN_FLIGHT: usize = 128 * MIB;
/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// All rows.
    Full,
    /// What the marks need.
    Quick,
    /// To see that all of it works.
    Test,
}

impl Scale {
    fn mib(self) -> u64 {
        if self == Self::Test { 8 } else { 500 }
    }

    fn millis(self) -> u64 {
        match self {
            Self::Full => 250,
            Self::Quick => 200,
            Self::Test => 5,
        }
    }

    /// The rows, in the order of the tables.
    #[must_use]
    pub fn rows(self) -> Vec<Row> {
        let row = |work, direct, bytes, depth, threads| Row { work, direct, bytes, depth, threads };
        let mut rows = Vec::new();
        let (sizes, depths, threads): (&[usize], &[usize], &[usize]) = match self {
            Self::Full => (&[4 * KIB, 64 * KIB, MIB, 16 * MIB], &[1, 8, 32], &[1, 2]),
            Self::Quick => (&[4 * KIB, 64 * KIB, MIB], &[8], &[1]),
            Self::Test => (&[4 * KIB, MIB], &[1, 2], &[1, 2]),
        };
        for direct in [true, false] {
            for &threads in threads {
                for &bytes in sizes {
                    for &depth in depths {
                        if bytes * depth * threads <= MOST_IN_FLIGHT {
                            rows.push(row(Work::Read, direct, bytes, depth, threads));
                        }
                    }
                }
            }
            for &threads in threads {
                rows.push(row(Work::Tensors, direct, MIB, if self == Self::Test { 2 } else { 8 }, threads));
            }
        }
        if self != Self::Full {
            rows.push(row(Work::Tensors, false, MIB, 1, 1));
        }
        rows
    }
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
    /// Writes them into `folder`.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        buftrials::results::write(self, folder)
    }

    /// Reads them from `folder`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is not one of these.
    pub fn read(folder: &Path) -> Result<Self> {
        buftrials::results::read(folder)
    }

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
    /// Only these contestants, unless it is empty.
    pub contestants: Vec<Contestant>,
}

impl Plan {
    /// The cells, a row after the other.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for row in self.scale.rows() {
            for contestant in Contestant::ALL {
                if !self.contestants.is_empty() && !self.contestants.contains(&contestant) {
                    continue;
                }
                let memories = contestant.memories().iter().filter(|&&memory| row.has(contestant, memory));
                cells.extend(memories.map(|&memory| Cell { row, contestant, memory }));
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
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mib = self.scale.mib();
        let file = Tensors::at(&folder.join(format!("tensors-{mib}.safetensors")), mib)?;
        file.warm()?;
        let cells = self.cells();
        let bar = ProgressBar::new((cells.len() * self.rounds) as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
            bar.set_style(style);
        }
        let mut results: Vec<(Cell, Vec<Measured>)> = cells.iter().map(|&cell| (cell, Vec::new())).collect();
        for row in self.scale.rows() {
            for round in 0..self.rounds {
                // So that nobody is first each time. The rounds of a row are close to each other.
                let mut turns: Vec<_> = results.iter_mut().filter(|(cell, _)| cell.row == row).collect();
                let by = if turns.is_empty() { 0 } else { round * 3 % turns.len() };
                turns.rotate_left(by);
                for (cell, measured) in turns {
                    bar.set_message(format!("{}: {}", cell.row.title(), cell.name()));
                    let found = apart(*cell, &file, self.scale.millis());
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
    let mut command = Command::new(env::current_exe()?);
    command.arg("cell").args(arguments(cell)).arg("--file").arg(&file.path);
    let output = command.args(["--millis", &millis.to_string()]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn arguments(cell: Cell) -> Vec<String> {
    use clap::ValueEnum;

    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let row = cell.row;
    let mut arguments = vec![
        "--work".to_owned(),
        name(row.work.to_possible_value()),
        "--bytes".to_owned(),
        row.bytes.to_string(),
        "--depth".to_owned(),
        row.depth.to_string(),
        "--threads".to_owned(),
        row.threads.to_string(),
        "--contestant".to_owned(),
        cell.contestant.name(),
        "--memory".to_owned(),
        name(cell.memory.to_possible_value()),
    ];
    if row.direct {
        arguments.push("--direct".to_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_has_a_cell() {
        for scale in [Scale::Full, Scale::Quick, Scale::Test] {
            let plan = Plan { scale, rounds: 1, contestants: Vec::new() };
            let cells = plan.cells();
            for contestant in Contestant::ALL {
                let has = cells.iter().any(|cell| cell.contestant == contestant);
                assert!(
                    has || !cfg!(feature = "peers") && contestant == Contestant::Zeropool,
                    "{contestant:?}"
                );
            }
        }
    }
}
