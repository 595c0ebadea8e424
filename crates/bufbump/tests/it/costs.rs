//! What the pool costs as its surroundings grow.

use std::time::Duration;

#[test]
fn t26_late_releases() {
    // Shards of some buffers, so that many go with their last one.
    let make = |_buffers| bufbump::BumpPool::builder().shard_size(1024).build().expect("settings are right");
    testkit::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        testkit::trials::costs::t26_late_releases(make);
    });
}

#[test]
fn t26_an_end_costs_the_same_beside_kept_buffers() {
    let make = |_buffers| bufbump::BumpPool::builder().shard_size(64).build().expect("settings are right");
    let name = "t26_an_end_costs_the_same_beside_kept_buffers";
    testkit::process::alone(module_path!(), name, Duration::from_secs(600), || {
        testkit::trials::costs::t26_an_end_costs_the_same_beside_kept_buffers(make);
    });
}
