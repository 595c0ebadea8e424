//! `cargo xtask ci cross` and `emulate`: other systems and processors, type-checked or, where their programs can be run here, tested.

use std::process::Command;

use anyhow::{Context, Result};

use crate::debian::{self, Library};
use crate::features::SHORT;
use crate::packages;
use crate::shell;
use crate::steps::{Outcome, Steps};
use crate::strategies;
use crate::test::{default_env, some_ran};

/// Platforms that are type-checked.
const CHECKED: [&str; 4] =
    ["aarch64-apple-darwin", "aarch64-unknown-linux-gnu", "i686-unknown-linux-gnu", "x86_64-pc-windows-gnu"];
/// Platforms that are type-checked where the toolchain has their library.
const IF_INSTALLED: [&str; 2] = ["x86_64-pc-windows-msvc", "x86_64-unknown-linux-musl"];

/// A platform whose programs run here.
struct Emulated {
    platform: &'static str,
    linker: &'static str,
    /// What runs its programs; none where the system does.
    runner: Option<&'static str>,
    /// Tests that measure what an emulator changes, or take minutes in one.
    skips: &'static [&'static str],
    /// What is missing when it cannot be linked or run.
    wants: &'static str,
}

/// 32 bits, and the other order of bytes.
const EMULATED: [Emulated; 2] = [
    Emulated {
        platform: "i686-unknown-linux-gnu",
        linker: "i686-linux-gnu-gcc",
        runner: None,
        skips: &[],
        wants: "gcc-i686-linux-gnu and a system that runs programs of 32 bits",
    },
    Emulated {
        platform: "s390x-unknown-linux-gnu",
        linker: "s390x-linux-gnu-gcc",
        runner: Some("qemu-s390x"),
        skips: &["t12_", "t17_", "t18_", "t19_", "t26_", "t15_every_mutator_against_vec"],
        wants: "gcc-s390x-linux-gnu and qemu-user",
    },
];

/// What every strategy depends on, which is tested beside them.
const VOCABULARY: &str = "bufcore";
/// The strategy whose suite needs mappings.
const MAPPED: &str = "bufmirror";

/// Type-checks the published packages for other platforms.
pub(crate) fn cross() -> Result<Outcome> {
    let host = shell::host_triple()?;
    let packages = packages::published()?;
    let mut platforms: Vec<_> = CHECKED.into_iter().filter(|platform| *platform != host).collect();
    for platform in IF_INSTALLED {
        if platform != host && debian::has_library(platform)? {
            platforms.push(platform);
        }
    }
    let mut steps = Steps::new("cross", platforms.len());
    let mut checked = 0;
    for platform in platforms {
        steps.step(&format!("types, {platform}"), || {
            let Some(mut command) = debian::cargo_for(platform, Library::Std)? else {
                return Outcome::skipped(debian::MISSING);
            };
            command.args([
                "check",
                "--lib",
                "--all-features",
                "--target",
                platform,
                "--target-dir",
                "target/cross",
            ]);
            for package in &packages {
                command.args(["--package", &package.name]);
            }
            shell::run(command.env("RUSTFLAGS", "-Dwarnings"))?;
            checked += 1;
            Ok(Outcome::Passed)
        });
    }
    steps.finish()?;
    if checked == 0 {
        return Outcome::skipped(debian::MISSING);
    }
    Ok(Outcome::Passed)
}

/// Runs conformance suites on other processors.
pub(crate) fn emulate() -> Result<Outcome> {
    let mut steps = Steps::new("emulate", EMULATED.len());
    let mut ran = 0;
    for emulated in &EMULATED {
        steps.step(emulated.platform, || {
            let outcome = emulated.test()?;
            ran += usize::from(matches!(outcome, Outcome::Passed));
            Ok(outcome)
        });
    }
    steps.finish()?;
    if ran == 0 {
        return Outcome::skipped("no program of another processor can be linked and run");
    }
    Ok(Outcome::Passed)
}

impl Emulated {
    fn test(&self) -> Result<Outcome> {
        if !self.runs()? {
            return Outcome::skipped(format!("wants {}", self.wants));
        }
        let Some(mut command) = debian::cargo_for(self.platform, Library::Test)? else {
            return Outcome::skipped(debian::MISSING);
        };
        command.args([
            "test",
            "--no-fail-fast",
            "--test",
            "it",
            "--target",
            self.platform,
            "--target-dir",
            "target/emulate",
        ]);
        let tested = strategies::all(&packages::all()?)?.into_iter().map(|strategy| strategy.package);
        for package in tested.filter(|package| package != MAPPED).chain([VOCABULARY.to_owned()]) {
            command.args(["--package", &package]);
        }
        command.arg("--").args(self.skips.iter().flat_map(|test| ["--skip", test]));
        command.env(debian::variable(self.platform, "LINKER"), self.linker);
        if let Some(runner) = self.runner {
            command.env(debian::variable(self.platform, "RUNNER"), runner).env("BUFTEST_RUNNER", runner);
        }
        for (name, value) in SHORT {
            default_env(&mut command, name, value);
        }
        // Built once, and read by nobody.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // No loader of the platform's has to be found.
        let tests = shell::run_tests(command.env("RUSTFLAGS", "-Dwarnings -Ctarget-feature=+crt-static"))?;
        some_ran(&tests)?;
        Ok(Outcome::Passed)
    }

    /// Whether a program can be linked and run: the smallest is.
    fn runs(&self) -> Result<bool> {
        let folder = shell::target_folder().join("emulate");
        std::fs::create_dir_all(&folder)?;
        let (source, program) =
            (folder.join("nothing.c"), folder.join(self.platform).with_extension("nothing"));
        std::fs::write(&source, "int main(void) { return 0; }\n")
            .context("cannot write a program of nothing")?;
        let linked =
            shell::works(Command::new(self.linker).arg("-static").arg(&source).arg("-o").arg(&program));
        let mut command = match self.runner {
            Some(runner) => Command::new(runner),
            None => Command::new(&program),
        };
        if self.runner.is_some() {
            command.arg(&program);
        }
        Ok(linked && shell::works(&mut command))
    }
}
