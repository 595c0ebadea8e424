//! What a `races` program runs: the trials that hand memory from thread to thread, for
//! ThreadSanitizer.
//!
//! Such a program has no test harness; like one, it takes `--exact NAME` for one trial.

use std::env;

use bufcore::{BufferPool, SplitLease};

use crate::Kit;
use crate::model::Shadow;
use crate::trials::{lifetime, traffic};

type Trial<P> = fn(&Kit<P>);

/// Returns whether the trial is asked for: by its name, or because all are.
fn is_wanted(name: &str) -> bool {
    let wanted = env::args().skip_while(|argument| argument != "--exact").nth(1);
    wanted.as_deref().is_none_or(|wanted| wanted == name)
}

/// Runs the trial that is asked for, or all of them, and says how many that were.
pub fn run<P: BufferPool<Lease: SplitLease> + Send + 'static>(what: &str, kit: &Kit<P>) -> usize {
    // Its lock would order what the pool has to.
    Shadow::switch_off();
    let trials: [(&str, Trial<P>); 5] = [
        ("handover", traffic::handover),
        ("traffic", traffic::buffers),
        ("late_releases", lifetime::late_releases),
        ("outlives", lifetime::outlives),
        ("threads_end", lifetime::threads_end),
    ];
    let mut ran = 0;
    for (name, trial) in trials {
        if is_wanted(name) {
            trial(kit);
            println!("{what}: {name} ok");
            ran += 1;
        }
    }
    ran
}

/// Runs a trial of the program's own, if it is asked for, and says how many that were.
pub fn run_own(name: &str, trial: impl FnOnce()) -> usize {
    if !is_wanted(name) {
        return 0;
    }
    trial();
    println!("{name} ok");
    1
}
