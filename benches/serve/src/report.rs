//! What was measured, for people: a table for each work, and a chart.

use bufadvise::number;
use buftrials::allocator::Allocator;
use buftrials::bars::{Bar, Bars};
use buftrials::mark;
use buftrials::report::{Picture, Report, Section, facts};
use buftrials::table::{Table, spread};

use crate::marks;
use crate::plan::Results;
use crate::service::Framework;
use crate::stock::Stock;
use crate::trial::Figure;
use crate::work::{Cell, Engine, Work};

const MIB: f64 = (1 << 20) as f64;
/// The shortest bar stands for this ratio.
const LEAST: f64 = 0.05;

/// The whole report.
#[must_use]
pub fn of(results: &Results) -> Report {
    let amount = &results.amount;
    let sections = Work::all().filter_map(|work| {
        let table = table(results, work)?;
        Some(Section { title: work.title(), tables: vec![table], ..Section::default() })
    });
    let mut sections: Vec<Section> = sections.collect();
    sections.push(Section {
        title: "What has to hold".to_owned(),
        pictures: chart(results).into_iter().collect(),
        tables: vec![mark::table(&marks::all(results))],
        ..Section::default()
    });
    let service = format!(
        "{} uploads and downloads of 64 B to 8 MiB, sizes log-uniform, on {} connections at once (gRPC: {}, up to 4 MB)",
        amount.requests,
        amount.service_connections,
        Framework::Tonic.connections(amount)
    );
    let relay = format!(
        "{} connections, up to {} and 10 000 frames of each",
        amount.relay_connections,
        number::memory(amount.relayed_bytes as u64)
    );
    let stock = format!(
        "{} connections (gRPC: {}), up to {} and 1000 messages of each, then silent",
        amount.stock_connections,
        Stock::Messages.connections(amount),
        number::memory(amount.stock_bytes as u64)
    );
    let burst = format!("{} of buffers", number::memory(amount.burst_bytes as u64));
    let pools = if cfg!(feature = "mmap") { "with the feature `mmap`" } else { "as they are" };
    let measured = "memory is resident, less what the process had before the first request; idle and closed \
                    are all of it; processor time and faults are until the end of the silence";
    let more = [
        ("service", service),
        ("relay", relay),
        ("burst", burst),
        ("connections that remain open", stock),
        ("silence", format!("{} s", amount.silence.as_secs_f64())),
        ("pools", pools.to_owned()),
        ("rounds", format!("{}, medians (lowest – highest)", results.rounds)),
        ("measured", measured.to_owned()),
    ];
    Report { title: "Programs that users know".to_owned(), head: facts(&results.host, &more), sections }
}

/// The table of a work; `None` where it did not run.
fn table(results: &Results, work: Work) -> Option<Table> {
    let mut head = vec![
        "buffers",
        "processor s",
        "user s",
        "kernel s",
        "1000 page faults",
        "peak MiB",
        "kept after MiB",
    ];
    let more: &[(&str, Figure, usize)] = match work {
        Work::Burst { survivors: true, .. } => {
            &[("pages of the survivors MiB", |run| run.held as f64 / MIB, 0)]
        }
        Work::Stock(_) => &[
            ("idle MiB", |run| run.after as f64 / MIB, 1),
            ("closed MiB", |run| run.closed as f64 / MIB, 1),
            ("processor µs a message", |run| run.used.seconds() * 1e6 / run.messages as f64, 1),
        ],
        _ => &[],
    };
    head.extend(more.iter().map(|(name, ..)| name));
    let mut table = Table::new(&head);
    for cell in results.cells(work) {
        let of = |figure: Figure, digits| spread(results.of(cell).map(figure), digits);
        let mut row = vec![
            cell.title(),
            of(|run| run.used.seconds(), 2),
            of(|run| run.used.user, 2),
            of(|run| run.used.kernel, 2),
            of(|run| run.used.faults as f64 / 1e3, 0),
            of(|run| run.peak() / MIB, 0),
            of(|run| run.kept() / MIB, 1),
        ];
        row.extend(more.iter().map(|&(_, figure, digits)| of(figure, digits)));
        if results.of(cell).any(|run| run.killed) {
            row[0].push_str(" (killed)");
        }
        table.rows.push(row);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Bars in relation to what people write today, over the allocator of the system.
fn chart(results: &Results) -> Option<Picture> {
    // The last of each: what is less is as good as nothing.
    let figures: [(&str, &str, Figure, f64); 3] = [
        ("processor time", "s", |run| run.used.seconds(), 0.01),
        ("peak memory", "MiB", |run| run.peak() / MIB, 1.0),
        ("memory 3 s after", "MiB", |run| run.kept() / MIB, 1.0),
    ];
    let group = |work: Work, (name, unit, figure, least): (&str, &str, Figure, f64)| {
        let cells = results.cells(work);
        let is_today = |cell: &&Cell| cell.engine == Engine::Vec && cell.allocator == Allocator::Glibc;
        let today = results.median(*cells.iter().find(is_today)?, figure)?;
        let bars = cells.iter().filter_map(|cell| {
            let found = results.median(*cell, figure)?;
            let name = format!("{}: {} {unit}", cell.title(), number::three_digits(found));
            Some(Bar { name, class: cell.engine.class(), value: found.max(least) / today.max(least) })
        });
        Some((format!("{}: {name}", work.title()), bars.collect()))
    };
    let works = Work::all().filter(|work| {
        matches!(work, Work::Service(_) | Work::Relay { bytes: 4096, .. } | Work::Relay { bounded: true, .. })
    });
    Bars {
        name: "serve",
        title: "In relation to what is written today, over glibc (logarithmic)",
        groups: works.flat_map(|work| figures.map(|figure| group(work, figure))).flatten().collect(),
        place: |value, most| (value.max(LEAST) / LEAST).ln() / (most.max(2.0 * LEAST) / LEAST).ln(),
        mark: Some(1.0),
        show: number::three_digits,
        note: format!("{}, {} cores", results.host.cpu, results.host.cores),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixture;

    #[test]
    fn the_report_has_tables_and_a_chart_and_what_has_to_hold() {
        let burst = Work::Burst { bytes: 4000, survivors: true };
        let runs = [Work::Service(Framework::Axum), burst, Work::Stock(Stock::Upload)].map(|work| {
            [Engine::Vec, Engine::PoolKeeper].map(|one| {
                let times = if one == Engine::Vec { 1.0 } else { 2.0 };
                fixture::run(work, one, times)
            })
        });
        let report = of(&fixture::results(runs.concat()));
        let text = report.markdown();
        for line in [
            "| ShardPool, keeper, glibc | 4.00 | 2.00 | 2.00 | 200 | 100 | 14.0 |\n",
            "| ShardPool, keeper, glibc | 4.00 | 2.00 | 2.00 | 200 | 100 | 14.0 | 7 |\n",
            "| ShardPool, keeper, glibc | 4.00 | 2.00 | 2.00 | 200 | 100 | 40.0 | 40.0 | 40.0 | 4000.0 |\n",
            "to what is written today over glibc, at most 1.1 | 2.00 | **no** |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let chart = &report.sections.last().unwrap().pictures[0].svg;
        assert!(
            chart.contains("Service over axum, budget 64 MiB: peak memory") && chart.contains(">2.00<"),
            "{chart}"
        );
    }
}
