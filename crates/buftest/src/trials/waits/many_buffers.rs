//! T26: a request that waits for the memory of many buffers at once.

use std::time::Duration;

use super::{Waits, asleep, now};
use crate::process::ThreadTimer;
use crate::tasks::{counting, poll};

/// What a run of [`t26_one_request_for_all`] took.
#[derive(Debug, Clone, Copy)]
struct Took {
    wakes: usize,
    time: Duration,
}

/// Waits for the memory of all buffers, of which there are few or many, and which come back in each
/// order: an executor polls the request when it is woken. `make` makes a pool for a number of
/// buffers of 32 bytes, and says what all of them together are.
pub fn t26_one_request_for_all<P: Waits>(make: impl Fn(usize) -> (P, usize)) {
    const FEW: usize = if cfg!(debug_assertions) { 1000 } else { 8000 };
    const MORE: usize = 4 * FEW;
    let run = |count: usize, order: usize, is_plain: bool| {
        let (mut pool, all) = make(count);
        let acquire =
            |pool: &mut P| if is_plain { pool.acquire(32) } else { now::<P>(pool.acquire_async(32)) };
        let mut held: Vec<_> = (0..count).map(|_| acquire(&mut pool).expect("made for as many")).collect();
        match order {
            0 => {}
            1 => held.reverse(),
            _ => fastrand::Rng::with_seed(7).shuffle(&mut held),
        }
        let (wakes, waker) = counting();
        let timer = ThreadTimer::start();
        let mut request = pool.acquire_async(all);
        asleep::<P>(&mut request, &wakes, &waker);
        let mut served = false;
        for buf in held {
            let seen = wakes.count();
            drop(buf);
            while !served && wakes.count() > seen {
                let seen = wakes.count();
                served = poll(request.as_mut(), &waker).is_ready();
                if wakes.count() == seen {
                    break;
                }
            }
        }
        assert!(served, "a wake-up was lost");
        Took { wakes: wakes.count(), time: timer.elapsed() }
    };
    for is_plain in [false, true] {
        for order in 0..3 {
            let least = |count| (0..3).map(|_| run(count, order, is_plain)).min_by_key(|took| took.time);
            let (few, more) = (least(FEW).expect("three"), least(MORE).expect("three"));
            // Beside plain releases, each told buffer has the request look some times more.
            assert!(more.wakes <= 160, "order {order}: {more:?}, with few {few:?}");
            let most = few.time * 6 + Duration::from_millis(40);
            assert!(more.time <= most, "order {order}: {more:?}, with few {few:?}");
        }
    }
}
