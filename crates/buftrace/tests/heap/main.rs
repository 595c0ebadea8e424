//! The recorder of the heap, in programs of its own: this binary calls itself for each scenario,
//! with the recording allocator as its global one.
#![cfg(all(target_os = "linux", not(miri)))]

mod count;
mod failing;
mod grow;
mod places;
mod process;
mod sampling;
mod sums;
mod torn;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use buftrace::{Profile, RecordingAlloc};

use self::count::Counting;

#[global_allocator]
static ALLOC: RecordingAlloc<Counting> = RecordingAlloc::new(Counting);

/// Names the scenario to a child.
const SCENARIO: &str = "BUFTRACE_TEST_SCENARIO";
/// Names its file.
const FILE: &str = "BUFTRACE_TEST_FILE";

/// Not a test by itself: what a child runs.
#[test]
fn scenario() {
    let Ok(name) = env::var(SCENARIO) else { return };
    let file = PathBuf::from(env::var_os(FILE).expect("a file"));
    match name.as_str() {
        "sums" => sums::run(&file),
        "sampling" => sampling::run(&file),
        "expanded" => sampling::expanded(&file),
        "grow" => grow::run(&file),
        "places" => places::run(&file),
        "fork" => process::fork(&file),
        "signals" => process::signals(&file),
        "handler_forks" => process::handler_forks(&file),
        "closed" => process::closed(&file),
        "late" => process::late(&file),
        "environment" => process::environment(),
        "kill" => torn::kill(&file),
        "full" => torn::full(&file),
        "limit" => torn::limit(&file),
        "long" => torn::long(&file),
        "failing" => failing::heap(&file),
        "saving" => failing::trace(&file),
        other => panic!("no scenario {other}"),
    }
}

/// A file that goes when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("buftrace-{}-{name}.heap", std::process::id())))
    }

    /// The same, as long as the recording runs.
    fn part(&self) -> Self {
        Self(self.0.with_extension("heap.part"))
    }

    fn profile(&self) -> Profile {
        Profile::load(&self.0).expect("a recording")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A call of this binary that runs a scenario.
fn command(name: &str, file: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("this binary"));
    command.args(["--exact", "scenario", "--nocapture", "--test-threads=1"]);
    command.env(SCENARIO, name).env(FILE, file);
    command
}

/// Runs a scenario to its good end.
fn run(name: &str, file: &Path) -> Output {
    let output = command(name, file).output().expect("it runs");
    assert!(output.status.success(), "{name}: {output:?}");
    output
}
