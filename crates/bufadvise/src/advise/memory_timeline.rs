//! Memory over time: of the program as it is now, and with the choice.

use serde::Serialize;

use super::candidate::Candidate;
use super::replay_exact::looks;
use super::tournament::Outcome;
use super::traffic::Traffic;

/// Memory over time, as numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MemoryTimeline {
    /// When memory was looked at, in seconds since the recording began.
    pub(crate) seconds: Vec<f64>,
    /// Bytes of the buffers that were out then.
    pub(crate) out: Vec<u64>,
    /// What the buffers take without a pool.
    pub(crate) now: Series,
    /// What they take with the choice. Nothing where that is no pool.
    pub(crate) choice: Option<Series>,
}

/// Memory of one candidate over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Series {
    /// A strategy with its settings; `vec` and `heap` are no pools.
    pub(crate) settings: Candidate,
    /// Resident bytes, or what the pools say where the system does not.
    pub(crate) bytes: Vec<u64>,
}

impl MemoryTimeline {
    /// Measures the memory of the candidates with the numbers `now` and `choice` in a replay of the
    /// traffic.
    pub(crate) fn of(traffic: &Traffic, outcome: &Outcome, now: usize, choice: usize) -> Self {
        let series = |index: usize| Series {
            settings: outcome.entries[index].candidate,
            bytes: outcome.memory[index].clone(),
        };
        let (seconds, out) = out(traffic);
        let is_pool = !outcome.entries[choice].candidate.is_control();
        Self { seconds, out, now: series(now), choice: is_pool.then(|| series(choice)) }
    }

    /// Returns the mean of a series of values over the whole time, each of which holds until the
    /// next.
    pub(crate) fn mean(&self, values: &[u64]) -> u64 {
        let whole = self.seconds.last().zip(self.seconds.first()).map_or(0.0, |(last, first)| last - first);
        if whole <= 0.0 {
            return values.last().copied().unwrap_or(0);
        }
        let steps = self.seconds.windows(2).zip(values);
        let sum: f64 = steps.map(|(times, value)| (times[1] - times[0]) * *value as f64).sum();
        (sum / whole).round() as u64
    }
}

/// Returns when memory is looked at, and the bytes that are out then.
fn out(traffic: &Traffic) -> (Vec<f64>, Vec<u64>) {
    let second = |at: usize| traffic.at_ns.get(at).map_or(0.0, |at_ns| *at_ns as f64 / 1e9);
    let (looks, out) = (looks(traffic), traffic.bytes_out().collect::<Vec<_>>());
    let seconds = [0].iter().chain(&looks).map(|at| second(*at)).collect();
    let bytes = [0].into_iter().chain(looks.iter().map(|at| out[*at])).collect();
    (seconds, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::trace;
    use super::*;

    #[test]
    fn what_is_out_follows_the_events() {
        // Too short for looks at equal distances: one when the most is out, one at the end.
        let events = [(0, 0, Some(10)), (0, 1, Some(30)), (0, 0, None), (0, 1, None)];
        let traffic = Traffic::new(&trace(&events));
        let (seconds, bytes) = out(&traffic);
        assert_eq!(bytes, [0, 40, 0]);
        assert_eq!(seconds, [0.0, 1e-9, 3e-9]);
        // What the program never released is out to the end of the recording.
        let traffic = Traffic::new(&trace(&events[..3]));
        assert_eq!((traffic.at_ns.last(), traffic.at_ns.len()), (Some(&2), 4));
    }

    #[test]
    fn a_mean_is_over_the_time_and_not_over_the_looks() {
        let series = |bytes: &[u64]| Series { settings: Candidate::Vec, bytes: bytes.to_vec() };
        let mut memory = MemoryTimeline {
            seconds: vec![0.0, 1.0, 10.0],
            out: vec![0; 3],
            now: series(&[0, 100, 700]),
            choice: None,
        };
        assert_eq!(memory.mean(&memory.now.bytes), 90);
        // All at one moment.
        memory.seconds = vec![1.0; 3];
        assert_eq!(memory.mean(&memory.now.bytes), 700);
    }
}
