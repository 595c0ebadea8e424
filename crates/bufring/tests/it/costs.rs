//! What the ring costs as its surroundings grow.

use std::time::Duration;

use testkit::process::ThreadTimer;

#[test]
fn t26_late_releases() {
    let make = |buffers| {
        let ring = bufring::RingPool::builder().buffers(buffers).capacity(32 * buffers);
        ring.build().expect("settings are right")
    };
    testkit::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        testkit::trials::costs::t26_late_releases(make);
    });
}

#[test]
fn t26_an_end_costs_the_same_beside_kept_buffers() {
    let make = |buffers| {
        let ring = bufring::RingPool::builder().buffers(buffers).capacity(32 * buffers);
        ring.build().expect("settings are right")
    };
    let name = "t26_an_end_costs_the_same_beside_kept_buffers";
    testkit::process::alone(module_path!(), name, Duration::from_secs(600), || {
        testkit::trials::costs::t26_an_end_costs_the_same_beside_kept_buffers(make);
    });
}

/// Fills a ring, and returns it with what is out.
fn full(buffers: usize) -> (bufring::RingPool, Vec<bufring::RingBuf>) {
    let settings = bufring::RingPool::builder().buffers(buffers).capacity(32 * buffers);
    let mut ring = settings.build().expect("settings are right");
    let held = std::iter::from_fn(|| ring.acquire(32).ok()).collect();
    (ring, held)
}

#[test]
fn t26_refusals_cost_the_same_beside_many_live_buffers() {
    let refuse = |ring: &mut bufring::RingPool| {
        let timer = ThreadTimer::start();
        for _ in 0..20_000 {
            assert!(ring.acquire(32).is_err());
        }
        timer.elapsed()
    };
    let (mut few, mut many) = (full(1 << 10), full(1 << 15));
    // Thirty-two times as many live buffers. The best of some turns: other work is beside it.
    let (mut least, mut most) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        (least, most) = (least.min(refuse(&mut few.0)), most.min(refuse(&mut many.0)));
    }
    assert!(most < 8 * least, "{least:?} {most:?}");
}

#[test]
fn room_that_comes_is_found_within_one_turn() {
    const BUFFERS: usize = 1 << 13;
    for at in [0, 1, BUFFERS / 2, BUFFERS - 1] {
        let (mut ring, mut held) = full(BUFFERS);
        assert!(held.len() >= BUFFERS);
        for _ in 0..100 {
            held.swap_remove(at);
            let refused = (0..).take_while(|_| ring.acquire(32).map(|buf| held.push(buf)).is_err()).count();
            assert!(refused <= held.len() / 64 + 1, "refused {refused} times");
        }
    }
}

/// A search that found room is not paid off: after those for the refusal that filled the ring, no
/// request for a buffer that was released is refused.
#[test]
fn room_beside_many_live_buffers_is_found_at_once() {
    let (mut ring, mut held) = full(1 << 10);
    let mut random = fastrand::Rng::with_seed(14);
    let mut refused = 0;
    for _ in 0..10_000 {
        held.swap_remove(random.usize(..held.len()));
        while ring.acquire(32).map(|buf| held.push(buf)).is_err() {
            refused += 1;
        }
    }
    assert!(refused <= held.len() / 64 + 1, "refused {refused} times");
}
