//! The verdict: what to take for each kind of traffic in the guide.

use buftrials::report::Section;
use buftrials::table::Table;

use super::view;
use crate::harness::engine::BASELINE;
use crate::harness::record::{Results, Row};
use bufadvise::number;

/// A kind of traffic.
struct Traffic {
    /// Its name in the guide's table.
    name: &'static str,
    /// The workloads that are such traffic.
    workloads: &'static [&'static str],
    /// The engines that the guide's tree leads to, each with the guide's word for it.
    engines: &'static [(&'static str, &'static str)],
}

const SLOT_OR_RING: &[(&str, &str)] = &[("slot", "slot pool"), ("ring", "ring")];

/// The kinds that the matrix has rows of, in the guide's order. `shape` is not among them: its rows
/// were searched for because a strategy is slow there.
const TRAFFIC: [Traffic; 6] = [
    Traffic {
        name: "a codec reads a header, then the payload that it announces, and passes both on",
        workloads: &["frame", "growing"],
        engines: SLOT_OR_RING,
    },
    Traffic {
        name: "short-lived packets or rows, made by one thread",
        workloads: &["reuse", "live", "pools", "burst", "queue", "short-lived", "handoff"],
        engines: SLOT_OR_RING,
    },
    Traffic {
        name: "a server whose threads read, compute and answer, all sizes",
        workloads: &["mixed", "tasks", "threads", "replay"],
        engines: &[("shard", "sharded pool")],
    },
    Traffic {
        name: "a parser over a socket; samples between two threads",
        workloads: &["stream", "parse", "spsc"],
        engines: &[("mirror", "mirrored ring")],
    },
    Traffic {
        name: "jobs for a pool of workers",
        workloads: &["messages"],
        engines: &[("mirror", "mirrored ring")],
    },
    Traffic {
        name: "a few large files, one after the other",
        workloads: &["file"],
        engines: &[("shard-huge", "sharded pool over huge pages"), ("shard", "sharded pool")],
    },
];

/// The section, whose table stands before everything else; `None` where no traffic was timed.
pub(super) fn section(results: &Results) -> Option<Section> {
    let mut table = Table::new(&["traffic", "take", "times as fast as `Vec`", "peak memory (of `Vec`)"]);
    table.rows.extend(TRAFFIC.iter().filter_map(|traffic| line(results, traffic)));
    if results.cells.iter().all(|record| record.peak_bytes.is_none()) {
        table.head.truncate(3);
        table.rows.iter_mut().for_each(|row| row.truncate(3));
    }
    (!table.rows.is_empty()).then(|| Section { tables: vec![table], ..Section::default() })
}

/// The line of one kind; `None` where nothing of it was timed with `Vec`.
fn line(results: &Results, traffic: &Traffic) -> Option<Vec<String>> {
    let is_of = |row: &&Row| traffic.workloads.contains(&row.workload.as_str());
    let rows: Vec<&Row> = results.cases.iter().filter(is_of).collect();
    let means = traffic.engines.iter().filter_map(|&(engine, words)| {
        let (mean, count) = view::mean_ratio(results, &rows, engine)?;
        Some((engine, words, mean, count))
    });
    // An engine that serves fewer of the rows is not compared by the mean of those.
    let best = |one: &(_, _, f64, usize), other: &(_, _, f64, usize)| {
        one.3.cmp(&other.3).then(other.2.total_cmp(&one.2))
    };
    let (engine, words, mean, _) = means.max_by(best)?;
    let take = if mean < 1.0 - view::NOISE {
        words
    } else if mean < 1.0 + view::NOISE {
        "nothing: `Vec` is as fast"
    } else {
        "nothing: `Vec` is faster"
    };
    let peak = |engine| {
        let peaks = rows.iter().filter_map(|row| results.cell(&row.id, engine)?.peak_bytes);
        peaks.max().map_or_else(|| "–".into(), number::memory)
    };
    let memory = format!("{} ({})", peak(engine), peak(BASELINE));
    Some(vec![traffic.name.into(), take.into(), number::three_digits(1.0 / mean), memory])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Kind;
    use crate::harness::record::fixture::{column, results, timed};
    use crate::workloads::WORKLOADS;

    #[test]
    fn traffic_is_the_guides() {
        let guide = include_str!("../../../crates/bufworks/docs/guide.md");
        let mut rest = guide;
        for traffic in &TRAFFIC {
            rest = rest.split_once(&format!("\n| {} |", traffic.name)).expect(traffic.name).1;
            for (_, words) in traffic.engines {
                assert!(guide.contains(words), "{words}");
            }
        }
        let known: Vec<_> = crate::adapters::all().iter().map(|engine| engine.name).collect();
        assert!(TRAFFIC.iter().flat_map(|traffic| traffic.engines).all(|(name, _)| known.contains(name)));
        let mut named: Vec<_> = TRAFFIC.iter().flat_map(|traffic| traffic.workloads).collect();
        let mut all: Vec<_> =
            WORKLOADS.iter().map(|(name, _)| name).filter(|&&name| name != "shape").collect();
        named.sort_unstable();
        all.sort_unstable();
        assert_eq!(named, all, "each workload is traffic of one kind");
    }

    #[test]
    fn the_page_begins_with_what_to_take() {
        let names = ["slot", "ring", "shard", "mirror"];
        let mut columns: Vec<_> = names.map(|name| column(name, Kind::Strategy)).into();
        columns.push(column("vec", Kind::Control));
        let cell = |case: &str, engine: &str, median, mib: u64| {
            let mut record = timed(case, engine, median);
            record.peak_bytes = (mib > 0).then_some(mib << 20);
            record
        };
        let mut results = results(
            columns,
            vec![
                // One row alone, in which the ring is the fastest: the slot pool serves both.
                cell("frame/stay", "vec", 8.0, 3),
                cell("frame/stay", "slot", 4.0, 1),
                cell("frame/stay", "ring", 1.0, 1),
                cell("frame/wait", "vec", 8.0, 9),
                cell("frame/wait", "slot", 1.0, 5),
                // The slot pool is not for several threads.
                cell("mixed/zipf", "slot", 1.0, 0),
                cell("mixed/zipf", "shard", 4.0, 0),
                cell("mixed/zipf", "vec", 10.0, 0),
                // No `Vec` to compare with.
                cell("spsc/8B", "mirror", 1.0, 0),
                cell("messages/8B", "mirror", 2.0, 0),
                cell("messages/8B", "vec", 1.0, 0),
                cell("file/16M", "shard", 100.0, 2),
                cell("file/16M", "vec", 96.0, 2),
            ],
        );
        results.compare();
        let page = super::super::of(&results).markdown();
        let (first, _) = page.split_once("\n\n<details>").expect("all else is folded");
        let table: Vec<&str> = first.lines().skip(2).collect();
        let expected = [
            "| traffic | take | times as fast as `Vec` | peak memory (of `Vec`) |",
            "| --- | ---: | ---: | ---: |",
            "| a codec reads a header, then the payload that it announces, and passes both on \
             | slot pool | 4.00 | 5.0 MiB (9.0 MiB) |",
            "| a server whose threads read, compute and answer, all sizes | sharded pool | 2.50 | – (–) |",
            "| jobs for a pool of workers | nothing: `Vec` is faster | 0.50 | – (–) |",
            "| a few large files, one after the other | nothing: `Vec` is as fast | 0.96 | 2.0 MiB (2.0 MiB) |",
        ];
        assert_eq!(table, expected, "{page}");
        assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
        results.cells.iter_mut().for_each(|record| record.peak_bytes = None);
        assert_eq!(section(&results).unwrap().tables[0].rows[0].len(), 3, "no memory was measured");
        results.cases.clear();
        assert_eq!(section(&results), None);
    }
}
