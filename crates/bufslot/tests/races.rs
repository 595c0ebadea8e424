//! The trials that hand memory from thread to thread, for ThreadSanitizer. They run without the
//! test harness and without the shadow map, whose locks it does not see in a precompiled standard
//! library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes
//! `--exact NAME` for one trial.

use bufcore::NoFallback;
use bufslot::SlotPool;
use testkit::Kit;
use testkit::races::run;

fn main() {
    let refusing = run(
        "refusing",
        &Kit::<SlotPool<NoFallback>> {
            make: || {
                SlotPool::builder()
                    .capacity(1 << 20)
                    .slots(200)
                    .build_with(NoFallback)
                    .expect("settings are right")
            },
            is_fallback: |buf| buf.lease().is_fallback(),
            rejects: true,
            share: 1,
            trim: testkit::trials::trim,
        },
    );
    let over_heap = run(
        "over the heap",
        &Kit::<SlotPool> {
            make: || SlotPool::new(1 << 20, 64).expect("settings are right"),
            is_fallback: |buf| buf.lease().is_fallback(),
            rejects: false,
            share: 1,
            trim: testkit::trials::trim,
        },
    );
    assert!(refusing + over_heap > 0, "no trial of this name");
}
