//! What the slot pool costs as its surroundings grow.

use std::time::Duration;

#[test]
fn t26_late_releases() {
    let make = |buffers| {
        let pool = bufslot::SlotPool::builder().slots(buffers).capacity(32 * buffers);
        pool.build_with(bufslot::bufcore::NoFallback).expect("settings are right")
    };
    testkit::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        testkit::trials::costs::t26_late_releases(make);
    });
}

#[test]
fn t26_an_end_costs_the_same_beside_kept_buffers() {
    let make = |buffers| {
        let pool = bufslot::SlotPool::builder().slots(buffers).capacity(32 * buffers);
        pool.build_with(bufslot::bufcore::NoFallback).expect("settings are right")
    };
    let name = "t26_an_end_costs_the_same_beside_kept_buffers";
    testkit::process::alone(module_path!(), name, Duration::from_secs(600), || {
        testkit::trials::costs::t26_an_end_costs_the_same_beside_kept_buffers(make);
    });
}

#[test]
fn t26_requests_with_many_out() {
    let make = |buffers| {
        let pool = bufslot::SlotPool::builder().slots(buffers).capacity(32 * buffers);
        pool.build_with(bufslot::bufcore::NoFallback).expect("settings are right")
    };
    testkit::process::alone(module_path!(), "t26_requests_with_many_out", Duration::from_secs(600), || {
        testkit::trials::costs::t26_requests_with_many_out(make);
    });
}
