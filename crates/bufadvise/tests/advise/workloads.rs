//! `examples/workloads.rs`: each has the answer that a pool helps, and less page faults with that pool.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::{code, printed};

/// The example that was built beside these tests.
fn example() -> PathBuf {
    let tests = std::env::current_exe().expect("the path of this program");
    let example = tests.ancestors().nth(2).expect("a folder").join("examples/workloads");
    assert!(example.exists(), "cargo build --release -p bufadvise --example workloads");
    example
}

/// The page faults that it printed.
fn page_faults(output: &Output) -> u64 {
    let text = printed(output);
    let faults = text.lines().find_map(|line| line.strip_prefix("page faults: "));
    faults.and_then(|faults| faults.parse().ok()).unwrap_or_else(|| panic!("{output:?}"))
}

fn a_pool_saves_page_faults(name: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(["run", "--json", "--sites", "0", "--seconds", "20", "--"]);
    let without = command.arg(example()).arg(name).output().expect("it starts");
    let answer: Value = serde_json::from_slice(&without.stderr).unwrap_or_else(|_| panic!("{without:?}"));
    assert_eq!(answer["verdict"], "pool", "{answer}");
    let settings = answer["tried"][0]["settings"].as_str().expect("settings");
    // Those of `pipeline` depend on which of its threads is faster: 200 000 to 2 400 000 without a
    // pool, and 40 000 to 80 000 with it.
    let with = [(); 3].map(|()| {
        let with = Command::new(example()).args([name, settings]).output().expect("it starts");
        assert_eq!(code(&with), 0, "{settings}: {with:?}");
        page_faults(&with)
    });
    let (now, pool) = (page_faults(&without), with.into_iter().min().expect("three"));
    assert!(pool < now / 3 * 2, "{settings}: {pool} page faults, and {now} without it");
}

macro_rules! workloads {
    ($($name:ident)*) => {$(
        #[test]
        #[cfg_attr(debug_assertions, ignore = "as debug builds, these programs take their time elsewhere")]
        fn $name() {
            a_pool_saves_page_faults(stringify!($name));
        }
    )*};
}

workloads! { frames batches pipeline thumbnails }
