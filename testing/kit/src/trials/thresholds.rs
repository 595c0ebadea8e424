//! T34: as many buffers at once as each threshold says, one less and one more.

use std::collections::VecDeque;
use std::time::Duration;

use bufcore::{AcquireError, BufferPool};
use fastrand::Rng;

use super::filled;
use super::refusing::Order;
use crate::model::Shadow;
use crate::{Kit, pattern, thresholds};

/// The most that are held at once.
const MOST: usize = 2100;

/// Holds as many small buffers as each threshold says, one less and one more, releases them in some
/// order, trims, and does it again (T34 for counts). A pool that may refuse is filled up.
pub fn t34_counts<P: BufferPool>(kit: &Kit<P>) {
    let (shadow, mut random) = (Shadow::new(), Rng::with_seed(34));
    let counts = thresholds::all().iter().flat_map(|&count| [count - 1, count, count + 1]);
    for count in counts.filter(|&count| count <= MOST / kit.share) {
        let mut pool = (kit.make)();
        let bytes = 1 + random.usize(..(pool.max_capacity() / (2 * count.max(1))).clamp(1, 300));
        for round in 0..3 {
            let mut held = VecDeque::with_capacity(count);
            let mut claims = Vec::with_capacity(count);
            while held.len() < count {
                match filled(&mut pool, bytes, bytes as u64) {
                    Ok(buf) => {
                        claims.push(shadow.claim(buf.as_ptr(), buf.capacity()));
                        held.push_back(buf);
                    }
                    Err(AcquireError::Exhausted { .. }) if kit.rejects && !held.is_empty() => break,
                    Err(error) => panic!("buffer {} of {count} of {bytes} bytes: {error}", held.len()),
                }
            }
            if round > 0 {
                (kit.trim)(&mut pool, random.bool().then_some(Duration::ZERO));
            }
            held.iter().for_each(|buf| pattern::check(buf, bytes as u64, 0));
            drop(claims);
            let order = Order::ALL[random.usize(..Order::ALL.len())];
            order.release(&mut held, count / 2, &mut random);
            (kit.trim)(&mut pool, random.bool().then_some(Duration::ZERO));
            held.iter().for_each(|buf| pattern::check(buf, bytes as u64, 0));
            order.release(&mut held, count, &mut random);
        }
        assert_eq!(pool.stats().in_use, 0, "all {count} buffers were released");
    }
    assert_eq!(shadow.live(), 0, "claims that were not let go");
}
