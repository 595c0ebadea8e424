//! What every pool of buffers has to do.

use core::mem;

use bufcore::{AcquireError, Buf, Frozen, Lease, Region, Writer};

use crate::pattern::{self, Numbers};
use crate::{Checked, Strategy};

/// Buffers that are held at a time.
const HELD: usize = 12;

/// Fills the pool with buffers until no more fit, and releases them first to last, last to first,
/// and every other one first: everything is available again each time.
pub(crate) fn exhausted<S: Strategy>(pool: &mut S) -> Checked {
    let all = pool.max_capacity();
    let size = all / HELD;
    let mut counts = [0; 3];
    for (order, count) in counts.iter_mut().enumerate() {
        let mut held: [Option<Buf<S::Of>>; HELD] = [const { None }; HELD];
        while *count < HELD {
            let mut buf = match pool.acquire(size) {
                Ok(buf) => buf,
                Err(AcquireError::Exhausted { .. }) => break,
                Err(_) => fail!(),
            };
            ok!(buf.resize(size, *count as u8));
            held[*count] = Some(buf);
            *count += 1;
        }
        check!(*count >= HELD / 2 && !pool.is_idle());
        check!(
            matches!(pool.acquire(all), Err(AcquireError::Exhausted { requested, .. }) if requested == all)
        );
        for step in 0..HELD {
            let at = match order {
                0 => step,
                1 => HELD - 1 - step,
                _ => (2 * step + usize::from(2 * step >= HELD)) % HELD,
            };
            let right = |buf: Buf<S::Of>| buf.len() == size && buf.iter().all(|&byte| byte == at as u8);
            check!(held[at].take().is_none_or(right));
        }
        check!(held.iter().all(Option::is_none) && pool.is_idle());
        check!(pool.acquire(all).is_ok_and(|buf| buf.capacity() == all));
    }
    // Buffers that were out in another order make no less room.
    check!(counts[0] == counts[1] && counts[1] == counts[2]);
    Ok(())
}

/// Fills a frame in steps, beside buffers in its way, until there is no more room.
pub(crate) fn frames<S: Strategy>(pool: &mut S) -> Checked {
    const STEP: usize = 7;
    let all = pool.max_capacity();
    for in_the_way in [0, 1, all / 4] {
        let before = ok!(pool.acquire(in_the_way));
        let mut writer = Writer::new(&mut *pool);
        let mut len = 0;
        let grown = loop {
            let mut step = [0; STEP];
            step.iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern::byte(1, len + at));
            if writer.extend_from_slice(&step).is_err() {
                break writer.filled().len();
            }
            len += STEP;
        };
        // A buffer that could not grow is as it was; all of the memory could be had except what is
        // in the way, twice for what has to move.
        check!(grown == len && len >= (all - in_the_way) / 4 && pattern::is(writer.filled(), 1, 0));
        writer.filled_mut()[0] ^= 0xFF;
        writer.discard_front(1);
        let frame = writer.finish();
        drop(before);
        check!(frame.len() == len - 1 && pattern::is(&frame, 1, 1));
        check!(writer.filled().is_empty());
    }
    check!(pool.is_idle());
    Ok(())
}

/// What is held of a buffer.
enum Held<L: Lease> {
    Nothing,
    Whole(Buf<L>),
    /// And where it starts in the buffer.
    Views(Frozen<L>, Frozen<L>, usize),
}

/// Takes buffers of many sizes, as a whole and as views, and releases them in no order; every byte
/// is looked at when it goes.
pub(crate) fn traffic<S: Strategy>(pool: &mut S, rounds: u32) -> Checked {
    let mut numbers = Numbers::new(rounds);
    let mut held: [(u32, Held<S::Of>); HELD] = [const { (0, Held::Nothing) }; HELD];
    let (mut served, mut refused) = (0_u32, 0_u32);
    let largest = pool.max_capacity() / 4;
    for seed in 1..=rounds {
        let at = numbers.below(HELD);
        let (was, place) = &mut held[at];
        *place = match mem::replace(place, Held::Nothing) {
            Held::Whole(buf) => {
                check!(pattern::is(&buf, *was, 0));
                let cut = numbers.below(buf.len() + 1);
                let mut view = buf.freeze();
                let head = view.split_to(cut);
                if seed % 2 == 0 { Held::Nothing } else { Held::Views(head, view, cut) }
            }
            Held::Views(head, rest, cut) => {
                check!(pattern::is(&head, *was, 0));
                drop(head);
                check!(
                    ok!(rest.try_into_mut())
                        .iter()
                        .enumerate()
                        .all(|(i, &b)| b == pattern::byte(*was, cut + i))
                );
                Held::Nothing
            }
            Held::Nothing => {
                // Not of no bytes: those are there always, and not counted.
                let size = 1 + numbers.below(largest);
                match pool.acquire(size) {
                    Ok(mut buf) => {
                        check!(buf.as_ptr().addr() % S::ALIGNMENT == 0);
                        check!(!cfg!(feature = "wipe") || buf.spare_mut().iter().all(|&byte| byte == 0));
                        check!(buf.resize(size + 1, 0).is_err());
                        ok!(buf.resize(size, 0));
                        pattern::fill(&mut buf, seed);
                        (served, *was) = (served + 1, seed);
                        Held::Whole(buf)
                    }
                    Err(AcquireError::Exhausted { requested, .. }) => {
                        check!(requested == size);
                        refused += 1;
                        Held::Nothing
                    }
                    Err(_) => fail!(),
                }
            }
        };
    }
    // Both happened, or it showed nothing.
    check!(served > rounds / 8 && refused > 0);
    for (was, place) in held {
        check!(match place {
            Held::Nothing => true,
            Held::Whole(buf) => pattern::is(&buf, was, 0),
            Held::Views(head, rest, cut) => pattern::is(&head, was, 0) && pattern::is(&rest, was, cut),
        });
    }
    #[cfg(feature = "stats")]
    {
        let stats = pool.stats();
        check!(
            stats.acquired == u64::from(served) && stats.exhausted == u64::from(refused) && stats.in_use == 0
        );
    }
    check!(pool.is_idle());
    Ok(())
}

/// Checks that buffers and views that nobody drops cost their memory, and nothing else.
pub(crate) fn forgotten<S: Strategy>(region: Region) -> Checked {
    let mut pool = S::over(region)?;
    mem::forget(ok!(pool.acquire(32)));
    let view = ok!(pool.acquire(32)).freeze();
    mem::forget(view.clone());
    drop(view);
    for seed in 0..1000 {
        let mut buf = ok!(pool.acquire(64));
        ok!(buf.resize(64, 0));
        pattern::fill(&mut buf, seed);
        check!(pattern::is(&buf, seed, 0));
    }
    check!(!pool.is_idle() && pool.into_region().is_err());
    Ok(())
}
