//! The trials that hand memory from thread to thread, for ThreadSanitizer. They run without the
//! test harness and without the shadow map, whose locks it does not see in a precompiled standard
//! library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes
//! `--exact NAME` for one trial.

use bufring::RingPool;
use testkit::{Kit, races};

fn main() {
    let ran = races::run(
        "ring",
        &Kit::<RingPool> {
            // Small, so that all of it is used many times.
            make: || RingPool::new(256 << 10).expect("settings are right"),
            is_fallback: |_| false,
            rejects: true,
            share: 1,
            trim: testkit::trials::trim,
        },
    );
    assert!(ran > 0, "no trial of this name");
}
