//! `cargo xtask nostd`: the pools without the standard library, built, linked and run.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};

/// The program, a workspace of its own.
const MANIFEST: &str = "xtask/nostd-check/Cargo.toml";
const PROGRAM: &str = "target/nostd/release/nostd-check";
/// No C runtime, no C library, nothing to relocate.
const FLAGS: &str =
    "-Dwarnings -Crelocation-model=static -Clink-arg=-nostdlib -Clink-arg=-static -Clink-arg=-no-pie";
/// Features of the program: without an allocator, and with one.
const BUILDS: [&str; 4] = ["", "wipe,stats", "alloc", "alloc,wipe,stats"];

/// A compiler that comes with the sources of `core`, as Debian packages it.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CORE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";
/// A microcontroller: 32 bits, no operating system, atomics with compare-exchange.
const MICROCONTROLLER: &str = "thumbv7m-none-eabi";
/// Features of pools that are type-checked for it.
const POOL_FEATURES: [&str; 3] = ["", "embedded-io,stats,wipe", "alloc,bytes,embedded-io,stats,wipe"];
/// Packages that are, each with its features.
const BARE: [(&str, [&str; 3]); 4] = [
    ("bufcore", POOL_FEATURES),
    ("bufmirror", ["", "embedded-io", "alloc,bytes,embedded-io"]),
    ("bufring", POOL_FEATURES),
    ("bufslot", POOL_FEATURES),
];

/// Options of `nostd`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if let Outcome::Skipped(reason) = check()? {
            println!("skipped: {reason}");
        }
        Ok(())
    }
}

/// Runs all of it.
pub(crate) fn check() -> Result<Outcome> {
    let mut steps = Steps::new("nostd", BUILDS.len() + 1);
    for features in BUILDS {
        let name = if features.is_empty() { "no allocator" } else { features };
        steps.step(&format!("program, {name}"), || program(features));
    }
    steps.step(&format!("types, {MICROCONTROLLER}"), microcontroller);
    steps.finish()?;
    Ok(Outcome::Passed)
}

fn program(features: &str) -> Result<Outcome> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Outcome::skipped("the program's entry point is for Linux on x86-64");
    }
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        "target/nostd",
    ]);
    shell::run(build.args(["--features", features]).env("RUSTFLAGS", FLAGS))?;
    shell::run(&mut Command::new(PROGRAM))?;
    if !shell::works(Command::new("nm").arg("--version")) {
        return Outcome::skipped("it runs, but there is no nm to look into it");
    }
    let symbols = shell::output(Command::new("nm").args(["--demangle", PROGRAM]))?;
    let foreign = foreign(&symbols, features.contains("alloc"));
    if !foreign.is_empty() {
        bail!("the program has what it must not have:\n{}", foreign.join("\n"));
    }
    println!("nostd: {} symbols, none of std, none missing", symbols.lines().count());
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

/// Type-checks for a machine without an operating system, with `core` built from source.
fn microcontroller() -> Result<Outcome> {
    if ![DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_CORE].iter().all(|file| Path::new(file).exists()) {
        return Outcome::skipped("rustc-web, cargo-web and rust-web-src are not installed");
    }
    for (package, sets) in BARE {
        for features in sets {
            let mut command = Command::new(DEBIAN_CARGO);
            // The variables that the running cargo sets name its own compiler.
            for stale in ["CARGO", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
                command.env_remove(stale);
            }
            command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
            command.args([
                "check",
                "--quiet",
                "--lib",
                "-Zbuild-std=core,alloc",
                "--target",
                MICROCONTROLLER,
            ]);
            command.args(["--target-dir", "target/thumb", "--package", package, "--no-default-features"]);
            shell::run(command.args(["--features", features]).env("RUSTFLAGS", "-Dwarnings"))?;
        }
    }
    Ok(Outcome::Passed)
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
