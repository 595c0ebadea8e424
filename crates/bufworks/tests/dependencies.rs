//! Taking one strategy pulls in nothing of the others: the exact dependencies of each build with a
//! single feature.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

#[macro_use]
#[path = "../src/strategies.rs"]
#[allow(unused_macros, reason = "the table of pools is for other tests")]
mod strategies;

/// The feature of each strategy, and the crate that it brings.
macro_rules! features {
    ({} $($module:ident $feature:literal $package:ident;)*) => {
        &[$(($feature, stringify!($package))),*]
    };
}
const CRATES: &[(&str, &str)] = crates!(features! {});

/// The packages that every build has.
const ALWAYS: [&str; 3] = ["bufcore", "bufkit", "bufworks"];

/// All other packages that the library is built with, on Linux.
fn packages(features: &str) -> Vec<String> {
    let mut tree = Command::new(env::var_os("CARGO").expect("cargo runs the tests"));
    tree.args(["tree", "--package", "bufworks", "--no-default-features", "--features", features]);
    tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    tree.args([
        "--target",
        "x86_64-unknown-linux-gnu",
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    let output = tree.output().expect("cargo is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names are text");
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let others = names.filter(|name| !ALWAYS.contains(name));
    others.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn each_strategy_has_its_own_and_nothing_more() {
    assert!(packages("").is_empty());
    for (feature, package) in CRATES {
        let others = match *feature {
            "bump" | "shard" => &["bufkeeper", "libc"][..],
            _ => &[],
        };
        let mut expected = vec![*package];
        expected.extend(others);
        expected.sort_unstable();
        assert_eq!(packages(feature), expected, "{feature}");
    }
}

#[test]
fn features_bring_what_they_name() {
    assert_eq!(packages("slot,std,stats,track"), ["bufkeeper", "bufslot"]);
    assert_eq!(packages("mirror,std"), ["bufkeeper", "bufmirror", "crossbeam-utils", "libc"]);
    assert_eq!(packages("ring,bytes"), ["bufring", "bytes"]);
    assert_eq!(packages("ring,embedded-io-0_7"), ["bufring", "embedded-io"]);
    for feature in ["ring,allocator-api2-0_2", "ring,allocator-api2-0_4"] {
        assert_eq!(packages(feature), ["allocator-api2", "bufring"]);
    }
    let embedded = ["bufring", "embedded-io", "embedded-io-async"];
    assert_eq!(packages("ring,embedded-io-async-0_7"), embedded);
    assert_eq!(packages("slot,wipe"), ["bufslot", "zeroize"]);
    assert_eq!(packages("slot,mmap"), ["bufkeeper", "bufslot", "libc", "memmap2"]);
    assert_eq!(packages("slot,prometheus"), ["bufkeeper", "bufslot"]);
    // The packages that its hashes bring along are not looked at.
    let mut metrics = packages("slot,metrics");
    metrics.retain(|name| name.starts_with("buf") || name == "metrics");
    assert_eq!(metrics, ["bufkeeper", "bufslot", "metrics"]);
    let tracing = ["bufkeeper", "bufslot", "once_cell", "pin-project-lite", "tracing", "tracing-core"];
    assert_eq!(packages("slot,tracing"), tracing);
    // The packages that serde's derive brings along are not looked at.
    let mut serde = packages("ring,serde");
    serde.retain(|name| name.starts_with("buf") || name == "serde");
    assert_eq!(serde, ["bufring", "serde"]);
    let http = ["bufkeeper", "bufslot", "bytes", "futures-core", "http", "http-body", "itoa"];
    assert_eq!(packages("slot,http"), http);
    assert_eq!(packages("slot,futures-core-0_3"), ["bufkeeper", "bufslot", "futures-core"]);
    // Nor are those of runtimes.
    let runtimes =
        [("tokio-uring-0_5", "tokio-uring"), ("monoio-0_2", "monoio"), ("compio-buf-0_8", "compio-buf")];
    for (feature, package) in runtimes {
        let mut runtime = packages(&format!("ring,{feature}"));
        runtime.retain(|name| name.starts_with("buf") || name == package);
        assert_eq!(runtime, ["bufkeeper", "bufring", package]);
    }
    // Tokio brings along more packages in a build of our tests.
    for (feature, package) in [("tokio", "tokio"), ("tokio-util-0_7", "tokio-util")] {
        let mut packages = packages(&format!("ring,{feature}"));
        packages.retain(|name| name.starts_with("buf") || name == package);
        assert_eq!(packages, ["bufkeeper", "bufring", package]);
    }
}
