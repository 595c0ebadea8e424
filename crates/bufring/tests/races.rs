//! The trials that hand memory from thread to thread, for ThreadSanitizer: without the test harness and without the shadow map,
//! whose locks it does not see in a precompiled standard library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes `--exact NAME` for one trial.

use std::env;

use bufcore::BufferPool;
use bufring::RingAllocator;
use buftest::Kit;
use buftest::model::Shadow;
use buftest::trials::{lifetime, traffic};

type Trial<P> = fn(&Kit<P>);

/// Runs the trial that is asked for, or all of them, and says how many that were.
fn run<P: BufferPool<Lease: 'static> + Send + 'static>(what: &str, kit: &Kit<P>) -> usize {
    let trials: [(&str, Trial<P>); 6] = [
        ("handover", traffic::handover),
        ("whole_buffers", traffic::whole_buffers),
        ("every_way", traffic::every_way),
        ("late_releases", lifetime::late_releases),
        ("outlives", lifetime::outlives),
        ("threads_end", lifetime::threads_end),
    ];
    let wanted = env::args().skip_while(|argument| argument != "--exact").nth(1);
    let mut ran = 0;
    for (name, trial) in trials {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            trial(kit);
            println!("{what}: {name} ok");
            ran += 1;
        }
    }
    ran
}

fn main() {
    Shadow::switch_off();
    let ran = run(
        "ring",
        &Kit::<RingAllocator> {
            // Small, so that all of it is used many times.
            make: || RingAllocator::new(256 << 10).expect("settings are right"),
            frames: |ring| Some(ring),
            is_fallback: |_| false,
            rejects: true,
        },
    );
    assert!(ran > 0, "no trial of this name");
}
