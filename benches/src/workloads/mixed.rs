//! `mixed`: requests of different sizes, of which the newest few are held.
//!
//! Sizes at random are drawn so many times that no predictor learns them: of a table of 4096 draws,
//! a processor knows the next.

use buftrials::sizes::zipf;

use super::script::{self, Script, Step};
use crate::harness::case::{Case, Sizes};
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Pool;

/// Sizes in the mix, four to an octave or two, and none of them round.
const SIZES: [u32; 12] = [64, 100, 256, 500, 1024, 1500, 4096, 6000, 9000, 16384, 40000, 65536];
/// The sizes of `two`.
const TWO: [u32; 2] = [100, 5000];
/// Doublings from 64 bytes on that `classes` has, and from one byte on those of `logarithmic`.
const DOUBLINGS: usize = 10;
const MOST_DOUBLINGS: f64 = 20.0;
/// Requests in one iteration, which `phases` are a third of.
const REQUESTS: u32 = 3 << 15;

pub(super) fn cases() -> Vec<Case> {
    let rows: [(Sizes, &[u32]); 6] = [
        (Sizes::RoundRobin, &[8]),
        (Sizes::Zipf, &[8]),
        (Sizes::Classes, &[1, 16]),
        (Sizes::Two, &[1, 16]),
        (Sizes::Logarithmic, &[1, 16]),
        (Sizes::Phases, &[16]),
    ];
    rows.into_iter()
        .flat_map(|(sizes, held)| held.iter().map(move |&held| Case::Mixed { sizes, held }))
        .collect()
}

/// A size between a power of two and the next.
fn within(doubling: usize, random: &mut fastrand::Rng) -> u32 {
    let least = 64 << doubling;
    random.u32(least + 1..=2 * least)
}

fn script(sizes: Sizes, held: u32) -> Script {
    let mut random = fastrand::Rng::with_seed(2);
    let bytes = |request: u32| match sizes {
        Sizes::RoundRobin => SIZES[request as usize % SIZES.len()],
        Sizes::Zipf => SIZES[zipf(SIZES.len(), || random.f64())],
        Sizes::Classes => within(zipf(DOUBLINGS, || random.f64()), &mut random),
        Sizes::Two => TWO[random.usize(..2)],
        Sizes::Logarithmic => (random.f64() * MOST_DOUBLINGS).exp2() as u32,
        // Small ones, large ones, small ones.
        Sizes::Phases => within(if request * 3 / REQUESTS == 1 { 8 } else { 1 }, &mut random),
    };
    let sizes: Vec<u32> = (0..REQUESTS).map(bytes).collect();
    Script::new((0..).zip(sizes).map(|(index, bytes)| Step { place: index % held, bytes }).collect())
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Mixed { sizes, held } = case else { return Err(super::not_mine(case)) };
    let script = script(sizes, held);
    let plan = script.plan();
    script::cell::<P>(script, plan, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_small() {
        let script = script(Sizes::Zipf, 8);
        let of = |bytes| script.steps.iter().filter(|step| step.bytes == bytes).count();
        assert!(of(64) > 5 * of(65536), "{} and {}", of(64), of(65536));
        assert!(of(65536) > 0 && script.live == 8);
    }

    #[test]
    fn sizes_are_as_described() {
        let between = |sizes, least: u32, most: u32| {
            let steps = script(sizes, 1).steps;
            let all = (steps.iter().map(|step| step.bytes).min(), steps.iter().map(|step| step.bytes).max());
            assert!(all.0.is_some_and(|found| (least..least + least / 8 + 2).contains(&found)), "{all:?}");
            assert!(all.1.is_some_and(|found| (most - most / 8..=most).contains(&found)), "{all:?}");
        };
        between(Sizes::Classes, 64, 64 << 10);
        between(Sizes::Logarithmic, 1, 1 << 20);
        between(Sizes::Phases, 128, 32 << 10);
        let phases = script(Sizes::Phases, 16).steps;
        let large: Vec<usize> = (0..phases.len()).filter(|&index| phases[index].bytes > 1024).collect();
        assert_eq!((large[0], large.len()), (phases.len() / 3, phases.len() / 3));
    }
}
