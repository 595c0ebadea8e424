//! `cargo xtask coverage`: which lines of the published packages the tests reach, and the fuzz targets' inputs.
//!
//! It needs a nightly toolchain with `llvm-tools`, whose `llvm-cov` knows the format of what the compiler of the same toolchain writes.
//! A distribution's `llvm-cov` of the same LLVM does, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::features::SHORT;
use crate::fuzz;
use crate::packages::{self, Package};
use crate::programs::{self, Program};
use crate::queue;
use crate::shell::{self, command};
use crate::test::default_env;

const TARGET_DIR: &str = "target/coverage";
const FLAGS: &str = "-Cinstrument-coverage";
/// No program takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(900);
/// Test programs that are run, besides the unit tests. `stress` and what must not compile reach nothing else.
const SUITES: [&str; 10] =
    ["advise", "heap", "it", "ledger", "memory", "oom", "races", "reentrant", "reentry", "static_region"];
/// A package of tests of the published ones, because they need many crates of others.
const OF_RUNTIMES: &str = "bufruntimes";
/// Code that is there for tests alone.
const TESTS: [&str; 3] = ["/tests/", "/tests.rs", "/benches/"];

/// Options of `coverage`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the tests, without the inputs of the fuzz targets.
    #[arg(long)]
    tests: bool,
    /// Print the lines that no test or input reaches, file by file.
    #[arg(long)]
    missing: bool,
}

/// Lines with how often each was reached, by file.
type Lines = BTreeMap<PathBuf, BTreeMap<usize, u64>>;

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let tools = Tools::find()?;
        let packages = packages::published()?;
        let profiles = PathBuf::from(TARGET_DIR).join("profiles");
        if profiles.is_dir() {
            fs::remove_dir_all(&profiles)?;
        }
        fs::create_dir_all(&profiles)?;
        let profiles = fs::canonicalize(&profiles)?;

        let mut of_tests = Lines::new();
        tools.add(&mut of_tests, &profiles, &run_tests(&packages, &profiles)?)?;
        let mut all = of_tests.clone();
        if !self.tests {
            tools.add(&mut all, &profiles, &fuzz::cover(TARGET_DIR, FLAGS, &profiles)?)?;
        }
        println!("{}", table(&packages, &of_tests, &all)?);
        if self.missing {
            print!("{}", missing(&packages, &all));
        }
        Ok(())
    }
}

/// Builds and runs the test programs, with all features and with those by default, and returns where the programs are.
fn run_tests(published: &[Package], profiles: &Path) -> Result<Vec<PathBuf>> {
    let mut packages = packages::all()?;
    packages.retain(|package| package.published || package.name == OF_RUNTIMES);
    let packages = &packages[..];
    let mut built: Vec<Program> = Vec::new();
    for features in [Some("--all-features"), None] {
        let mut command = shell::cargo_of("nightly").context("no nightly toolchain installed")?;
        command.args(["test", "--target", &shell::host_triple()?, "--target-dir", TARGET_DIR]).args(features);
        command.args(packages.iter().flat_map(|package| ["--package", &package.name])).arg("--lib");
        let there = SUITES.iter().filter(|name| packages.iter().any(|package| package.test(name).is_some()));
        command.args(there.flat_map(|name| ["--test", name]));
        command.env("RUSTFLAGS", FLAGS).env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The compiler's wrappers and build scripts are instrumented as well.
        command.env("LLVM_PROFILE_FILE", "/dev/null");
        built.extend(programs::build(&mut command, packages)?);
    }
    // A program that does not depend on the features is built once.
    let mut seen = BTreeSet::new();
    built.retain(|program| seen.insert(program.executable.clone()));
    let mut failed = Vec::new();
    let run = |program: Program| {
        let mut command = program.command();
        for (name, value) in SHORT {
            default_env(&mut command, name, value);
        }
        default_env(&mut command, "BUFTEST_STEADY_SECONDS", "1");
        command.env(
            "LLVM_PROFILE_FILE",
            profiles.join(format!("{}-%p.profraw", file_name(&program.executable))),
        );
        let ran = program.run(&mut command, TIME_LIMIT);
        (program, ran)
    };
    queue::run(
        built.clone(),
        |_| "",
        run,
        |(program, ran)| match ran {
            Ok(ran) if ran.passed() => println!("{}: {:.1} s", program.name(), ran.took.as_secs_f64()),
            // The lines that it reached count all the same: limits of time and of memory are for programs that are not slowed down.
            Ok(ran) => println!("{}: {}; this command does not judge tests", program.name(), ran.how()),
            Err(error) => failed.push(error),
        },
    );
    if let Some(error) = failed.pop() {
        return Err(error);
    }
    // What tests start is beside their folder.
    let folder = Path::new(TARGET_DIR).join(shell::host_triple()?).join("debug");
    let programs = published.iter().filter(|package| package.is_program());
    let started = programs.map(|package| folder.join(&package.name));
    Ok(built.into_iter().map(|program| program.executable).chain(started).collect())
}

/// The programs that read profiles of a nightly toolchain: its own, or a distribution's of the same LLVM.
struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    fn find() -> Result<Self> {
        let nightly = |arguments: &[&str]| {
            let mut ask = command!("rustup run nightly rustc {arguments...}");
            shell::output(ask.env_remove("RUSTUP_TOOLCHAIN")).context("no nightly toolchain installed")
        };
        let root = nightly(&["--print", "sysroot"])?;
        let folder: PathBuf = [root.trim(), "lib/rustlib", &shell::host_triple()?, "bin"].iter().collect();
        let own = Self { profdata: folder.join("llvm-profdata"), cov: folder.join("llvm-cov") };
        let version = llvm_version(&nightly(&["-vV"])?).context("the compiler does not name its LLVM")?;
        let [profdata, cov] = ["llvm-profdata-", "llvm-cov-"].map(|name| [name, &version].concat().into());
        let of_distribution = Self { profdata, cov };
        let found = [own, of_distribution].into_iter().find(Self::work);
        found.with_context(|| {
            format!(
                "the nightly toolchain has no llvm-cov: `rustup component add llvm-tools --toolchain nightly` installs it, \
                 or Debian's package llvm-{version}"
            )
        })
    }

    fn work(&self) -> bool {
        [&self.profdata, &self.cov]
            .into_iter()
            .all(|tool| shell::works(process::Command::new(tool).arg("--version")))
    }

    /// Adds what the profiles in a folder say of the lines of `programs`.
    fn add(&self, lines: &mut Lines, profiles: &Path, programs: &[PathBuf]) -> Result<()> {
        let merged = PathBuf::from(TARGET_DIR).join("all.profdata");
        let Self { profdata, cov } = self;
        shell::run(&mut command!("{profdata} merge --sparse --failure-mode=all -o {merged} {profiles}"))?;
        let root = fs::canonicalize(".")?;
        let crates = root.join("crates");
        // One program at a time. Of a function that several have, llvm-cov takes what the first one says of it, and a program that only
        // links the function's library says that nobody calls it.
        for program in programs {
            let mut export =
                command!("{cov} export --format=lcov --instr-profile {merged} {program} --sources {crates}");
            match shell::output(&mut export) {
                Ok(text) => add(lines, &text, &root)?,
                // A program that does nothing without some feature.
                Err(error) if error.to_string().contains("no coverage data found") => {}
                Err(error) => return Err(error),
            }
        }
        ensure!(!lines.is_empty(), "llvm-cov names no file of the packages");
        Ok(())
    }
}

/// The first number of the version of LLVM in what `rustc -vV` prints.
fn llvm_version(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next().map(str::to_owned)
}

/// Adds the lines of our own files from a tracefile of lcov's format. Of what several say of a line, the highest count stays.
fn add(lines: &mut Lines, text: &str, root: &Path) -> Result<()> {
    let mut file = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("SF:") {
            let ours = Path::new(name).strip_prefix(root).ok();
            let is_test = TESTS.iter().any(|part| name.contains(part));
            file = ours.filter(|path| path.starts_with("crates") && !is_test).map(Path::to_owned);
        } else if let (Some(counted), Some(file)) = (line.strip_prefix("DA:"), &file) {
            let mut numbers = counted.split(',').map(str::parse::<u64>);
            let (Some(Ok(at)), Some(Ok(count))) = (numbers.next(), numbers.next()) else {
                bail!("no line and count: `{line}`");
            };
            let reached = lines.entry(file.clone()).or_default().entry(usize::try_from(at)?).or_default();
            *reached = count.max(*reached);
        }
    }
    Ok(())
}

/// The files of a package among `lines`.
fn of<'a>(package: &Package, lines: &'a Lines) -> impl Iterator<Item = (&'a Path, &'a BTreeMap<usize, u64>)> {
    let folder = Path::new("crates").join(&package.name);
    lines
        .iter()
        .filter(move |(file, _)| file.starts_with(&folder))
        .map(|(file, lines)| (file.as_path(), lines))
}

/// How many lines there are, and how many of them were reached.
fn sum<'a>(files: impl Iterator<Item = (&'a Path, &'a BTreeMap<usize, u64>)>) -> (usize, usize) {
    files.fold((0, 0), |(all, reached), (_, lines)| {
        (all + lines.len(), reached + lines.values().filter(|&&count| count > 0).count())
    })
}

fn table(packages: &[Package], tests: &Lines, all: &Lines) -> Result<String> {
    let mut text = String::from(
        "\n| package | lines | reached by tests | with the corpora |\n| --- | ---: | ---: | ---: |\n",
    );
    let mut row = |name: &str, tests: (usize, usize), all: (usize, usize)| {
        let part = |(of, reached): (usize, usize)| 100.0 * reached as f64 / of.max(1) as f64;
        text += &format!("| {name} | {} | {:.1} % | {:.1} % |\n", all.0, part(tests), part(all));
    };
    for package in packages.iter().filter(|package| of(package, all).next().is_some()) {
        row(&format!("`{}`", package.name), sum(of(package, tests)), sum(of(package, all)));
    }
    let whole = |lines| sum(packages.iter().flat_map(|package| of(package, lines)));
    row("all", whole(tests), whole(all));
    Ok(text)
}

/// Each file with the lines that nothing reached, those with the most first.
fn missing(packages: &[Package], all: &Lines) -> String {
    let mut files: Vec<(usize, String)> = Vec::new();
    for (file, lines) in packages.iter().flat_map(|package| of(package, all)) {
        let unreached: Vec<usize> =
            lines.iter().filter(|(_, count)| **count == 0).map(|(at, _)| *at).collect();
        if !unreached.is_empty() {
            files.push((unreached.len(), format!("{}: {}\n", file.display(), ranges(&unreached))));
        }
    }
    files.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    files.into_iter().map(|(_, line)| line).collect()
}

/// Numbers in order, those side by side as a range.
fn ranges(numbers: &[usize]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for range in numbers.chunk_by(|a, b| a + 1 == *b) {
        texts.push(match range {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => continue,
        });
    }
    texts.join(", ")
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_once_for_each_file() {
        let text = "SF:/r/crates/a/src/x.rs\nDA:1,0\nDA:2,3\nend_of_record\nSF:/r/crates/a/src/x.rs\nDA:1,4\nend_of_record\n\
                    SF:/r/crates/a/src/tests/y.rs\nDA:1,1\nSF:/other/z.rs\nDA:9,9\n";
        let (mut lines, root) = (Lines::new(), Path::new("/r"));
        add(&mut lines, text, root).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[Path::new("crates/a/src/x.rs")], BTreeMap::from([(1, 4), (2, 3)]));
        assert!(add(&mut lines, "SF:/r/crates/a/src/x.rs\nDA:nine\n", root).is_err());
        // A program that does not call what another one does takes nothing from it.
        add(&mut lines, "SF:/r/crates/a/src/x.rs\nDA:1,0\nDA:2,9\nDA:3,0\n", root).unwrap();
        assert_eq!(lines[Path::new("crates/a/src/x.rs")], BTreeMap::from([(1, 4), (2, 9), (3, 0)]));
    }

    #[test]
    fn the_version_is_read() {
        let text = "rustc 1.97.0-nightly\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.4\n";
        assert_eq!(llvm_version(text).as_deref(), Some("22"));
        assert_eq!(llvm_version("rustc 1.97.0\n"), None);
    }

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        assert_eq!(ranges(&[]), "");
    }
}
