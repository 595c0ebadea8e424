//! `queue`: the newest N buffers are held, each of random size; the oldest goes when the next one
//! comes.
//!
//! Memory is short: a pool gets a quarter more bytes than are out at most, the ring a quarter more
//! buffers, and the slot pool two slots more. So what lies free between the live buffers has to be
//! used again, in pieces that seldom have the size of the next request.

use super::script::{self, Script, Step};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Pool;

/// Buffers that are held: the rows.
const HELD: [usize; 2] = [64, 1024];
/// Bytes of the largest buffer; the smallest has one.
const LARGEST: u32 = 4 << 10;
/// Different sizes, used in turn; a multiple of the buffers held.
const SIZES: u32 = 1 << 16;

pub(super) fn cases() -> Vec<Case> {
    HELD.into_iter().map(|held| Case::Queue { held }).collect()
}

/// The same for all engines.
fn script(held: u32) -> Script {
    let mut random = fastrand::Rng::with_seed(6);
    let step = |index: u32| Step { place: index % held, bytes: random.u32(1..=LARGEST) };
    Script::new((0..SIZES).map(step).collect())
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Queue { held } = case else { return Err(super::not_mine(case)) };
    let script = script(held as u32);
    let plan = script.plan().tight();
    script::cell::<P>(script, plan, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes() {
        assert!(HELD.into_iter().all(|held| SIZES.is_multiple_of(held as u32)), "laps fit together");
        let script = script(64);
        let most = 64 * LARGEST as usize;
        assert!(script.live == 64 && (most / 2..most).contains(&script.peak_bytes), "{}", script.peak_bytes);
    }
}
