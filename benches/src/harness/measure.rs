//! Timing: calibration, interleaved rounds, quantiles, and the tails of single operations.

use std::time::Duration;

pub use buftrials::run::Scale;

use crate::harness::Cell;
use crate::harness::record::Tail;
use crate::harness::tail::tail_of;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Processes, one after the other, that a row is measured in. Where the system puts stack, heap
    /// and code differs from process to process, and can cost a fast cell several nanoseconds; the
    /// median over some of them is about the engine.
    pub layouts: usize,
    /// Rounds at most, in each process.
    pub rounds: usize,
    /// What one run should take.
    pub run: Duration,
    /// What all rounds of one engine may take in a process, which limits the rounds of slow
    /// cells.
    pub budget: Duration,
    /// Single operations timed for the tail.
    pub samples: usize,
    /// Operations in which heap calls are counted, at least: enough that starting a thread,
    /// where a workload does that, hardly shows.
    pub counted: u64,
    /// How long a cell runs while its memory is measured.
    pub memory: Duration,
}

impl Effort {
    /// Fewest rounds, however slow.
    pub const LEAST_ROUNDS: usize = 3;

    /// What a scale asks for.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        if scale == Scale::Full { Self::FULL } else { Self::QUICK }
    }

    /// For a run of minutes.
    const QUICK: Self = Self {
        layouts: 3,
        rounds: 5,
        run: Duration::from_millis(2),
        budget: Duration::from_millis(60),
        samples: 20_000,
        counted: 5_000,
        memory: Duration::from_millis(5),
    };

    /// For results to keep.
    const FULL: Self = Self {
        layouts: 9,
        rounds: 7,
        run: Duration::from_millis(5),
        budget: Duration::from_millis(170),
        samples: 200_000,
        counted: 20_000,
        memory: Duration::from_millis(20),
    };
}

/// One engine in the rounds.
pub struct Runner<'a> {
    cell: &'a mut dyn Cell,
    iterations: u64,
    /// Nanoseconds per operation, by round.
    pub nanos: Vec<f64>,
    /// What a run took when it was calibrated.
    run: Duration,
}

impl core::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runner").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl<'a> Runner<'a> {
    /// Finds how many iterations take about `run`. Warms up on the way.
    pub fn calibrate(cell: &'a mut dyn Cell, run: Duration) -> Self {
        if let Some(iterations) = cell.fixed_iterations() {
            let run = cell.run(iterations);
            return Self { cell, iterations, nanos: Vec::new(), run };
        }
        const TRIES: usize = 3;
        let mut iterations = 1_u64;
        loop {
            // The least of a few: one run can be late by milliseconds, where threads have to be
            // scheduled, and would then pass for a long one.
            let took = (0..TRIES).map(|_| cell.run(iterations)).min().unwrap_or_default();
            let missing = run.as_secs_f64() / took.as_secs_f64().max(1e-9);
            if missing <= 2.0 {
                let wanted = (iterations as f64 * missing).round().max(1.0);
                let run = took.mul_f64(wanted / iterations as f64);
                return Self { cell, iterations: wanted as u64, nanos: Vec::new(), run };
            }
            iterations = (iterations as f64 * missing.min(50.0)).ceil() as u64;
        }
    }

    /// One run; keeps its time.
    pub fn round(&mut self) {
        let took = self.cell.run(self.iterations);
        self.nanos.push(took.as_secs_f64() * 1e9 / self.operations() as f64);
    }

    /// Operations in a run.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.iterations * self.cell.operations()
    }

    /// What a run is expected to take.
    #[must_use]
    pub fn run(&self) -> Duration {
        self.run
    }

    /// The cell.
    pub fn cell(&mut self) -> &mut dyn Cell {
        self.cell
    }
}

/// How many rounds the effort allows for such runners.
#[must_use]
pub fn rounds(effort: &Effort, runners: &[Runner<'_>]) -> usize {
    let total: Duration = runners.iter().map(Runner::run).sum();
    let budget = effort.budget * runners.len() as u32;
    let affordable = (budget.as_secs_f64() / total.as_secs_f64().max(1e-9)) as usize;
    effort.rounds.min(affordable).max(Effort::LEAST_ROUNDS)
}

/// Times single operations of all engines in turn, a batch each.
pub fn tails(cells: &mut [&mut dyn Cell], samples: usize, mut at: impl FnMut(usize)) -> Vec<Option<Tail>> {
    const BATCH: usize = 2000;
    let mut all: Vec<Vec<u32>> = cells.iter().map(|_| Vec::with_capacity(samples)).collect();
    let mut batch = vec![0; BATCH.min(samples)];
    while all.iter().any(|times| times.len() < samples) {
        let mut any = false;
        for (index, (cell, times)) in cells.iter_mut().zip(&mut all).enumerate() {
            at(index);
            if cell.sample(&mut batch) {
                times.extend(&batch);
                any = true;
            }
        }
        if !any {
            break;
        }
    }
    all.into_iter().map(tail_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes exactly as long as it is told, without a clock.
    struct Fake {
        nanos: u64,
        sampled: usize,
    }

    impl Cell for Fake {
        fn check(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn run(&mut self, iterations: u64) -> Duration {
            Duration::from_nanos(self.nanos * iterations)
        }
        fn operations(&self) -> u64 {
            10
        }
        fn sample(&mut self, nanos: &mut [u32]) -> bool {
            nanos.iter_mut().enumerate().for_each(|(index, nanos)| *nanos = index as u32);
            self.sampled += nanos.len();
            true
        }
    }

    #[test]
    fn calibration_hits_the_wanted_time() {
        for nanos in [1, 50, 7_000, 40_000_000] {
            let mut fake = Fake { nanos, sampled: 0 };
            let mut runner = Runner::calibrate(&mut fake, Duration::from_millis(3));
            let run = runner.run().as_secs_f64();
            assert!(nanos > 3_000_000 || (0.0029..0.0031).contains(&run), "{nanos}: {run}");
            runner.round();
            assert_eq!(runner.nanos, [nanos as f64 / 10.0]);
        }
    }

    #[test]
    fn slow_cells_get_fewer_rounds() {
        let effort = Effort::QUICK;
        let mut fast = Fake { nanos: 10, sampled: 0 };
        let runner = Runner::calibrate(&mut fast, effort.run);
        assert_eq!(rounds(&effort, &[runner]), effort.rounds);
        let mut slow = Fake { nanos: 1_000_000_000, sampled: 0 };
        let runner = Runner::calibrate(&mut slow, effort.run);
        assert_eq!(rounds(&effort, &[runner]), Effort::LEAST_ROUNDS);
    }

    #[test]
    fn tails_are_sorted_out() {
        let mut fake = Fake { nanos: 1, sampled: 0 };
        let tail = tails(&mut [&mut fake], 4000, |_| {}).remove(0).unwrap();
        assert_eq!((tail.p50, tail.p99, tail.samples), (999, 1979, 4000));
    }
}
