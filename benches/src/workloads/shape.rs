//! `shape`: requests of any shape, for the search for cliffs, and what it found.

use super::script::{self, Script, Step};
use crate::harness::case::{Case, Order};
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Pool;
use crate::harness::shape::Shape;

/// Requests in one iteration: so many that no predictor learns their sizes.
const REQUESTS: usize = 1 << 16;

/// What the search found: the least and the most bytes, whether these are all, how many are alike and
/// held, and which goes next.
const FOUND: [(u32, u32, bool, u32, u32, Order); 4] = [
    // A region that is exceeded, and memory that a pool keeps.
    (64, 128 << 10, true, 1024, 256, Order::Fifo),
    (16 << 10, 128 << 10, false, 1, 512, Order::Random),
    // Holes.
    (64, 256 << 10, false, 16, 64, Order::Random),
    // Which of two buffers goes is not foreseen.
    (23, 64, false, 8192, 2, Order::Random),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(least, most, is_two, run, held, order)| Case::Shape {
        shape: Shape { least, most, is_two, run, held, order },
    };
    FOUND.map(case).into()
}

fn script(shape: Shape) -> Script {
    let mut random = fastrand::Rng::with_seed(8);
    let (least, most) = (f64::from(shape.least).log2(), f64::from(shape.most).log2());
    let mut doubling = least;
    let mut bytes = |index: usize| {
        if shape.is_two {
            if index.is_multiple_of(shape.run as usize) {
                doubling = [least, most][random.usize(..2)];
            }
            return doubling.exp2().round() as u32;
        }
        if index.is_multiple_of(shape.run as usize) {
            doubling = least + random.f64() * (most - least);
        }
        // Alike are sizes of an eighth of a doubling.
        let width = if shape.run == 1 { 0.0 } else { 0.125 * random.f64() };
        ((doubling + width).min(most).exp2().round() as u32).max(1)
    };
    let mut places = fastrand::Rng::with_seed(9);
    let held = shape.held as usize;
    let step = |place: usize, bytes| Step { place: place as u32, bytes };
    let steps = match shape.order {
        Order::Fifo => (0..REQUESTS).map(|index| step(index % held, bytes(index))).collect(),
        Order::Random => (0..REQUESTS).map(|index| step(places.usize(..held), bytes(index))).collect(),
        Order::Lifo => (0..REQUESTS / held)
            .flat_map(|burst| {
                let come: Vec<Step> =
                    (0..held).map(|place| step(place, bytes(burst * held + place))).collect();
                come.into_iter().chain((0..held).rev().map(|place| step(place, 0)))
            })
            .collect(),
    };
    Script::new(steps)
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let Case::Shape { shape } = case else { return Err(super::not_mine(case)) };
    let script = script(*shape);
    let plan = script.plan();
    script::cell::<P>(script, plan, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::shape::MOST_HELD;

    #[test]
    fn shapes_keep_to_their_bounds() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut shape = Shape::any(&mut random);
        for _ in 0..50 {
            let next = if random.bool() { shape.near(&mut random) } else { Shape::any(&mut random) };
            assert!(next != shape && next.least <= next.most);
            let script = script(next);
            assert!(script.live <= next.held as usize && script.peak_bytes as u64 <= MOST_HELD + (1 << 20));
            let sizes = || script.steps.iter().map(|step| step.bytes).filter(|&bytes| bytes > 0);
            assert!(sizes().all(|bytes| (next.least..=next.most).contains(&bytes)), "{next:?}");
            assert!(sizes().count() >= REQUESTS / 2);
            shape = next;
        }
    }
}
