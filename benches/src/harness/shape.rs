//! Traffic of any shape, which the search for cliffs varies.

use serde::{Deserialize, Serialize};

use crate::harness::case::{Order, size};

/// Most bytes of the largest buffers that are held at once.
pub(crate) const MOST_HELD: u64 = 64 << 20;
/// Doublings of the smallest and the largest size.
const DOUBLINGS: core::ops::RangeInclusive<u32> = 4..=20;
/// Doublings of the number of buffers that are held.
const MOST_HELD_DOUBLINGS: u32 = 12;
/// Doublings of the number of requests in a row whose sizes are alike.
const MOST_RUN_DOUBLINGS: u32 = 14;

/// Traffic: sizes, how many are held, and which of them goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Bytes of the smallest and the largest buffer.
    pub(crate) least: u32,
    pub(crate) most: u32,
    /// Whether these are the only sizes; else all between them are, each doubling as often as any other.
    pub(crate) is_two: bool,
    /// How many requests in a row have one size, or sizes of one doubling.
    pub(crate) run: u32,
    /// How many buffers are held.
    pub(crate) held: u32,
    /// Which goes next. Newest first: all come, and then all go.
    pub(crate) order: Order,
}

impl Shape {
    /// Draws any.
    pub fn any(random: &mut fastrand::Rng) -> Self {
        let mut shape = Self { least: 64, most: 64, is_two: false, run: 1, held: 1, order: Order::Fifo };
        for what in 0..6 {
            shape.change(what, random);
        }
        shape
    }

    /// Draws one that differs in one or two things.
    #[must_use]
    pub fn near(mut self, random: &mut fastrand::Rng) -> Self {
        let before = self;
        while self == before {
            for _ in 0..random.u32(1..=2) {
                self.change(random.u32(..6), random);
            }
        }
        self
    }

    fn change(&mut self, what: u32, random: &mut fastrand::Rng) {
        // Between powers of two as often as at one.
        let mut bytes = || (1 << random.u32(DOUBLINGS)) + random.u32(..2) * random.u32(1..16);
        match what {
            0 => self.least = bytes(),
            1 => self.most = bytes(),
            2 => self.is_two = random.bool(),
            3 => self.run = 1 << random.u32(..=MOST_RUN_DOUBLINGS),
            4 => self.held = 1 << random.u32(..=MOST_HELD_DOUBLINGS),
            _ => self.order = [Order::Fifo, Order::Lifo, Order::Random][random.usize(..3)],
        }
        if self.least > self.most {
            core::mem::swap(&mut self.least, &mut self.most);
        }
        let fit = (MOST_HELD / u64::from(self.most)).max(1).ilog2();
        self.held = self.held.min(1 << fit);
    }

    /// Its parameters, for people.
    pub(crate) fn parameters(&self) -> String {
        let Self { least, most, is_two, run, held, order } = *self;
        let (least, most) = (size(least as usize), size(most as usize));
        let sizes = if is_two { format!("{least} or {most}") } else { format!("{least} to {most}") };
        format!("{sizes} {run} alike {held} live {}", order.name())
    }
}
