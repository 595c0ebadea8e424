//! The trials that hand memory from thread to thread, for ThreadSanitizer. They run without the
//! test harness and without the shadow map, whose locks it does not see in a precompiled standard
//! library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes
//! `--exact NAME` for one trial.

use bufbump::BumpPool;
use testkit::trials::clones;
use testkit::{Kit, races};

/// Small shards, so that they go round; few of them are kept.
fn small() -> BumpPool {
    BumpPool::builder().shard_size(2048).max_idle_bytes(8192).build().expect("settings are right")
}

fn default() -> BumpPool {
    BumpPool::builder().preallocate(1).build().expect("settings are right")
}

fn main() {
    let kit = |make| Kit::<BumpPool> {
        make,
        is_fallback: |_| false,
        rejects: false,
        share: 1,
        trim: testkit::trials::trim,
    };
    let mut ran = races::run("default", &kit(default)) + races::run("small shards", &kit(small));
    ran += races::run_own("parts", || clones::parts_elsewhere(small))
        + races::run_own("ends", || clones::threads_and_pools_end(small));
    assert!(ran > 0, "no trial of this name");
}
