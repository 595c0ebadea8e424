//! Scenarios for pools without the standard library and without an allocator.
//!
//! A pool over static memory has the same to do on a microcontroller and on a server, so it is
//! described here once. A program of each kind brings memory and runs [`all`]: `examples/firmware`
//! on a Cortex-M3, `xtask/nostd-check` on Linux, and the test below with the standard library
//! around it.
//!
//! There is nothing here to panic with, or to print: a check that does not hold ends its scenario
//! with a [`Failed`] that says where.
#![no_std]
#![allow(clippy::missing_errors_doc, reason = "every error is a check that does not hold")]

#[cfg(test)]
extern crate alloc;

use core::fmt;

use bufcore::{NoFallback, Region};
use bufmirror::Builder as MirrorBuilder;
use bufring::RingPool;
use bufslot::SlotPool;

/// Ends the scenario unless `condition` holds.
#[macro_export]
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err($crate::Failed { file: file!(), line: line!() });
        }
    };
}

/// As [`check!`], for something that has to be `Ok`.
#[macro_export]
macro_rules! ok {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(_) => return Err($crate::Failed { file: file!(), line: line!() }),
        }
    };
}

/// As [`check!`], for something that has to be `Some`.
#[macro_export]
macro_rules! some {
    ($option:expr) => {
        match $option {
            Some(value) => value,
            None => return Err($crate::Failed { file: file!(), line: line!() }),
        }
    };
}

/// As [`check!`], for what must not be reached.
#[macro_export]
macro_rules! fail {
    () => {
        return Err($crate::Failed { file: file!(), line: line!() })
    };
}

pub mod channel;
pub mod pattern;
mod pools;
mod ring;
mod slot;
mod strategy;
pub mod stream;

pub use strategy::Strategy;

/// Where a check did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// The source file.
    pub file: &'static str,
    /// Its line.
    pub line: u32,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the check at {}:{} does not hold", self.file, self.line)
    }
}

impl core::error::Error for Failed {}

/// What a scenario comes to.
pub type Checked<T = ()> = Result<T, Failed>;

/// Memory to run in.
#[derive(Debug)]
pub struct Memory {
    /// Used by one scenario after the other; two KiB at least.
    pub lent: Region,
    /// For those that do not give theirs back, which is what they are about; as much each.
    pub lost: [Region; 3],
}

/// Runs all scenarios, each announced to `began`, with `rounds` of traffic. Returns the memory that
/// is lent.
pub fn all(memory: Memory, rounds: u32, mut began: impl FnMut(&'static str)) -> Checked<Region> {
    let Memory { lent, lost: [slots, ring, stream] } = memory;
    let lent = of_strategy::<SlotPool<NoFallback>>(lent, slots, rounds, &mut began)?;
    began("the modes of a slot pool");
    let lent = slot::modes(lent)?;
    let lent = of_strategy::<RingPool>(lent, ring, rounds, &mut began)?;
    began("a ring's growing and typed buffers");
    let lent = ring::growing_and_typed(lent)?;
    began("a ring of bytes");
    stream::around(ok!(MirrorBuilder::new().build_in(stream)))?;
    began("a channel");
    channel::around()?;
    Ok(lent)
}

/// One scenario, with the pool that it runs on.
type Scenario<S> = (&'static str, fn(&mut S) -> Checked);

fn of_strategy<S: Strategy>(
    mut lent: Region,
    lost: Region,
    rounds: u32,
    began: &mut impl FnMut(&'static str),
) -> Checked<Region> {
    let scenarios: [Scenario<S>; 2] =
        [("full, and released in any order", pools::exhausted), ("frames that grow", pools::frames)];
    began(S::NAME);
    for (name, scenario) in scenarios {
        began(name);
        lent = with_pool(lent, scenario)?;
    }
    began("traffic");
    lent = with_pool(lent, |pool: &mut S| pools::traffic(pool, rounds))?;
    began("forgotten buffers");
    pools::forgotten::<S>(lost)?;
    Ok(lent)
}

/// Runs `scenario` on a pool over `region`, which has to come back: nothing may be out any more.
fn with_pool<S: Strategy>(region: Region, scenario: impl FnOnce(&mut S) -> Checked) -> Checked<Region> {
    let bytes = region.len();
    let mut pool = S::over(region)?;
    scenario(&mut pool)?;
    let region = ok!(pool.into_region());
    check!(region.is_static() && region.len() == bytes);
    Ok(region)
}

/// The examples of the guide to machines without an operating system, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedded.md")]
struct Guide;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::vec;

    fn memory(bytes: usize) -> Region {
        Region::from_static(Box::leak(vec![0xEE; bytes].into_boxed_slice()))
    }

    #[test]
    fn on_this_machine() {
        // The smallest that it says it needs, a microcontroller's, and one in which requests are
        // large.
        for bytes in [2 << 10, 8 << 10, 100_000] {
            let memory = Memory { lent: memory(bytes), lost: [2048; 3].map(memory) };
            let mut scenarios = 0;
            let region = all(memory, 3000, |_| scenarios += 1).unwrap_or_else(|failed| panic!("{failed}"));
            assert_eq!((region.len(), scenarios), (bytes, 2 * 5 + 4));
        }
    }
}
