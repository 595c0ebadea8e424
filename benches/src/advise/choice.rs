//! The rule by which one candidate is chosen, and how sure that is.
//!
//! 1. Whoever refused a request of the trace is out.
//! 2. Of the rest, those count as fast that are within 5 % of the fastest, in nine of ten resamplings of the processes.
//! 3. Of those, the one with the least memory is chosen; where memory differs by no more than 5 % or 64 KiB, the fastest of these.

use serde::{Deserialize, Serialize};

use crate::harness::statistics::quantile;

/// Times up to so many times the shortest count as fast.
pub const CLOSE: f64 = 1.05;
/// In so many of the resamplings.
const CERTAIN: f64 = 0.9;
/// Memory within this much counts as equal.
const EQUAL_MEMORY: f64 = 1.05;
const EQUAL_BYTES: u64 = 64 << 10;
/// How often the processes are drawn again.
const RESAMPLINGS: usize = 1000;

/// Who can be chosen.
#[derive(Debug, Clone, Default)]
pub struct Entrant {
    /// Times per request by process. All entrants have as many, and those of one process belong together.
    pub times: Vec<f64>,
    /// Memory at its peak.
    pub bytes: u64,
    /// Whether it served all requests.
    pub serves_all: bool,
}

/// Who is chosen. All are numbers of entrants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The first choice.
    pub pick: usize,
    /// Who was fastest of those that serve all.
    pub fastest: usize,
    /// Who counts as fast.
    pub fast: Vec<usize>,
    /// The next best by the same rule.
    pub runner_up: Option<usize>,
    /// In what share of the resamplings the first choice is within 5 % of the fastest.
    pub sure: f64,
    /// In what share of them it is faster than the runner-up.
    pub beats_runner_up: Option<f64>,
    /// Those of which no difference in time to the first choice could be measured: neither is faster in 95 of 100 resamplings.
    pub as_good: Vec<usize>,
}

impl Choice {
    /// Gives everybody another number.
    pub(crate) fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        let one = [&mut self.pick, &mut self.fastest].into_iter().chain(&mut self.runner_up);
        for place in one.chain(&mut self.fast).chain(&mut self.as_good) {
            *place = number(*place);
        }
    }
}

/// Medians of each entrant, and again of each resampling.
struct Resampled {
    medians: Vec<f64>,
    draws: Vec<Vec<f64>>,
}

/// The draws are the same for all entrants, and in each run of this program.
fn resample(entrants: &[Entrant]) -> Resampled {
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        quantile(&times, 0.5)
    };
    let medians = entrants.iter().map(|entrant| median(entrant.times.clone())).collect();
    let processes = entrants.first().map_or(0, |entrant| entrant.times.len());
    let mut random = fastrand::Rng::with_seed(1);
    let draws = (0..RESAMPLINGS)
        .map(|_| {
            let drawn: Vec<usize> = (0..processes).map(|_| random.usize(..processes)).collect();
            let time =
                |entrant: &Entrant| median(drawn.iter().map(|process| entrant.times[*process]).collect());
            entrants.iter().map(time).collect()
        })
        .collect();
    Resampled { medians, draws }
}

impl Resampled {
    /// In what share of the resamplings something holds.
    fn share(&self, holds: impl Fn(&[f64]) -> bool) -> f64 {
        self.draws.iter().filter(|draw| holds(draw)).count() as f64 / self.draws.len().max(1) as f64
    }

    /// The fastest of these.
    fn fastest(&self, of: &[usize]) -> Option<usize> {
        of.iter().copied().min_by(|one, other| self.medians[*one].total_cmp(&self.medians[*other]))
    }

    /// Who of these counts as fast, and who of those is the choice.
    fn pick(&self, entrants: &[Entrant], of: &[usize]) -> Option<(usize, Vec<usize>)> {
        let fastest = self.fastest(of)?;
        let is_fast = |one: &usize| {
            *one == fastest || self.share(|draw| draw[*one] <= draw[fastest] * CLOSE) >= CERTAIN
        };
        let fast: Vec<usize> = of.iter().copied().filter(is_fast).collect();
        let least = fast.iter().map(|one| entrants[*one].bytes).min()?;
        let limit = ((least as f64 * EQUAL_MEMORY) as u64).max(least + EQUAL_BYTES);
        let small: Vec<usize> = fast.iter().copied().filter(|one| entrants[*one].bytes <= limit).collect();
        Some((self.fastest(&small)?, fast))
    }
}

/// Chooses; nobody where nobody serves all, or nobody was timed.
#[must_use]
pub fn choose(entrants: &[Entrant]) -> Option<Choice> {
    let resampled = resample(entrants);
    let eligible: Vec<usize> = (0..entrants.len())
        .filter(|one| entrants[*one].serves_all && resampled.medians[*one].is_finite())
        .collect();
    let fastest = resampled.fastest(&eligible)?;
    let (pick, fast) = resampled.pick(entrants, &eligible)?;
    let rest: Vec<usize> = eligible.iter().copied().filter(|one| *one != pick).collect();
    let runner_up = resampled.pick(entrants, &rest).map(|(one, _)| one);
    let faster_than = |other: usize| resampled.share(|draw| draw[pick] < draw[other]);
    let undecided = |other: &usize| (0.05..=0.95).contains(&faster_than(*other));
    let within = |draw: &[f64]| {
        let best = eligible.iter().map(|one| draw[*one]).fold(f64::INFINITY, f64::min);
        draw[pick] <= best * CLOSE
    };
    Some(Choice {
        pick,
        fastest,
        fast,
        runner_up,
        sure: resampled.share(within),
        beats_runner_up: runner_up.map(faster_than),
        as_good: rest.iter().copied().filter(undecided).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who takes about so long, by processes that all are slow or fast in together, and a wobble of its own.
    fn entrant(nanos: f64, wobble: f64, bytes: u64) -> Entrant {
        let mut random = fastrand::Rng::with_seed((nanos * 1000.0) as u64 + bytes);
        let time = |process| {
            let together = 1.0 + f64::from(process % 4) / 10.0;
            nanos * together * (1.0 + wobble * (random.f64() - 0.5))
        };
        Entrant { times: (0..11).map(time).collect(), bytes, serves_all: true }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn who_refuses_is_out() {
        let mut small = entrant(10.0, 0.01, MIB);
        small.serves_all = false;
        let entrants = [small.clone(), entrant(50.0, 0.01, 4 * MIB), entrant(90.0, 0.01, MIB)];
        let choice = choose(&entrants).unwrap();
        assert_eq!((choice.pick, choice.fastest, choice.fast), (1, 1, vec![1]));
        assert_eq!(choice.runner_up, Some(2));
        assert_eq!(choose(&[small]), None);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn of_the_fast_the_one_with_the_least_memory() {
        let entrants = [
            entrant(50.0, 0.01, 8 * MIB),
            entrant(51.0, 0.01, 2 * MIB),
            entrant(51.5, 0.01, MIB),
            entrant(60.0, 0.01, MIB / 2),
        ];
        let choice = choose(&entrants).unwrap();
        assert_eq!((choice.pick, choice.fastest), (2, 0));
        assert_eq!(choice.fast, [0, 1, 2], "the last is too slow, little as it takes");
        assert!(choice.sure > 0.99, "{}", choice.sure);
    }

    #[test]
    fn of_those_with_equal_memory_the_fastest() {
        let entrants = [entrant(50.0, 0.001, 8 * MIB), entrant(51.0, 0.001, 8 * MIB - 100_000)];
        let choice = choose(&entrants).unwrap();
        assert_eq!((choice.pick, choice.runner_up), (0, Some(1)));
        assert_eq!(choice.beats_runner_up, Some(1.0));
        assert!(choice.as_good.is_empty());
    }

    #[test]
    fn noise_makes_it_unsure() {
        let entrants = [entrant(50.0, 0.6, MIB), entrant(50.2, 0.6, MIB)];
        let choice = choose(&entrants).unwrap();
        assert_eq!(choice.as_good.len(), 1, "{choice:?}");
        assert!(choice.sure < 0.99, "{choice:?}");
        let clear = choose(&[entrant(50.0, 0.6, MIB), entrant(500.0, 0.6, MIB)]).unwrap();
        assert_eq!((clear.pick, clear.sure), (0, 1.0));
    }
}
