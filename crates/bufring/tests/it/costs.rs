//! What the ring costs as its surroundings grow.

use std::time::Duration;

#[test]
fn t26_late_releases() {
    let make = |buffers| {
        let ring = bufring::RingPool::builder().buffers(buffers).capacity(32 * buffers);
        ring.build().expect("settings are right")
    };
    buftest::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        buftest::trials::costs::t26_late_releases(make);
    });
}
