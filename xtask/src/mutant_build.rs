//! Builds and runs test programs of a copy of the workspace that has mutants in it, of which an environment variable chooses one.

use std::collections::BTreeSet;
use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::models::{Checker, LOOM, SHUTTLE};
use crate::mutant_tree::MutantTree;
use crate::packages::{self, Package};
use crate::sanitize::{THREAD_FLAGS, thread_options};
use crate::shell;
use crate::test::default_env;
use crate::test_binaries::{self, Program, Ran};

/// The environment variable that chooses a mutant by its number.
const CHOSEN: &str = "MUTANT";
/// Its value with which no mutant is chosen, and programs print [`REACHED`].
const REACH: &str = "reach";
/// What a program prints then, in front of the number of each mutant that it comes to.
const REACHED: &str = "mutant in reach: ";

/// What is added to each library that has mutants. It allocates nothing, and orders no threads: its atomics are `core`'s, which no
/// checker sees, and relaxed. It does without the standard library's streams: ThreadSanitizer reports their lock by mistake.
const MODULE: &str = r#"
#[doc(hidden)]
mod chosen_mutant {
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    unsafe extern "C" {
        fn getenv(name: *const u8) -> *const u8;
        fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    }

    const UNKNOWN: usize = usize::MAX;
    const NONE: usize = usize::MAX - 1;
    const REACH: usize = usize::MAX - 2;
    static CHOSEN: AtomicUsize = AtomicUsize::new(UNKNOWN);
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    #[cold]
    fn ask() -> usize {
        let mut text = unsafe { getenv(c"VARIABLE".as_ptr().cast()) };
        let mut number = NONE;
        if !text.is_null() && unsafe { *text } == b'r' {
            number = REACH;
        }
        while !text.is_null() && unsafe { *text }.is_ascii_digit() {
            let digit = usize::from(unsafe { *text } - b'0');
            number = if number == NONE { digit } else { number * 10 + digit };
            text = unsafe { text.add(1) };
        }
        CHOSEN.store(number, Ordering::Relaxed);
        number
    }

    #[cold]
    fn report(mut number: usize) {
        if !REACHED[number].swap(true, Ordering::Relaxed) {
            let mut line = *b"\nPRINTED00000\n";
            for digit in line.iter_mut().rev().skip(1).take(5) {
                *digit += (number % 10) as u8;
                number /= 10;
            }
            unsafe { write(2, line.as_ptr(), line.len()) };
        }
    }

    #[inline]
    pub(crate) fn is(number: usize) -> bool {
        let known = CHOSEN.load(Ordering::Relaxed);
        let chosen = if known == UNKNOWN { ask() } else { known };
        if chosen == REACH {
            report(number);
        }
        chosen == number
    }

    #[inline]
    pub(crate) fn order(number: usize, order: Ordering, weaker: Ordering) -> Ordering {
        if is(number) { weaker } else { order }
    }
}
"#;

/// What runs the tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    #[default]
    Plain,
    /// Nothing either, without the features that are not on by default: some tests are not there with them.
    DefaultFeatures,
    /// ThreadSanitizer, of the nightly toolchain.
    ThreadSanitizer,
    /// The larger models, in schedules that are drawn.
    Shuttle,
    /// The models, in every interleaving.
    Loom,
}

impl Tool {
    /// As headers of mutants name it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "default-features" => Self::DefaultFeatures,
            "thread-sanitizer" => Self::ThreadSanitizer,
            "shuttle" => Self::Shuttle,
            "loom" => Self::Loom,
            _ => return None,
        })
    }

    /// In a list of tests, behind them.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::DefaultFeatures => ", with the default features",
            Self::ThreadSanitizer => ", under ThreadSanitizer",
            Self::Shuttle => ", under shuttle",
            Self::Loom => ", under loom",
        }
    }

    fn checker(self) -> Option<&'static Checker> {
        match self {
            Self::Loom => Some(&LOOM),
            Self::Shuttle => Some(&SHUTTLE),
            _ => None,
        }
    }
}

/// Where mutants are built.
pub(crate) struct MutantBuild {
    tree: MutantTree,
    /// Of the copy.
    pub(crate) packages: Vec<Package>,
    /// The folder of what is built.
    folder: PathBuf,
}

impl MutantBuild {
    /// In `folder`, where what was built before stays.
    pub(crate) fn new(folder: &str) -> Result<Self> {
        let folder = path::absolute(folder)?;
        let tree = MutantTree::at(folder.join("tree"))?;
        let packages = packages::all_of(tree.root())?;
        Ok(Self { tree, packages, folder })
    }

    /// Puts in `files`, by their paths from the root, instead of those that were put in before. Where libraries have some, these may ask
    /// for one of `count` mutants by `crate::chosen_mutant`.
    pub(crate) fn put(&mut self, mut files: Vec<(PathBuf, String)>, count: usize) -> Result<()> {
        let folder = |path: &Path| path.iter().take(2).collect::<PathBuf>();
        let roots: BTreeSet<_> = files.iter().map(|(path, _)| folder(path).join("src/lib.rs")).collect();
        let module = MODULE.replace("VARIABLE", CHOSEN).replace("PRINTED", REACHED);
        let module = module.replace("COUNT", &count.to_string());
        for root in roots {
            let text = match files.iter().position(|(path, _)| *path == root) {
                Some(at) => files.swap_remove(at).1,
                None => read(&root)?,
            };
            files.push((root, format!("#![allow(warnings)]\n{text}{module}")));
        }
        self.tree.put(files)
    }

    /// Builds test targets of a package, `lib` for its unit tests.
    pub(crate) fn build(&self, package: &str, targets: &[&str], tool: Tool) -> Result<Vec<Program>> {
        let mut command = match tool {
            Tool::ThreadSanitizer => shell::cargo_of("nightly").context("no nightly toolchain installed")?,
            _ => shell::cargo(),
        };
        command.current_dir(self.tree.root()).args(["test", "--quiet", "--package", package]);
        let of_package = self.packages.iter().find(|one| one.name == package);
        for target in targets {
            match *target {
                "lib" => command.arg("--lib"),
                target => command.args(["--test", target]),
            };
            let needed = of_package.and_then(|one| one.test(target)).into_iter();
            for feature in needed.flat_map(|test| &test.required_features) {
                command.args(["--features", feature]);
            }
        }
        // Code that a mutant leaves unused is no news.
        let (folder, flags) = match tool.checker() {
            // In the folder of `cargo xtask loom` or `shuttle`, which builds the same dependencies.
            Some(checker) => {
                command.arg("--release");
                (path::absolute(checker.target_dir)?, format!("--cfg {}", checker.name))
            }
            // With the default features: trackers and counters order threads.
            None if tool == Tool::ThreadSanitizer => {
                command.args(["--target", &shell::host_triple()?]);
                (self.folder.join("thread"), THREAD_FLAGS.to_owned())
            }
            None => {
                command.args((tool == Tool::Plain).then_some("--all-features"));
                (self.folder.join("plain"), String::new())
            }
        };
        command.arg("--target-dir").arg(folder).env("RUSTFLAGS", format!("-Awarnings {flags}"));
        // Smaller and sooner there: nobody debugs these.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let mut programs = test_binaries::build(&mut command, &self.packages)?;
        programs.retain(|program| program.package == package);
        Ok(programs)
    }
}

/// What is chosen among the mutants of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    None,
    /// None, and programs say which they come to.
    Reach,
    Mutant(usize),
}

/// Runs some tests of a program by their names, all without any.
pub(crate) fn run(
    program: &Program,
    tests: &[&str],
    tool: Tool,
    choice: Choice,
    limit: Duration,
    set: &[(&str, &str)],
) -> Result<Ran> {
    let mut command: Command = program.command();
    let chosen = match choice {
        Choice::None => String::new(),
        Choice::Reach => REACH.to_owned(),
        Choice::Mutant(number) => number.to_string(),
    };
    command.env(CHOSEN, &chosen).args(tests.first().map(|_| "--exact")).args(tests);
    command.env("TSAN_OPTIONS", thread_options()?).env("RUST_BACKTRACE", "0");
    set.iter().for_each(|(name, value)| default_env(&mut command, name, value));
    // Of models: a schedule that shows the defect is among the first.
    if let Some(checker) = tool.checker() {
        default_env(&mut command, checker.variable, checker.unless_set);
    }
    // Nobody reads the shortest program that fails, and some defects let one of the search go on for ever.
    default_env(&mut command, "PROPTEST_MAX_SHRINK_ITERS", "0");
    let name = tests.join("+").replace("::", "-");
    program.run_as(&[&chosen, "-", &name[..name.len().min(100)]].concat(), &mut command, limit)
}

/// The mutants that a program came to, by [`Choice::Reach`].
pub(crate) fn reached(ran: &Ran) -> BTreeSet<usize> {
    ran.log.lines().filter_map(|line| line.split_once(REACHED)?.1.parse().ok()).collect()
}

/// A file of the sources as they are.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
