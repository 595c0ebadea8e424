//! The proof of right bytes that each cell gives before it is timed.

pub(crate) use super::pattern::{fill, pattern, verify};

use crate::harness::plan::Plan;
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// The bytes of a buffer, by its number.
pub(crate) type Sizes<'a> = &'a dyn Fn(usize) -> usize;

/// Most bytes that a check fills at once: enough to overlap, little enough to be quick.
const CHECK_BYTES: usize = 64 << 20;
/// Most buffers that a check holds at once.
const CHECK_BUFFERS: usize = 2048;
/// How often the buffers are dropped and taken again.
const CHECK_ROUNDS: u64 = 3;

/// How many buffers a check holds at once.
fn most_held(plan: &Plan, keeps_books: bool) -> usize {
    if keeps_books { plan.room } else { plan.live }.clamp(1, CHECK_BUFFERS)
}

/// How many of the first `most` buffers have so few bytes in all that filling them is quick; at least
/// one.
fn within_bytes(most: usize, sizes: Sizes<'_>) -> usize {
    let mut total = 0;
    let is_within = |index: &usize| {
        total += sizes(*index);
        *index == 0 || total <= CHECK_BYTES
    };
    (0..most).take_while(is_within).count()
}

/// Places for as many buffers.
pub(crate) fn empty<B>(count: usize) -> Vec<Option<B>> {
    let mut places = Vec::with_capacity(count);
    while places.len() < count {
        places.push(None);
    }
    places
}

/// Holds as many buffers of the given sizes as are planned, each filled with bytes of its own;
/// checks all, drops every other one, takes new ones in their place, checks again.
pub(crate) fn pool<P: Pool>(pool: &mut P, plan: &Plan, sizes: Sizes<'_>) -> Result<(), String> {
    pool_from(pool, plan, 0, sizes)
}

/// The same with bytes that are like no other's: several of these can go on at once, with seeds
/// that are far apart.
pub(crate) fn pool_from<P: Pool>(
    pool: &mut P,
    plan: &Plan,
    mut seed: u64,
    sizes: Sizes<'_>,
) -> Result<(), String> {
    let mut live: Vec<Option<(P::Buf, usize, u64)>> =
        empty(within_bytes(most_held(plan, P::KEEPS_BOOKS), sizes));
    for round in 0..CHECK_ROUNDS {
        for (index, place) in live.iter_mut().enumerate() {
            if place.is_some() {
                continue;
            }
            seed += 1;
            let bytes = sizes(index + round as usize);
            let mut buf = pool.acquire(bytes);
            fill(&mut buf, bytes, seed);
            *place = Some((buf, bytes, seed));
        }
        for (index, place) in live.iter_mut().enumerate() {
            if let Some((buf, bytes, seed)) = place {
                verify(buf, *bytes, *seed)?;
            }
            if !P::KEEPS_BOOKS || index as u64 % 2 == round % 2 {
                *place = None;
            }
        }
    }
    Ok(())
}

/// The same for frames, appended in `chunk`s.
pub(crate) fn frames<F: Frames>(
    frames: &mut F,
    plan: &Plan,
    chunk: usize,
    lengths: Sizes<'_>,
) -> Result<(), String> {
    let mut live: Vec<Option<(F::Frame, usize, u64)>> = empty(most_held(plan, F::KEEPS_BOOKS));
    let mut seed = 0;
    let mut bytes = Vec::new();
    for round in 0..4 * CHECK_ROUNDS {
        for (index, place) in live.iter_mut().enumerate() {
            if place.is_some() {
                continue;
            }
            seed += 1;
            let len = lengths(index + round as usize) / chunk * chunk;
            bytes.clear();
            bytes.extend((0..len).map(|offset| pattern(seed, offset)));
            let mut open = frames.open();
            bytes.chunks_exact(chunk).for_each(|chunk| open.append(chunk));
            *place = Some((open.detach(), len, seed));
        }
        for (index, place) in live.iter_mut().enumerate() {
            if let Some((frame, len, seed)) = place {
                verify(frame, *len, *seed)?;
            }
            if !F::KEEPS_BOOKS || index as u64 % 2 == round % 2 {
                *place = None;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::block::Block;
    use crate::harness::plan::Unsupported;

    /// Hands out the same memory to all.
    struct Overlapping(Box<[u8]>);
    struct Shared(*mut u8);

    // SAFETY: not exclusive, which is what the check has to find; valid while the pool lives, and
    // the test sees to that.
    unsafe impl Block for Shared {
        fn start(&mut self) -> *mut u8 {
            self.0
        }
    }

    impl Pool for Overlapping {
        type Buf = Shared;
        fn build(plan: &Plan) -> Result<Self, Unsupported> {
            Ok(Self(vec![0; plan.largest].into()))
        }
        fn acquire(&mut self, _bytes: usize) -> Shared {
            Shared(self.0.as_mut_ptr())
        }
    }

    #[test]
    fn overlapping_buffers_are_found() {
        let mut wrong = Overlapping::build(&Plan::equal(4, 100)).unwrap();
        assert!(pool(&mut wrong, &Plan::equal(2, 100), &|_| 100).is_err());
    }

    #[test]
    fn the_heap_passes() {
        let mut right = crate::adapters::vec::VecPool;
        assert_eq!(pool(&mut right, &Plan::equal(100, 300), &|index| 1 + index % 300), Ok(()));
    }
}
