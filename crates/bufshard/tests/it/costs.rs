//! What the pool costs as its surroundings grow.

use std::time::Duration;

#[test]
fn t26_late_releases() {
    // As little bookkeeping as a pool can have: there are very many.
    let make = |_buffers| {
        let builder = bufshard::ShardPool::builder().shards(1).largest_pooled(64);
        builder.build().expect("settings are right")
    };
    testkit::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        testkit::trials::costs::t26_late_releases(make);
    });
}

#[test]
fn t26_an_end_costs_the_same_beside_kept_buffers() {
    let make = |_buffers| {
        let builder = bufshard::ShardPool::builder().shards(1).largest_pooled(64);
        builder.build().expect("settings are right")
    };
    let name = "t26_an_end_costs_the_same_beside_kept_buffers";
    testkit::process::alone(module_path!(), name, Duration::from_secs(600), || {
        testkit::trials::costs::t26_an_end_costs_the_same_beside_kept_buffers(make);
    });
}
