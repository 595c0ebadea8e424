//! `cargo xtask busy`: the tests of waiting beside sixteen endless loops, where wake-ups that are lost show. Whoever sleeps although there is
//! something for it fails its test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::job_queue;
use crate::test;
use crate::test_binaries::{Program, Ran};

/// Threads that compute for ever, at the priority of all others.
const LOOPS: usize = 16;
/// Parts of the names of tests in which somebody waits for others. Each of them has to be in some.
const WAITS: [&str; 6] = ["t24_", "waits::", "wakers::", "channel::", "messages::", "handoff::"];
/// Parts of the names of tests that measure time or memory, make the system refuse calls, or poll, each turn behind all loops: they show
/// nothing more here.
const OTHERS: [&str; 9] =
    ["t12_", "t18_", "t19_", "t39_", "t25_", "t26_", "bytes_between_threads", "cost", "resident"];
/// The programs of `cargo xtask stress`.
const STRESS: &str = "stress";
/// Programs that run at once: while some wait, others have something to do.
const AT_ONCE: usize = 4;
/// Nothing runs for so long, unless it is stuck where no test looks.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a wait of the stress programs may take. Their threads come to run every few hundred milliseconds.
const STUCK_SECONDS: &str = "20";
/// The tests do little each time, and are repeated.
const FEW: [(&str, &str); 2] = [("BUFTEST_COUNT", "5000"), ("BUFTEST_CASES", "16")];

/// Options of `busy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The minutes in all, without the build; a fraction will do. Everything runs once at least.
    #[arg(default_value_t = 1.5)]
    minutes: f64,
    /// Run only the tests of this package; without any, those of all packages run.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
}

/// A program, and the tests of it that are run; none for a program without the test harness.
#[derive(Debug)]
struct Task {
    program: Program,
    tests: Vec<String>,
}

/// Ends the loops when it goes, in whichever way.
#[derive(Debug)]
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        // ORDER: Relaxed: it is all that the loops read.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.minutes > 0.0 && self.minutes.is_finite(), "a number of minutes");
        let time = Duration::from_secs_f64(60.0 * self.minutes);
        let tasks = self.tasks()?;
        let started = Instant::now();
        let over = AtomicBool::new(false);
        let ran = thread::scope(|scope| {
            let _over = Over(&over);
            for _ in 0..LOOPS {
                scope.spawn(|| {
                    // ORDER: Relaxed, as in `drop`.
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            repeat(&tasks, started + time, time / 8)
        });
        let (rounds, took) = (ran?, started.elapsed().as_secs_f64());
        println!("busy: {} programs, {rounds} rounds, {took:.0} s", tasks.len());
        Ok(())
    }

    /// Builds everything as `test --long` does, and picks what waits.
    fn tasks(&self) -> Result<Vec<Task>> {
        let mut unused = WAITS.to_vec();
        let mut tasks = Vec::new();
        for program in test::released(&self.package)? {
            let mut tests = Vec::new();
            if program.kind == "lib" || program.target == "it" {
                tests = program.tests(&mut program.command(), LIMIT)?;
                tests.retain(|test| {
                    unused.retain(|part| !test.contains(part));
                    WAITS.iter().any(|part| test.contains(part))
                        && !OTHERS.iter().any(|part| test.contains(part))
                });
            }
            if !tests.is_empty() || program.target == STRESS {
                tasks.push(Task { program, tests });
            }
        }
        ensure!(!tasks.is_empty(), "nothing waits");
        ensure!(!self.package.is_empty() || unused.is_empty(), "no test has {unused:?} in its name");
        Ok(tasks)
    }
}

/// Runs all tasks until `end`, each once at least; says how often. Stops after the round in which one fails.
fn repeat(tasks: &[Task], end: Instant, slice: Duration) -> Result<usize> {
    for round in 1.. {
        let mut failed = Vec::new();
        let work = |task: &Task| {
            let is_over = round > 1 && Instant::now() >= end;
            let ran = (!is_over).then(|| task.run(slice)).transpose()?;
            anyhow::Ok(ran.map(|ran| (task.program.name(), ran)))
        };
        job_queue::try_run(tasks.iter().collect(), AT_ONCE, work, |done| {
            let Some((name, ran)) = done else { return };
            let (count, took) = (ran.count(), ran.took.as_secs_f64());
            println!("{name:<32} {count:>4} passed {took:>7.1} s, {}", ran.how());
            failed.extend(ran.outcome().err().map(|error| format!("{name}: {error:#}")));
        })?;
        ensure!(failed.is_empty(), "busy: {}", failed.join("\n\n"));
        if Instant::now() >= end {
            return Ok(round);
        }
    }
    unreachable!("it ends with the time")
}

impl Task {
    fn run(&self, slice: Duration) -> Result<Ran> {
        let mut command = self.program.command();
        FEW.iter().for_each(|(name, value)| test::default_env(&mut command, name, value));
        test::default_env(&mut command, "BUFTEST_STUCK_SECONDS", STUCK_SECONDS);
        command.env("BUFTEST_STRESS_SECONDS", format!("{:.1}", slice.as_secs_f64()));
        if self.program.target != STRESS {
            // More at once than there are processors: most of them wait.
            command.args(["--exact", "--test-threads=8"]).args(&self.tests);
        }
        self.program.run_as("busy", &mut command, LIMIT)
    }
}
