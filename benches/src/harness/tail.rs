//! The tail of single operations' times.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Times of single operations, in nanoseconds, with the clock's own cost in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Half took less.
    pub p50: u32,
    /// One in a hundred took more.
    pub p99: u32,
    /// One in a thousand took more.
    pub p999: u32,
    /// Two readings of the clock with nothing between them: the median.
    pub clock: u32,
    /// Operations.
    pub samples: usize,
}

/// Returns the tail of single operations' times; nothing where there are none.
#[must_use]
pub fn tail_of(mut times: Vec<u32>) -> Option<Tail> {
    if times.is_empty() {
        return None;
    }
    times.sort_unstable();
    let share = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (p50, p99, p999) = (share(0.5), share(0.99), share(0.999));
    Some(Tail { p50, p99, p999, clock: clock(), samples: times.len() })
}

/// Returns the median of two clock readings with nothing between them.
fn clock() -> u32 {
    let mut times: Vec<u32> = (0..1001)
        .map(|_| {
            let start = Instant::now();
            start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX)
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}
