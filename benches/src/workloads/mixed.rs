//! `mixed`: requests of different sizes, of which the newest few are held.

use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::{Case, Sizes};
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Sizes in the mix, four to an octave or two, and none of them round.
const SIZES: [usize; 12] = [64, 100, 256, 500, 1024, 1500, 4096, 6000, 9000, 16384, 40000, 65536];
/// Buffers held at a time.
const HELD: usize = 8;
/// Requests in one iteration.
const REQUESTS: usize = 1024;

pub(super) fn cases() -> Vec<Case> {
    [Sizes::RoundRobin, Sizes::Zipf].into_iter().map(|sizes| Case::Mixed { sizes }).collect()
}

fn requests(sizes: Sizes) -> Vec<usize> {
    match sizes {
        Sizes::RoundRobin => (0..REQUESTS).map(|index| SIZES[index % SIZES.len()]).collect(),
        Sizes::Zipf => {
            // The k-th size has weight 1 / k.
            let total: f64 = (1..=SIZES.len()).map(|rank| 1.0 / rank as f64).sum();
            let mut random = fastrand::Rng::with_seed(2);
            let pick = |random: &mut fastrand::Rng| {
                let mut rest = random.f64() * total;
                for (index, &size) in SIZES.iter().enumerate() {
                    rest -= 1.0 / (index + 1) as f64;
                    if rest <= 0.0 {
                        return size;
                    }
                }
                SIZES[SIZES.len() - 1]
            };
            (0..REQUESTS).map(|_| pick(&mut random)).collect()
        }
    }
}

/// The most bytes that any `HELD` requests in a row, around the end, ask for.
fn peak_bytes(requests: &[usize]) -> usize {
    let window = |start: usize| (0..HELD).map(|index| requests[(start + index) % requests.len()]).sum();
    (0..requests.len()).map(window).max().unwrap_or(0)
}

struct Mixed<P: Pool> {
    pool: P,
    plan: Plan,
    requests: Vec<usize>,
    held: [Option<P::Buf>; HELD],
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Mixed { sizes } = case else { return Err(not_mine(case)) };
    let requests = requests(sizes);
    let plan = Plan::mixed(HELD, SIZES[SIZES.len() - 1], peak_bytes(&requests)).with(settings);
    Ok(Box::new(Mixed { pool: P::build(&plan)?, plan, requests, held: [const { None }; HELD] }))
}

impl<P: Pool> Mixed<P> {
    fn empty(&mut self) {
        self.held.iter_mut().for_each(|place| *place = None);
    }
}

impl<P: Pool> Cell for Mixed<P> {
    fn check(&mut self) -> Result<(), String> {
        let requests = &self.requests;
        check::pool(&mut self.pool, &self.plan, &|index| requests[index % requests.len()])
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            for (index, &bytes) in self.requests.iter().enumerate() {
                let place = &mut self.held[index % HELD];
                *place = None;
                let mut buf = self.pool.acquire(bytes);
                touch(&mut buf);
                *place = Some(buf);
            }
        }
        let elapsed = start.elapsed();
        self.empty();
        elapsed
    }

    fn operations(&self) -> u64 {
        REQUESTS as u64
    }

    fn sample(&mut self, nanos: &mut [u32]) -> bool {
        let requests = self.requests.iter().cycle();
        for ((index, nanos), &bytes) in nanos.iter_mut().enumerate().zip(requests) {
            let place = &mut self.held[index % HELD];
            let start = Instant::now();
            *place = None;
            let mut buf = self.pool.acquire(bytes);
            touch(&mut buf);
            *place = Some(buf);
            *nanos = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
        }
        self.empty();
        true
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_small() {
        let requests = requests(Sizes::Zipf);
        let of = |bytes| requests.iter().filter(|&&request| request == bytes).count();
        assert!(of(64) > 5 * of(65536), "{} and {}", of(64), of(65536));
        assert!(of(65536) > 0);
        assert!(peak_bytes(&requests) >= 65536);
    }
}
