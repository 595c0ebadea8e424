//! The rule by which one candidate is chosen, and how sure that is.
//!
//! 1. Candidates that refused a request are out, of the recorded traffic or of twice its
//!    connections; so are those over the limit of memory.
//! 2. Of the rest, those are near the fastest whose difference to it nobody would notice. That is
//!    less than 0.1 % of a processor at the recorded rate, or 5 %, which no measurement tells apart
//!    for sure. It has to hold in nine of ten resamplings of the processes.
//! 3. Of those, the one with the least memory is chosen; where memory differs by no more than 5 %
//!    or 64 KiB, the fastest of these.
//! 4. If one of these is no pool, and the difference to the choice would not be noticed, no pool is
//!    the choice. The best pool then saves less than 0.1 % of a processor, and no memory.

use serde::Serialize;

use crate::measure::statistics::quantile;

/// Times up to this many times the shortest count as equal.
const CLOSE: f64 = 1.05;
/// The share of a processor that nobody would notice.
pub(crate) const NOTICED: f64 = 0.001;
/// In this share of the resamplings.
const CERTAIN: f64 = 0.9;
/// Memory within this much counts as equal.
const EQUAL_MEMORY: f64 = 1.05;
const EQUAL_BYTES: u64 = 64 << 10;
/// How often the processes are drawn again.
const RESAMPLINGS: usize = 1000;

/// What time and memory are worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Prices {
    /// The most memory that a candidate may take, in bytes.
    pub(crate) memory_limit: Option<u64>,
    /// Requests per second in the recording.
    pub(crate) rate: f64,
}

impl Prices {
    /// Returns what `nanos` for each request are of a processor, at the recorded rate.
    pub(crate) fn share(&self, nanos: f64) -> f64 {
        nanos * self.rate / 1e9
    }

    /// Returns the time that nobody would tell from `nanos`.
    pub(crate) fn unnoticed(&self, nanos: f64) -> f64 {
        (nanos * CLOSE).max(nanos + NOTICED * 1e9 / self.rate.max(1e-9))
    }

    /// Returns whether so much memory is within the limit.
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        self.memory_limit.is_none_or(|limit| bytes <= limit)
    }
}

/// Returns the number of bytes that counts as no more than `bytes`.
fn equal_memory(bytes: u64) -> u64 {
    ((bytes as f64 * EQUAL_MEMORY) as u64).max(bytes + EQUAL_BYTES)
}

/// A candidate that can be chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entrant {
    /// Times per request by process. All entrants have as many, and those of one process belong
    /// together.
    pub(crate) times: Vec<f64>,
    /// Memory at its peak.
    pub(crate) bytes: u64,
    /// Whether it served all requests, those of twice the connections too.
    pub(crate) serves_all: bool,
    /// Whether it is no pool.
    pub(crate) is_control: bool,
}

/// What is chosen. All are numbers of entrants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Choice {
    /// The first choice.
    pub(crate) pick: usize,
    /// Whether that is no pool.
    pub(crate) no_pool: bool,
    /// Which was fastest of those that serve all.
    pub(crate) fastest: usize,
    /// Those near the fastest by the rule.
    pub(crate) near: Vec<usize>,
    /// In what share of the resamplings the first choice is near the fastest.
    pub(crate) sure: f64,
}

impl Choice {
    /// Gives everybody another number.
    pub(crate) fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        for place in [&mut self.pick, &mut self.fastest].into_iter().chain(&mut self.near) {
            *place = number(*place);
        }
    }
}

/// Medians of each entrant, and again of each resampling.
struct Resampled {
    medians: Vec<f64>,
    draws: Vec<Vec<f64>>,
}

/// Resamples the times. The draws are the same for all entrants, and in each run of the program.
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
    /// Returns in what share of the resamplings something holds.
    fn share(&self, holds: impl Fn(&[f64]) -> bool) -> f64 {
        self.draws.iter().filter(|draw| holds(draw)).count() as f64 / self.draws.len().max(1) as f64
    }

    /// Returns the fastest of these.
    fn fastest(&self, of: &[usize]) -> Option<usize> {
        of.iter().copied().min_by(|one, other| self.medians[*one].total_cmp(&self.medians[*other]))
    }

    /// Returns which of these is the choice, and which are near the fastest.
    fn pick(&self, entrants: &[Entrant], of: &[usize], prices: &Prices) -> Option<(usize, Vec<usize>)> {
        let fastest = self.fastest(of)?;
        let is_near = |one: &usize| {
            *one == fastest || self.share(|draw| draw[*one] <= prices.unnoticed(draw[fastest])) >= CERTAIN
        };
        let near: Vec<usize> = of.iter().copied().filter(is_near).collect();
        let limit = equal_memory(near.iter().map(|one| entrants[*one].bytes).min()?);
        let small: Vec<usize> = near.iter().copied().filter(|one| entrants[*one].bytes <= limit).collect();
        let pick = self.fastest(&small)?;
        // No pool, if the best one saves nothing that anybody would notice.
        let as_well = |one: &usize| {
            entrants[*one].is_control
                && self.share(|draw| draw[*one] <= prices.unnoticed(draw[pick])) >= CERTAIN
        };
        let controls: Vec<usize> = small.into_iter().filter(as_well).collect();
        Some((self.fastest(&controls).unwrap_or(pick), near))
    }
}

/// Chooses an entrant; returns `None` where none serves all within the limit of memory, or none was
/// timed.
pub(crate) fn choose(entrants: &[Entrant], prices: &Prices) -> Option<Choice> {
    let resampled = resample(entrants);
    let eligible: Vec<usize> = (0..entrants.len())
        .filter(|one| entrants[*one].serves_all && prices.allows(entrants[*one].bytes))
        .filter(|one| resampled.medians[*one].is_finite())
        .collect();
    let fastest = resampled.fastest(&eligible)?;
    let (pick, near) = resampled.pick(entrants, &eligible, prices)?;
    let within = |draw: &[f64]| {
        let best = eligible.iter().map(|one| draw[*one]).fold(f64::INFINITY, f64::min);
        draw[pick] <= prices.unnoticed(best)
    };
    Some(Choice { pick, no_pool: entrants[pick].is_control, fastest, near, sure: resampled.share(within) })
}

/// Returns the trade-off between time and memory: of pairs of both, the numbers of those that no
/// other one is better in without being worse in the other, fastest first.
pub(crate) fn front(costs: &[(f64, u64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).filter(|one| costs[*one].0.is_finite()).collect();
    order.sort_by(|one, other| {
        costs[*one].0.total_cmp(&costs[*other].0).then(costs[*one].1.cmp(&costs[*other].1))
    });
    let mut least = u64::MAX;
    order.retain(|one| {
        let is_less = costs[*one].1 < least;
        least = least.min(costs[*one].1);
        is_less
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a candidate that takes about so long, by processes that all are slow or fast in
    /// together, and a wobble of its own.
    fn entrant(nanos: f64, wobble: f64, bytes: u64) -> Entrant {
        let mut random = fastrand::Rng::with_seed((nanos * 1000.0) as u64 + bytes);
        let time = |process| {
            let together = 1.0 + f64::from(process % 4) / 10.0;
            nanos * together * (1.0 + wobble * (random.f64() - 0.5))
        };
        Entrant { times: (0..11).map(time).collect(), bytes, serves_all: true, is_control: false }
    }

    fn control(nanos: f64, bytes: u64) -> Entrant {
        Entrant { is_control: true, ..entrant(nanos, 0.01, bytes) }
    }

    /// A program that asks so often that each nanosecond counts.
    const BUSY: Prices = Prices { memory_limit: None, rate: 1e9 };
    /// The proxy in front of nginx.
    const NGINX: Prices = Prices { memory_limit: None, rate: 3372.0 };
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn a_candidate_that_refuses_is_out() {
        let mut small = entrant(10.0, 0.01, MIB);
        small.serves_all = false;
        let entrants = [small.clone(), entrant(50.0, 0.01, 4 * MIB), entrant(90.0, 0.01, MIB)];
        let choice = choose(&entrants, &BUSY).unwrap();
        assert_eq!((choice.pick, choice.fastest, choice.near), (1, 1, vec![1]));
        assert_eq!(choose(&[small], &BUSY), None);
        assert_eq!(choose(&[], &BUSY), None);
    }

    #[test]
    fn of_the_fast_the_one_with_the_least_memory() {
        let entrants = [
            entrant(50.0, 0.01, 8 * MIB),
            entrant(51.0, 0.01, 2 * MIB),
            entrant(51.5, 0.01, MIB),
            entrant(60.0, 0.01, MIB / 2),
        ];
        let choice = choose(&entrants, &BUSY).unwrap();
        assert_eq!((choice.pick, choice.fastest), (2, 0));
        assert_eq!(choice.near, [0, 1, 2], "the last is too slow, little as it takes");
        assert!(choice.sure > 0.99, "{}", choice.sure);
    }

    /// The figures of the shipped trace: 43 ns are 0.015 % of a processor there.
    #[test]
    fn time_that_nobody_would_notice_is_not_paid_for() {
        let entrants = [
            entrant(103.0, 0.01, 92774 * KIB),
            entrant(146.0, 0.01, 14643 * KIB),
            control(938.0, 15258 * KIB),
        ];
        let pick = |prices: Prices| choose(&entrants, &prices).map(|choice| choice.pick);
        assert_eq!(pick(NGINX), Some(1));
        assert_eq!(pick(Prices { rate: 1e8, ..NGINX }), Some(0), "each nanosecond is a tenth of a processor");
        assert_eq!(pick(Prices { memory_limit: Some(16 * MIB), rate: 1e8 }), Some(1));
        assert_eq!(pick(Prices { memory_limit: Some(MIB), ..NGINX }), None);
        assert!((NGINX.share(43.0) - 0.000_145).abs() < 1e-5);
    }

    #[test]
    fn no_pool_where_no_pool_saves_anything() {
        let entrants = [entrant(20.0, 0.01, 4 * MIB), control(300.0, 4 * MIB), control(400.0, 4 * MIB)];
        let rare = Prices { rate: 100.0, ..NGINX };
        let choice = choose(&entrants, &rare).unwrap();
        assert_eq!((choice.pick, choice.no_pool), (1, true));
        assert_eq!(choose(&entrants, &BUSY).map(|choice| choice.no_pool), Some(false));
        // Half of the memory is worth a pool.
        let saving = [entrant(20.0, 0.01, 2 * MIB), control(20.0, 4 * MIB)];
        assert_eq!(choose(&saving, &rare).map(|choice| choice.pick), Some(0));
        let little = [entrant(20.0, 0.01, 4 * MIB - 60 * KIB), control(300.0, 4 * MIB)];
        assert_eq!(choose(&little, &rare).map(|choice| choice.no_pool), Some(true));
    }

    #[test]
    fn of_those_with_equal_memory_the_fastest() {
        let entrants = [entrant(50.0, 0.001, 8 * MIB), entrant(51.0, 0.001, 8 * MIB - 100_000)];
        let choice = choose(&entrants, &BUSY).unwrap();
        assert_eq!((choice.pick, choice.near), (0, vec![0, 1]));
    }

    #[test]
    fn noise_makes_it_unsure() {
        let entrants = [entrant(50.0, 0.6, MIB), entrant(50.2, 0.6, MIB)];
        let choice = choose(&entrants, &BUSY).unwrap();
        assert!(choice.sure < 0.99, "{choice:?}");
        let clear = choose(&[entrant(50.0, 0.6, MIB), entrant(500.0, 0.6, MIB)], &BUSY).unwrap();
        assert_eq!((clear.pick, clear.sure), (0, 1.0));
    }

    #[test]
    fn the_front_is_what_nothing_beats_in_both() {
        let costs = [(50.0, 8), (60.0, 4), (55.0, 9), (60.0, 5), (f64::NAN, 1), (90.0, 4), (95.0, 2)];
        assert_eq!(front(&costs), [0, 1, 6]);
    }
}
