//! `cargo xtask broken`: each trial once against a build with a known defect, which has to make it fail (T20).
//!
//! A trial that passes there proves nothing anywhere, so this command fails then. It fails as well when a trial does not pass on
//! the sound build, which is tried first: only so is a failure the defect's. A defect is built in by
//! `--cfg bufworks_broken="…"`; the build must succeed, so that a defect that rotted is not taken for one that was found.
//!
//! Only the workspace's packages are compiled once for each defect: the flag is set by a wrapper of the compiler's that cargo
//! uses for them alone. The wrappers are shell scripts; the trials need Linux anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::models::SHUTTLE;
use crate::packages::{self, Package};
use crate::programs::{self, Program, Ran};
use crate::queue;
use crate::sanitize::TSAN_SUPPRESSIONS;
use crate::shell;
use crate::test::default_env;

const TARGET_DIR: &str = "target/broken";
/// No trial takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Options of `broken`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this defect.
    #[arg(long)]
    defect: Option<String>,
    /// Print the table as Markdown, and run nothing.
    #[arg(long)]
    list: bool,
    /// Leave out what needs the nightly toolchain.
    #[arg(long)]
    stable: bool,
}

/// One row of the table: a trial, and the defect that shows that it can fail.
struct Case {
    trial: &'static str,
    defect: &'static str,
    /// What the defect does.
    what: &'static str,
    /// The package and its test target.
    target: (&'static str, &'static str),
    /// The tests that have to fail, each by itself; none for the whole of a target without test harness.
    tests: &'static [&'static str],
    tool: Tool,
}

/// What runs the tests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Plain,
    /// ThreadSanitizer, of the nightly toolchain.
    ThreadSanitizer,
    /// The larger models, in schedules that are drawn.
    Shuttle,
}

const SLOT: (&str, &str) = ("bufslot", "it");
const SLOT_LEDGER: (&str, &str) = ("bufslot", "ledger");
const SLOT_RACES: (&str, &str) = ("bufslot", "races");
const RING: (&str, &str) = ("bufring", "it");
const RING_LEDGER: (&str, &str) = ("bufring", "ledger");
const RING_RACES: (&str, &str) = ("bufring", "races");
const BUMP: (&str, &str) = ("bufbump", "it");
const BUMP_LEDGER: (&str, &str) = ("bufbump", "ledger");
const BUMP_RACES: (&str, &str) = ("bufbump", "races");
const SHARD: (&str, &str) = ("bufshard", "it");
const SHARD_LEDGER: (&str, &str) = ("bufshard", "ledger");
const SHARD_RACES: (&str, &str) = ("bufshard", "races");
const MIRROR: (&str, &str) = ("bufmirror", "it");
const MIRROR_RACES: (&str, &str) = ("bufmirror", "races");
const CORE: (&str, &str) = ("bufcore", "it");
const WORKS: (&str, &str) = ("bufworks", "it");
// The unit tests of a package: its library has its name.
const SHARD_MODELS: (&str, &str) = ("bufshard", "bufshard");
const MIRROR_MODELS: (&str, &str) = ("bufmirror", "bufmirror");

const fn case(
    trial: &'static str,
    defect: &'static str,
    what: &'static str,
    target: (&'static str, &'static str),
    tests: &'static [&'static str],
) -> Case {
    Case { trial, defect, what, target, tests, tool: Tool::Plain }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("T1", "nolock", "every slot counts as free", SLOT,
        &["conformance::heap::t01_traffic", "conformance::rejecting::t01_traffic", "conformance::heap::model"]),
    case("T1", "nolock", "every block counts as free", RING,
        &["conformance::heap::t01_traffic", "conformance::small::model"]),
    case("T1", "nolock", "every shard counts as back", BUMP,
        &["conformance::tight::t01_traffic", "conformance::tight::model", "programs::split_freeze_send_and_move"]),
    case("T1", "nolock", "a block that is taken from a cache stays in it", SHARD,
        &["conformance::default::t01_traffic", "conformance::default::model"]),
    case("T2", "nocopy", "a frame that slides or moves leaves its bytes behind", SLOT,
        &["conformance::rejecting::t02_every_way_to_make_a_buffer", "conformance::heap::model"]),
    case("T2", "nocopy", "a frame that slides or moves leaves its bytes behind", RING,
        &["conformance::small::t02_every_way_to_make_a_buffer", "conformance::long_programs"]),
    case("T2", "uncounted", "the parts of a split buffer count as one handle", BUMP,
        &["split::in_every_order", "programs::split_freeze_send_and_move"]),
    case("T2", "recounted", "freezing a part starts the count of handles anew", BUMP,
        &["split::views_of_parts", "programs::split_freeze_send_and_move"]),
    case("T2", "uncounted", "the parts of a split buffer count as one handle", SHARD, &["split::in_every_order"]),
    case("T2", "recounted", "freezing a part starts the count of handles anew", SHARD, &["split::views_of_parts"]),
    case("T3", "earlyclose", "a frame is closed before the fallback has taken it", SLOT,
        &["conformance::rejecting::t03_failed_frames_change_nothing", "conformance::heap::t09_hostile_fallback"]),
    case("T3", "earlyclose", "a frame is closed when it cannot grow", RING,
        &["growing::what_is_exhausted_leaves_the_bytes"]),
    case("T3", "nobounds", "`commit` goes past the capacity", CORE,
        &["conformance::heap::t03_failed_writes_change_nothing"]),
    case("T3", "nobounds", "`commit` and `consume` go past what there is", MIRROR,
        &["refusals::t03_more_than_there_is", "channel::what_does_not_fit_changes_nothing"]),
    Case { trial: "T4", defect: "relaxed", what: "releases are relaxed stores", target: SLOT_RACES,
        tests: &["handover"], tool: Tool::ThreadSanitizer },
    Case { trial: "T4", defect: "relaxed", what: "releases are relaxed stores", target: RING_RACES,
        tests: &["whole_buffers", "every_way"], tool: Tool::ThreadSanitizer },
    Case { trial: "T4", defect: "relaxed", what: "releases are relaxed stores and additions", target: BUMP_RACES,
        tests: &["handover", "parts"], tool: Tool::ThreadSanitizer },
    Case { trial: "T4", defect: "relaxed", what: "releases are relaxed stores and exchanges", target: SHARD_RACES,
        tests: &["handover", "parts", "trims"], tool: Tool::ThreadSanitizer },
    Case { trial: "T4", defect: "relaxed", what: "positions are relaxed stores", target: MIRROR_RACES,
        tests: &["channel", "channel_sleeping", "messages_one_to_one", "messages_one_to_eight", "messages_four_to_four"],
        tool: Tool::ThreadSanitizer },
    case("T5", "nolimit", "the heap pool adds its header to any size", CORE,
        &["conformance::heap::t05_absurd_requests"]),
    case("T5", "nolimit", "a header is added to any size", SHARD,
        &["conformance::default::t05_absurd_requests"]),
    case("T6", "noorphan", "the region goes with the pool", SLOT_LEDGER, &[]),
    case("T6", "noorphan", "the region goes with the ring", RING_LEDGER, &[]),
    case("T6", "noorphan", "the shards of other threads go with the pool", BUMP_LEDGER, &[]),
    case("T6", "nolast", "who gives a shard up counts as the last to use it", BUMP,
        &["conformance::default::t06_buffer_outlives_pool"]),
    Case { trial: "T6", defect: "relaxed", what: "releases are relaxed stores and additions", target: BUMP_RACES,
        tests: &["late_releases", "ends"], tool: Tool::ThreadSanitizer },
    Case { trial: "T6", defect: "relaxed", what: "releases are relaxed stores and exchanges", target: SHARD_RACES,
        tests: &["late_releases", "ends"], tool: Tool::ThreadSanitizer },
    Case { trial: "T6", defect: "relaxed", what: "releases are relaxed stores", target: SLOT_RACES,
        tests: &["late_releases"], tool: Tool::ThreadSanitizer },
    Case { trial: "T6", defect: "relaxed", what: "releases are relaxed stores", target: RING_RACES,
        tests: &["late_releases"], tool: Tool::ThreadSanitizer },
    case("T6", "waits", "dropping a pool waits for its buffers", SLOT,
        &["conformance::heap::t06_buffer_outlives_pool"]),
    case("T6", "waits", "dropping a ring waits for its buffers", RING,
        &["conformance::heap::t06_buffer_outlives_pool"]),
    case("T6", "waits", "dropping a pool waits for its buffers", BUMP,
        &["conformance::default::t06_buffer_outlives_pool"]),
    case("T6", "waits", "dropping a pool waits for its buffers", SHARD,
        &["conformance::default::t06_buffer_outlives_pool"]),
    case("T6", "nowake", "nobody is woken", MIRROR,
        &["channel::t06_an_end_that_goes_wakes_the_other", "channel::sleepers_are_woken",
            "messages::closing_wakes_receivers", "messages::tasks"]),
    case("T6", "earlyclose", "the end is said while a message is being written", MIRROR,
        &["messages::closed_while_it_is_written"]),
    case("T7", "waits", "dropping a pool waits for its buffers", SLOT,
        &["conformance::heap::t07_forgotten_handles"]),
    case("T7", "waits", "dropping a ring waits for its buffers", RING,
        &["conformance::heap::t07_forgotten_handles"]),
    case("T7", "waits", "dropping a pool waits for its buffers", BUMP,
        &["conformance::default::t07_forgotten_handles"]),
    case("T7", "waits", "dropping a pool waits for its buffers", SHARD,
        &["conformance::default::t07_forgotten_handles"]),
    case("T8", "nolock", "every slot counts as free", SLOT,
        &["conformance::heap::t08_threads_that_end"]),
    case("T8", "nolock", "every block counts as free", RING,
        &["conformance::heap::t08_threads_that_end"]),
    case("T8", "nolast", "who gives a shard up counts as the last to use it", BUMP,
        &["conformance::default::t08_threads_that_end"]),
    case("T8", "nolock", "a block that is taken from a cache stays in it", SHARD,
        &["conformance::default::t08_threads_that_end"]),
    case("T9", "nolock", "every slot counts as free", SLOT,
        &["conformance::heap::t09_panicking_consumer"]),
    case("T9", "nolock", "every block counts as free", RING,
        &["conformance::heap::t09_panicking_consumer"]),
    case("T9", "nolock", "a block that is taken from a cache stays in it", SHARD,
        &["conformance::default::t09_panicking_consumer"]),
    case("T10", "noreuse", "no slot is seen to be free again", SLOT,
        &["conformance::heap::t10_pools_in_turn"]),
    case("T10", "noreuse", "no small block is seen to be free again", RING,
        &["conformance::small::t10_pools_in_turn"]),
    case("T11", "nowipe", "nothing is wiped", SLOT,
        &["conformance::wiping::t11_wiped", "conformance::t11_wiped_fallback", "hostile::t11_forgotten_writers"]),
    case("T11", "nowipe", "nothing is wiped", RING,
        &["conformance::wiping::t11_wiped"]),
    case("T11", "padding", "what a vector used is not zeroed", RING,
        &["vectors::used_memory_comes_back_zeroed"]),
    case("T11", "nowipe", "nothing is wiped", BUMP,
        &["conformance::wiping::t11_wiped", "split::wiped"]),
    case("T11", "nowipe", "nothing is wiped", SHARD, &["conformance::wiping::t11_wiped", "split::wiped"]),
    case("T11", "nozero", "`resize` does not write", SLOT,
        &["conformance::heap::t11_secrets"]),
    case("T12", "noreuse", "no shard is seen to be back", BUMP,
        &["shards::resets", "shards::idle_memory_keeps_its_budget", "shards::a_peak_that_others_release_shrinks"]),
    case("T12", "forgetful", "the caches of other threads are left alone", SHARD,
        &["trims::t12_trim_after_a_burst", "trims::t12_trim_to_nothing_after_a_burst", "budget::idle_caches_make_room"]),
    case("T12", "forgetful", "memory that outlives its pool is not kept on the list", SLOT,
        &["conformance::heap::t12_memory"]),
    case("T12", "forgetful", "memory that outlives its ring is not kept on the list", RING,
        &["conformance::heap::t12_memory"]),
    case("T13", "noreuse", "no slot is seen to be free again", SLOT,
        &["conformance::heap::t13_one_held_for_ever"]),
    case("T13", "jams", "no block that is held is stepped over", RING,
        &["conformance::small::t13_one_held_for_ever", "turns::held_buffers_do_not_jam"]),
    case("T14", "noalign", "starts are not aligned", SLOT,
        &["conformance::heap::t14_alignment"]),
    case("T14", "noalign", "starts are not aligned", RING,
        &["conformance::heap::t14_alignment"]),
    case("T14", "noalign", "starts are not aligned", BUMP,
        &["conformance::default::t14_alignment"]),
    case("T14", "noalign", "starts are not aligned", SHARD,
        &["conformance::default::t14_alignment", "starts::lines_by_default"]),
    case("T14", "nolock", "every shard counts as back", BUMP,
        &["conformance::tight::t14_disjoint"]),
    case("T14", "nolock", "a block that is taken from a cache stays in it", SHARD,
        &["conformance::default::t14_disjoint"]),
    case("T14", "nolock", "every slot counts as free", SLOT,
        &["conformance::heap::t14_disjoint"]),
    case("T14", "nolock", "every block counts as free", RING,
        &["conformance::heap::t14_disjoint"]),
    case("T14", "nodrop", "a vector does not drop its values", RING,
        &["vectors::t14_counted_values", "vectors::t14_panicking_drops"]),
    case("T15", "nozero", "`resize` does not write", CORE,
        &["conformance::heap::t15_mutators"]),
    case("T15", "noshift", "`insert` moves nothing up", RING,
        &["vectors::t15_every_mutator_against_vec"]),
    case("T17", "nomlock", "regions are not locked", CORE,
        &["regions::t17_locked_memory_is_locked_until_dropped"]),
    case("T17", "miscount", "releases do not count bytes", SLOT,
        &["conformance::heap::t17_counters"]),
    case("T17", "miscount", "releases do not count bytes", RING,
        &["conformance::heap::t17_counters"]),
    case("T17", "miscount", "releases do not count bytes", BUMP,
        &["conformance::default::t17_counters"]),
    case("T17", "miscount", "releases do not count bytes", SHARD,
        &["conformance::default::t17_counters", "counted::over_threads"]),
    case("T17", "noreuse", "nothing that came back is used again", SHARD,
        &["counted::by_tier_and_class", "threads::the_next_thread_gets_it", "trims::preallocated"]),
    case("T18", "leakmap", "a mapping stays when its lock fails", CORE,
        &["regions::t18_failing_constructions"]),
    case("T18", "leakmap", "the file behind a mapping stays open", MIRROR,
        &["system::t18_no_large_files", "system::t18_no_address_space", "system::t18_ten_thousand_rings_in_turn",
            "system::t18_what_a_ring_holds"]),
    case("T19", "forgetful", "memory that outlives its pool is not kept on the list", SLOT,
        &["conformance::heap::t19_soak"]),
    case("T19", "forgetful", "memory that outlives its ring is not kept on the list", RING,
        &["conformance::heap::t19_soak"]),
    case("T21", "trusting", "a buffer of the fallback's is taken as it is", SLOT,
        &["conformance::heap::t21_lying_fallback", "hostile::t21_lying_fallback_of_a_writer",
            "hostile::a_fallback_that_is_too_short"]),
    case("T22", "earlyclose", "a frame is closed before the fallback has taken it", SLOT,
        &["conformance::heap::t22_panicking_fallback", "hostile::t22_panicking_fallback_of_a_writer"]),
    case("T23", "nolock", "every slot counts as free", SLOT,
        &["conformance::heap::t23_reentering_fallback", "hostile::t23_reentering_fallback_of_a_writer"]),
    case("T27", "jams", "a gap that only the last search finds is not taken", SLOT,
        &["conformance::rejecting::t27_refusals", "conformance::rejecting::t27_equal_buffers"]),
    case("T26", "sweeps", "each late release looks at all memory that outlived its pool", SLOT,
        &["costs::t26_late_releases"]),
    case("T26", "sweeps", "each late release looks at all memory that outlived its ring", RING,
        &["costs::t26_late_releases"]),
    case("T26", "sweeps", "each late release looks at all shards of its pool", BUMP, &["costs::t26_late_releases"]),
    case("T27", "jams", "no block that is held is stepped over", RING,
        &["conformance::heap::t27_refusals", "conformance::heap::t27_equal_buffers"]),
    case("T21", "nozero", "`resize` does not write", CORE, &["hostile::t21_zeroed_means_zeroed"]),
    case("T21", "ticketed", "the tracker's ticket of a part is replaced", BUMP, &["split::noted_again"]),
    case("T21", "ticketed", "the tracker's ticket of a part is replaced", SHARD, &["split::noted_again"]),
    case("T26", "linear", "a thread's caches are one long list", WORKS,
        &["costs::t26_pools_in_turn_bump"]),
    case("T24", "unpolled", "a woken task counts as one that is on its way", MIRROR,
        &["waits::t24_tasks_beside_tasks_that_are_not_polled", "waits::t24_a_thread_beside_a_task_that_is_not_polled",
          "waits::t22_wakers_that_panic"]),
    case("T26", "hoards", "no header is used again", BUMP,
        &["steady::t26_larger_than_a_shard", "steady::t26_much_larger_than_a_shard"]),
    case("budget", "nowake", "no cache is told that somebody waits", SHARD,
        &["budget::a_release_wakes", "budget::many_wait"]),
    case("T24", "firstwaker", "a wait that is polled with another waker keeps the first one", MIRROR,
        &["waits::t24_moved"]),
    case("T24", "onewake", "only the first who could be served is woken", SHARD,
        &["waits::woken_and_not_polled", "waits::forgotten", "waits::programs"]),
    case("T25", "noplain", "a fence that is refused after the start is waited for", SHARD,
        &["system::t25_no_fence_after_the_start"]),
    Case { trial: "models", defect: "onewake", what: "only the first who could be served is woken", target: SHARD_MODELS,
        tests: &["tests::shuttle::shuttle_waiters_behind_forgotten_ones"], tool: Tool::Shuttle },
    Case { trial: "models", defect: "nowake", what: "nobody is woken", target: MIRROR_MODELS,
        tests: &["tests::shuttle::shuttle_channel", "tests::shuttle::shuttle_messages_two_to_two"], tool: Tool::Shuttle },
    case("border", "nocopy", "a ring that copies leaves its bytes behind where it starts over", MIRROR,
        &["borders::every_start_copying", "borders::round_and_round", "model::a_copying_ring_is_a_queue"]),
    case("border", "noshift", "the end of the bytes stays where it is when their start goes back", MIRROR,
        &["borders::every_start_mapped", "borders::round_and_round", "model::a_mapped_ring_is_a_queue"]),
    case("ledger", "forgetful", "the caches of other threads are left alone", SHARD_LEDGER, &[]),
    case("ledger", "forgetful", "memory that outlives its pool is not kept on the list", BUMP_LEDGER, &[]),
    case("ledger", "forgetful", "memory that outlives its pool is not kept on the list", SLOT_LEDGER, &[]),
    case("ledger", "forgetful", "memory that outlives its ring is not kept on the list", RING_LEDGER, &[]),
];

/// A test program: package, test target, and what it runs under.
type Wanted = (&'static str, &'static str, Tool);

/// The programs of one build.
type Built = BTreeMap<Wanted, Program>;

impl Case {
    fn wanted(&self) -> Wanted {
        (self.target.0, self.target.1, self.tool)
    }

    /// Whether the target has the usual test harness.
    fn has_harness(&self) -> bool {
        self.target.1 == "it" || self.tool == Tool::Shuttle
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if self.list {
            println!("| trial | defect | what it does | tests that fail |\n| --- | --- | --- | --- |");
            for case in CASES {
                println!("| {} | `{}` | {} | {} |", case.trial, case.defect, case.what, names(case));
            }
            return Ok(());
        }
        let chosen: Vec<&Case> = CASES
            .iter()
            .filter(|case| self.defect.as_deref().is_none_or(|defect| defect == case.defect))
            .filter(|case| !(self.stable && case.tool == Tool::ThreadSanitizer))
            .collect();
        if chosen.is_empty() {
            bail!("no such defect; `cargo xtask broken --list` shows them all");
        }
        let started = Instant::now();
        let packages = packages::all()?;
        sound(&chosen, &packages)?;
        let defects: BTreeSet<&str> = chosen.iter().map(|case| case.defect).collect();
        let mut passed = Vec::new();
        // The next defect is built while the tests see the last one.
        let (sender, builds) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            let (chosen, packages) = (&chosen, &packages);
            scope.spawn(move || {
                for defect in defects {
                    let cases: Vec<&Case> =
                        chosen.iter().copied().filter(|case| case.defect == defect).collect();
                    let wanted = cases.iter().map(|case| case.wanted()).collect();
                    let built = build(&wanted, Some(defect), packages);
                    // Nobody receives any more after an error.
                    if sender.send((cases, built)).is_err() {
                        break;
                    }
                }
            });
            for (cases, built) in builds {
                try_out(&cases, &built?, &mut passed)?;
            }
            anyhow::Ok(())
        })?;
        if !passed.is_empty() {
            bail!("{} of the tests did not see their defect:\n{}", passed.len(), passed.join("\n"));
        }
        println!("{} trials fail where they have to, in {} s", chosen.len(), started.elapsed().as_secs());
        Ok(())
    }
}

/// Runs the tests of `cases`, of one defect, and adds those to `passed` that do not see it.
fn try_out(cases: &[&Case], built: &Built, passed: &mut Vec<String>) -> Result<()> {
    let mut tasks = Vec::new();
    for case in cases {
        let tests = case.tests.iter().copied().map(Some).chain(case.tests.is_empty().then_some(None));
        tasks.extend(tests.map(|test| (*case, &built[&case.wanted()], test)));
    }
    let mut outcome = Ok(());
    let run = |(case, program, test): (&Case, &Program, Option<&'static str>)| {
        let row =
            format!("{} {} {} {}", case.trial, case.defect, case.target.0, test.unwrap_or(case.target.1));
        (row, run(program, test.as_slice()))
    };
    queue::run(
        tasks,
        |_| "",
        run,
        |(row, ran)| match ran {
            Ok(ran) if ran.passed() => {
                println!("{row}: PASSED, which it must not");
                passed.push(row);
            }
            Ok(ran) => println!("{row}: fails, as it has to ({})", how(&ran)),
            Err(error) => outcome = Err(error.context(row)),
        },
    );
    outcome
}

/// Runs the tests of all `cases` without a defect, where they have to pass.
fn sound(cases: &[&Case], packages: &[Package]) -> Result<()> {
    let wanted: BTreeSet<_> = cases.iter().map(|case| case.wanted()).collect();
    for (wanted, program) in build(&wanted, None, packages)? {
        let of_program = || cases.iter().filter(|case| case.wanted() == wanted);
        let tests: BTreeSet<&str> = of_program().flat_map(|case| case.tests).copied().collect();
        let tests: Vec<&str> = tests.into_iter().collect();
        let has_harness = of_program().any(|case| case.has_harness());
        // A harness takes many names, and runs them side by side; other programs take one.
        let runs = if has_harness || tests.is_empty() { vec![&tests[..]] } else { tests.chunks(1).collect() };
        for names in runs {
            let ran = run(&program, names)?;
            let ran_all = !has_harness || ran.count() == names.len() as u64;
            ensure!(
                ran.passed() && ran_all,
                "without a defect, these have to pass: {} {names:?} ({}):\n{}",
                program.name(),
                how(&ran),
                ran.log
            );
        }
        println!("{}: {} tests pass without a defect", program.name(), tests.len().max(1));
    }
    Ok(())
}

/// Runs some tests of a program by their names.
fn run(program: &Program, tests: &[&str]) -> Result<Ran> {
    let mut command = program.command();
    command.args(tests.first().map(|_| "--exact")).args(tests);
    default_env(&mut command, "BUFTEST_COUNT", "20000");
    // The first report is enough.
    let known = fs::canonicalize(TSAN_SUPPRESSIONS)?;
    let options = format!("halt_on_error=1:allocator_may_return_null=1:suppressions={}", known.display());
    command.env("TSAN_OPTIONS", options);
    // Of models: a schedule that shows the defect is among the first.
    default_env(&mut command, "SHUTTLE_SECONDS", "2");
    command.env("RUST_BACKTRACE", "0");
    let name = tests.join("+").replace("::", "-");
    program.run_as(&name[..name.len().min(100)], &mut command, TIME_LIMIT)
}

/// How a program ended. Signals and time-outs of the processes that trials start for themselves are in the log.
fn how(ran: &Ran) -> String {
    let Some(status) = ran.status else {
        return format!("no end within {TIME_LIMIT:?}");
    };
    let started_alone = ran.log.split_once("failed in its own process (");
    let ended = started_alone.and_then(|(_, rest)| Some(rest.split_once("):")?.0));
    match ended.filter(|ended| ended.starts_with("signal")) {
        Some(signal) => signal.to_owned(),
        None if ran.log.contains("did not end within") => "no end within the trial's limit".to_owned(),
        None if ran.log.contains("ThreadSanitizer: data race") => "data race reported".to_owned(),
        None => status.to_string(),
    }
}

fn names(case: &Case) -> String {
    let (package, target) = case.target;
    let tool = match case.tool {
        Tool::Plain => "",
        Tool::ThreadSanitizer => ", under ThreadSanitizer",
        Tool::Shuttle => ", under shuttle",
    };
    let target = if case.has_harness() { String::new() } else { format!(" `{target}`") };
    let tests: Vec<_> = case.tests.iter().map(|name| format!("`{name}`")).collect();
    let tests = if tests.is_empty() { tests.concat() } else { format!(" {}", tests.join(", ")) };
    format!("`{package}`{target}{tests}{tool}")
}

/// Builds test programs, with a defect or without.
fn build(wanted: &BTreeSet<Wanted>, defect: Option<&str>, packages: &[Package]) -> Result<Built> {
    let mut built = BTreeMap::new();
    for tool in [Tool::Plain, Tool::ThreadSanitizer, Tool::Shuttle] {
        let of_tool: Vec<_> = wanted.iter().copied().filter(|wanted| wanted.2 == tool).collect();
        if of_tool.is_empty() {
            continue;
        }
        // With one command: what they share is compiled once, and what they do not side by side.
        let programs = programs::build(&mut build_command(tool, &of_tool, defect)?, packages)?;
        for wanted in of_tool {
            let (package, target, _) = wanted;
            let is_it = |program: &&Program| program.package == package && program.target == target;
            let found = programs.iter().find(is_it);
            let found =
                found.with_context(|| format!("cargo names no test program `{target}` of {package}"))?;
            built.insert(wanted, found.clone());
        }
    }
    Ok(built)
}

fn build_command(tool: Tool, programs: &[Wanted], defect: Option<&str>) -> Result<Command> {
    let mut command = match tool {
        Tool::Plain | Tool::Shuttle => shell::cargo(),
        Tool::ThreadSanitizer => shell::cargo_of("nightly").context("no nightly toolchain installed")?,
    };
    command.arg("test");
    for package in programs.iter().map(|program| program.0).collect::<BTreeSet<_>>() {
        command.args(["--package", package]);
    }
    let targets: BTreeSet<&str> = match tool {
        Tool::Plain | Tool::ThreadSanitizer => programs.iter().map(|program| program.1).collect(),
        Tool::Shuttle => BTreeSet::new(),
    };
    for target in targets {
        command.args(["--test", target]);
    }
    if tool != Tool::Shuttle {
        command.args(["--target-dir", TARGET_DIR]);
    }
    match tool {
        Tool::Plain => {
            command.arg("--all-features");
        }
        // Not with `track`, whose lock orders threads, and is reported itself (see `tsan-suppressions.txt`).
        Tool::ThreadSanitizer => {
            command.args(["--target", &shell::host_triple()?]);
            command.env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer");
        }
        // In the folder of `cargo xtask shuttle`, which builds the same dependencies.
        Tool::Shuttle => {
            command.args(["--release", "--lib", "--target-dir", SHUTTLE.target_dir]);
            command.env("RUSTFLAGS", "--cfg shuttle");
        }
    }
    // Smaller and sooner there: nobody debugs these, and no two builds of a package are alike.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    if let Some(defect) = defect {
        command.env("RUSTC_WORKSPACE_WRAPPER", wrapper(defect)?);
    }
    Ok(command)
}

/// A program that calls the compiler with a defect switched on.
fn wrapper(defect: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(TARGET_DIR).join("wrappers");
    fs::create_dir_all(&folder)?;
    let path = fs::canonicalize(&folder)?.join(defect);
    let script = format!("#!/bin/sh\nexec \"$@\" --cfg 'bufworks_broken=\"{defect}\"'\n");
    // Not written again while it is as it should be: cargo may look at its age.
    if fs::read_to_string(&path).is_ok_and(|old| old == script) {
        return Ok(path);
    }
    fs::write(&path, script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}
