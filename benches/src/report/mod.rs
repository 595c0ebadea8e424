//! The report on the matrix: its sections, and its pictures.

mod chart;
mod dots;
mod front;
mod measures;
mod sections;
mod verdict;
mod view;

use buftrials::report::{Report, facts};
use buftrials::table::Table;

use crate::harness::record::{Outcome, Results};
use bufadvise::number;

/// How it was measured, in short.
const METHOD: &str = "The first table has the traffic of the guide of `bufworks`, and the strategy that is the fastest there of those that the \
guide names and that were measured. It is so many times as fast as `Vec` in the geometric mean of the rows of the workloads that are \
such traffic; its memory is the largest growth of resident memory in a row. Jobs in `Vec`s go through a queue behind a lock. Each row runs in processes of its own. Every engine first proves that it keeps the bytes of several \
live buffers apart. Then all take turns, a few milliseconds each, in an order that rotates from round to round. Times are the \
median over the rounds of several processes; ratios are formed of medians of the same rounds, since times on a shared machine mean little by \
themselves. Building pools is not timed. Heap calls, fallbacks and memory come from separate processes that time nothing. \
`noop` keeps no books at all: it shows what the workload costs by itself. The rest is in `docs/benchmarking.md`.";

/// The whole report.
#[must_use]
pub fn of(results: &Results) -> Report {
    let (host, settings) = (&results.host, &results.settings);
    let more = [
        ("memory", number::memory(host.memory_bytes)),
        ("governor", host.governor.clone().unwrap_or_else(|| "not readable".into())),
        (
            "settings",
            format!(
                "{}: {} processes a row, each of up to {} rounds of {} ms; {} single operations for the tails; {:.0} s in all",
                settings.scale,
                settings.layouts,
                settings.rounds,
                settings.run_ms,
                settings.samples,
                results.seconds
            ),
        ),
    ];
    let mut sections = sections::all(results);
    let method = format!("{}\n{METHOD}", facts(host, &more));
    sections.push(sections::text_section("Machine and method", method));
    Report { title: "Which strategy to take".into(), head: String::new(), sections }
}

/// Prints what `--test` found: how many cells of each engine are right.
pub fn print_test(results: &Results) {
    let mut table = Table::new(&["engine", "right", "unsupported", "failed"]);
    for column in &results.engines {
        let count = |which: fn(&Outcome) -> bool| {
            let cells = results.cells.iter().filter(|record| record.engine == column.name);
            cells.filter(|record| which(&record.outcome)).count().to_string()
        };
        table.rows.push(vec![
            column.name.clone(),
            count(|outcome| matches!(outcome, Outcome::Checked)),
            count(|outcome| matches!(outcome, Outcome::Unsupported { .. })),
            count(Outcome::is_failure),
        ]);
    }
    println!("{}", table.plain(usize::MAX));
}
