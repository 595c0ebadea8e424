//! Which runs there are, in which order, and what they measured.

use anyhow::{Context, Result, ensure};
use bufadvise::measure::host::{self, Host};
use buftrials::allocator::Allocator;
use buftrials::median;
use buftrials::run::Scale;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::trial::Measured;
use crate::work::{Amount, Cell, Engine, Part, Work};

/// What runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How much of it.
    pub scale: Scale,
    /// The number of runs of each program.
    pub rounds: usize,
    /// Only these parts; without any, all.
    pub parts: Vec<Part>,
    /// Only these engines; without any, all.
    pub engines: Vec<Engine>,
    /// Only these allocators; without any, those that there are programs for.
    pub allocators: Vec<Allocator>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// Where.
    pub host: Host,
    /// How much was done.
    pub amount: Amount,
    /// The number of runs of each program.
    pub rounds: usize,
    /// The runs, in the order in which they ran.
    pub runs: Vec<(Cell, Measured)>,
}

impl Plan {
    /// The runs of one round.
    fn cells(&self) -> Vec<Cell> {
        fn chosen<T: PartialEq>(chosen: &[T], one: &T) -> bool {
            chosen.is_empty() || chosen.contains(one)
        }
        let mut cells = Vec::new();
        for work in Work::all().filter(|work| chosen(&self.parts, &work.part())) {
            for &allocator in Allocator::value_variants() {
                let engines = Engine::value_variants().iter().copied();
                cells.extend(
                    engines
                        .filter(|one| work.has(*one, allocator) && chosen(&self.engines, one))
                        .filter(|_| chosen(&self.allocators, &allocator))
                        .map(|engine| Cell { work, engine, allocator }),
                );
            }
        }
        cells
    }

    /// Runs all of it, and says on standard error what it is at.
    ///
    /// # Errors
    ///
    /// When a program is missing, a server loses a connection or answers wrongly, or the system does not say what it uses.
    pub fn run(&self) -> Result<Results> {
        let cells = self.cells();
        let total = cells.len() * self.rounds;
        ensure!(total > 0, "nothing to do");
        let (host, amount) = (host::look(), Amount::of(self.scale));
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            for at in 0..cells.len() {
                // So that nobody is first each time.
                let cell = cells[(at + round) % cells.len()];
                let name = format!("{}: {}", cell.work.title(), cell.title());
                let measured = cell.measure(amount).with_context(|| name.clone())?;
                let (peak, kept) = (measured.peak() as u64 >> 20, measured.kept() as u64 >> 20);
                let seconds = measured.used.seconds();
                let done = runs.len() + 1;
                eprintln!(
                    "serve: {done} of {total}: {name}: {seconds:.2} s, peak {peak} MiB, kept {kept} MiB"
                );
                runs.push((cell, measured));
            }
        }
        Ok(Results { host, amount, rounds: self.rounds, runs })
    }
}

impl Results {
    /// The programs of a work that ran, each once.
    #[must_use]
    pub fn cells(&self, work: Work) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (cell, _) in self.runs.iter().filter(|(cell, _)| cell.work == work) {
            if !cells.contains(cell) {
                cells.push(*cell);
            }
        }
        cells
    }

    /// What the runs of a program measured.
    pub fn of(&self, cell: Cell) -> impl Iterator<Item = &Measured> + Clone {
        self.runs.iter().filter(move |(one, _)| *one == cell).map(|(_, measured)| measured)
    }

    /// The median of something over the runs of a program; `None` without any.
    pub fn median(&self, cell: Cell, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        median(self.of(cell).map(figure))
    }
}

/// Results that are made up, for tests of what is read out of them.
#[cfg(test)]
pub(crate) mod fixture {
    use buftrials::system::Usage;

    use super::*;

    /// A program of which each figure is `times` what a good one has.
    pub(crate) fn run(work: Work, engine: Engine, times: f64) -> (Cell, Measured) {
        let mib = |mib: f64| (mib * times) as u64 * (1 << 20);
        let used = Usage { user: times, kernel: times, faults: (100_000.0 * times) as u64 };
        let (peak, after) = (mib(50.0), mib(if matches!(work, Work::Stock(_)) { 20.0 } else { 7.0 }));
        let measured = Measured {
            used,
            peak,
            after,
            asked: 10 << 30,
            messages: 1000,
            closed: after,
            held: 7 << 20,
            ..Measured::default()
        };
        (Cell { work, engine, allocator: Allocator::Glibc }, measured)
    }

    pub(crate) fn results(runs: Vec<(Cell, Measured)>) -> Results {
        Results { host: Host::default(), amount: Amount::of(Scale::Full), rounds: 1, runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_are_in_a_round() {
        let all = Plan {
            scale: Scale::Full,
            rounds: 1,
            parts: Vec::new(),
            engines: Vec::new(),
            allocators: Vec::new(),
        };
        // Of glibc: the services over hyper and tonic. Of two allocators: that over axum, the container, three relays with a codec and one without, six bursts.
        // Of all five: the servers without a pool, and two of them with bounded buffers.
        assert_eq!(all.cells().len(), 2 * 2 + 2 * (3 + 2 + 3 * 4 + 3 + 6 * 3) + 5 * (5 + 2));
        let some = Plan { parts: vec![Part::Relay], engines: vec![Engine::Codec], ..all };
        assert_eq!(some.cells().len(), 2 * 3);
    }
}
