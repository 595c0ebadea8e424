//! `mixed`: requests of different sizes, of which the newest few are held.

use super::script::{self, Script, Step};
use crate::harness::case::{Case, Sizes};
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Pool;

/// Sizes in the mix, four to an octave or two, and none of them round.
const SIZES: [u32; 12] = [64, 100, 256, 500, 1024, 1500, 4096, 6000, 9000, 16384, 40000, 65536];
/// Buffers held at a time.
const HELD: u32 = 8;
/// Requests in one iteration.
const REQUESTS: u32 = 1024;

pub(super) fn cases() -> Vec<Case> {
    [Sizes::RoundRobin, Sizes::Zipf].into_iter().map(|sizes| Case::Mixed { sizes }).collect()
}

/// One of the sizes, the k-th of which has weight 1 / k.
fn zipf(random: &mut fastrand::Rng) -> u32 {
    let weight = |rank: usize| 1.0 / (rank + 1) as f64;
    let mut rest = random.f64() * (0..SIZES.len()).map(weight).sum::<f64>();
    let is_it = |rank: &usize| {
        rest -= weight(*rank);
        rest <= 0.0
    };
    SIZES[(0..SIZES.len() - 1).find(is_it).unwrap_or(SIZES.len() - 1)]
}

fn script(sizes: Sizes) -> Script {
    let mut random = fastrand::Rng::with_seed(2);
    let bytes = |request: u32| match sizes {
        Sizes::RoundRobin => SIZES[request as usize % SIZES.len()],
        Sizes::Zipf => zipf(&mut random),
    };
    let sizes: Vec<u32> = (0..REQUESTS).map(bytes).collect();
    Script::new((0..).zip(sizes).map(|(index, bytes)| Step { place: index % HELD, bytes }).collect())
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Mixed { sizes } = case else { return Err(super::not_mine(case)) };
    let script = script(sizes);
    let plan = script.plan();
    script::cell::<P>(script, plan, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_small() {
        let script = script(Sizes::Zipf);
        let of = |bytes| script.steps.iter().filter(|step| step.bytes == bytes).count();
        assert!(of(64) > 5 * of(65536), "{} and {}", of(64), of(65536));
        assert!(of(65536) > 0 && script.live == HELD as usize);
    }
}
