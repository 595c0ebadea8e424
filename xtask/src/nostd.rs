//! `cargo xtask nostd`: the pools without the standard library, built, linked and run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::compilers::{self, Library};
use crate::firmware;
use crate::mutant_build;
use crate::mutant_tree::MutantTree;
use crate::mutants;
use crate::packages::{self, Package};
use crate::shell::{self, command};
use crate::steps::{Outcome, Steps};
use crate::strategies;

/// The program, a workspace of its own.
pub(crate) const MANIFEST: &str = "xtask/nostd-check/Cargo.toml";
/// Named, so that the flags reach no build script.
const HOST: &str = "x86_64-unknown-linux-gnu";
const PROGRAM: &str = "target/nostd/x86_64-unknown-linux-gnu/release/nostd-check";
const BROKEN: &str = "target/nostd-broken/x86_64-unknown-linux-gnu/release/nostd-check";
/// No C runtime, no C library, nothing to relocate.
const FLAGS: &str =
    "-Dwarnings -Crelocation-model=static -Clink-arg=-nostdlib -Clink-arg=-static -Clink-arg=-no-pie";
const RUNS_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
const ELSEWHERE: &str = "the program's entry point is for Linux on x86-64";
/// Features of the program: without an allocator, and with one.
const BUILDS: [&str; 4] = ["", "wipe,stats", "alloc", "alloc,wipe,stats"];

/// Processors without compare-and-swap, one of them without any atomics: `portable-atomic` brings them.
const WITHOUT_SWAPS: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];
/// Features with which the pools are built for processors, of those that each has, besides the
/// umbrella's for each strategy.
const SETS: [&[&str]; 3] = [
    &[],
    &["embedded-io-async-0_7", "stats", "wipe"],
    &["alloc", "bytes", "embedded-io-async-0_7", "stats", "wipe"],
];
/// One of the ways of `portable-atomic`, which the program chooses: here, that there is one processor.
const ONE_PROCESSOR: &str = "--cfg portable_atomic_unsafe_assume_single_core";

/// Runs all of it.
pub(crate) fn check() -> Result<Outcome> {
    let mut steps = Steps::new("nostd", BUILDS.len() + 2 + WITHOUT_SWAPS.len() + firmware::STEPS);
    for features in BUILDS {
        let name = if features.is_empty() { "no allocator" } else { features };
        steps.step(&format!("program, {name}"), || program(features));
    }
    steps.step("program, a defect fails", broken);
    steps.step(&format!("libraries, {}", firmware::PLATFORM), || libraries(firmware::PLATFORM, None, ""));
    for platform in WITHOUT_SWAPS {
        steps.step(&format!("libraries, {platform}"), || {
            libraries(platform, Some("portable-atomic"), ONE_PROCESSOR)
        });
    }
    firmware::add(&mut steps);
    steps.finish()?;
    Ok(Outcome::Passed)
}

fn program(features: &str) -> Result<Outcome> {
    if !RUNS_HERE {
        return Outcome::skipped(ELSEWHERE);
    }
    build(Path::new("."), features, "target/nostd")?;
    shell::run(&mut Command::new(PROGRAM))?;
    if !shell::works(Command::new("nm").arg("--version")) {
        return Outcome::skipped("the program runs, but `nm`, which lists its symbols, is not installed");
    }
    let symbols = shell::output(&mut command!("nm --demangle {PROGRAM}"))?;
    let foreign = foreign(&symbols, features.contains("alloc"));
    if !foreign.is_empty() {
        bail!("the program has symbols that it must not have:\n{}", foreign.join("\n"));
    }
    println!("nostd: {} symbols, none of std, none missing", symbols.lines().count());
    Ok(Outcome::Passed)
}

/// Builds the program of the workspace in `root`.
fn build(root: &Path, features: &str, folder: &str) -> Result<()> {
    let manifest = root.join(MANIFEST);
    let mut build = command!(
        "cargo build --quiet --release --target {HOST} --target-dir {folder} --features {features} --manifest-path {manifest}"
    );
    shell::run(build.env("RUSTFLAGS", FLAGS))
}

/// The scenarios find the defect that the program's manifest names.
fn broken() -> Result<Outcome> {
    if !RUNS_HERE {
        return Outcome::skipped(ELSEWHERE);
    }
    let program = Path::new(MANIFEST).parent().context("a manifest has a folder")?;
    let defect = packages::all_of(program)?.into_iter().find_map(|package| package.defect);
    let defect = defect.context("the program names no defect")?;
    let mut copied = MutantTree::at("target/nostd-broken/tree")?;
    copied.put(mutants::named(&defect)?.apply(mutant_build::read)?)?;
    build(copied.root(), "", "target/nostd-broken")?;
    let output = Command::new(BROKEN).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code() == Some(1), "the scenarios pass with a defect: {text}");
    ensure!(text.contains("the check at"), "the program with a defect fails, but says `{text}`");
    println!("{}", text.trim());
    Ok(Outcome::Passed)
}

/// The lines of `nm` that name something missing, of `std`, or of an allocator where there is none.
fn foreign(symbols: &str, has_allocator: bool) -> Vec<&str> {
    let is_foreign = |line: &&str| {
        // `address kind name`, the address of what is missing being left out.
        let words: Vec<_> = line.split_whitespace().collect();
        let missing = matches!(words[..], ["U", ..]);
        let of = |library: &str| words.iter().any(|word| word.contains(library));
        missing || of("std::") || (!has_allocator && (of("alloc::") || of("__rust_alloc") || of("malloc")))
    };
    symbols.lines().filter(is_foreign).collect()
}

/// Builds all packages that can do without `std` for a processor, with `also` of their features.
fn libraries(platform: &str, also: Option<&str>, flags: &str) -> Result<Outcome> {
    let mut packages = packages::published()?;
    let mut strategies = strategies::all(&packages)?;
    // The others cannot do without it, so they do not name it.
    packages.retain(|package| package.features.contains_key("std"));
    strategies.retain(|strategy| packages.iter().any(|package| package.name == strategy.package));
    let strategies: Vec<_> = strategies.iter().map(|strategy| strategy.name.as_str()).collect();
    for set in SETS {
        let Some(mut command) = compilers::cargo_for(platform, Library::Alloc)? else {
            return Outcome::skipped(compilers::MISSING);
        };
        command.args(["build", "--quiet", "--lib", "--no-default-features", "--target", platform]);
        command.args([
            "--target-dir",
            "target/bare",
            "--features",
            &features(&packages, strategies.iter().chain(set).copied().chain(also)),
        ]);
        for package in &packages {
            command.args(["--package", &package.name]);
        }
        shell::run(command.env("RUSTFLAGS", format!("-Dwarnings {flags}")))?;
    }
    Ok(Outcome::Passed)
}

/// Those of `wanted` that each package has, as cargo takes them for several packages.
fn features<'a>(packages: &[Package], wanted: impl Iterator<Item = &'a str>) -> String {
    let of_each = |feature: &'a str| {
        let having = packages.iter().filter(move |package| package.features.contains_key(feature));
        having.map(move |package| format!("{}/{feature}", package.name))
    };
    wanted.flat_map(of_each).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::foreign;

    const FINE: &str = "0000000000201000 T _start\n0000000000201040 t core::panicking::panic_fmt\n";

    #[test]
    fn what_must_not_be_there_is_found() {
        assert_eq!(foreign(FINE, false), [""; 0]);
        for bad in ["                 U memcpy", "0000000000201000 T std::io::Write::write"] {
            assert_eq!(foreign(&format!("{FINE}{bad}\n"), true), [bad]);
        }
        let bad = "0000000000201000 T alloc::vec::Vec<u8>::push";
        assert_eq!(foreign(bad, false), [bad]);
        assert_eq!(foreign(bad, true), [""; 0]);
    }
}
