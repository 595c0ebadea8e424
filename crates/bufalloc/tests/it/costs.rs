//! T26: what a release costs as the number of blocks grows.

use std::time::Duration;

use fastrand::Rng;
use testkit::process::ThreadTimer;

const NUMBERS: [usize; 2] = if cfg!(miri) { [4, 8] } else { [200, 6400] };
const FACTOR: u32 = 8;
const SLACK: Duration = Duration::from_micros(3);

/// Returns what an allocation and a release take on average, of `number` blocks.
fn cost(number: usize, order: usize) -> Duration {
    let timer = ThreadTimer::start();
    let mut blocks: Vec<_> = (0..number).map(|_| Vec::<u8>::with_capacity(32 << 10)).collect();
    match order {
        0 => blocks.reverse(),
        1 => Rng::with_seed(7).shuffle(&mut blocks),
        _ => {}
    }
    drop(blocks);
    timer.elapsed() / number as u32
}

#[test]
fn t26_costs_stay_flat() {
    for order in 0..3 {
        let least = |number| (0..5).map(|_| cost(number, order)).min().unwrap();
        let [few, many] = NUMBERS.map(least);
        assert!(many <= few * FACTOR + SLACK, "{order}: {many:?} for each, with few {few:?}");
    }
}
