//! The blocks of figures in the documents.

use core::fmt::Write;

use super::{chart, table};
use buftrials::mark;

use crate::contestant::{Allocator, Contestant};
use crate::marks;
use crate::record::Results;

/// The machine, the charts and the tables, in Markdown. The charts are in `folder`, which is empty
/// or ends with a slash.
#[must_use]
pub fn block(results: &Results, folder: &str) -> String {
    let (host, course) = (&results.host, &results.course);
    let mut text = format!(
        "- processor: {}\n- kernel: {}\n- compiler: {}\n- commit: {}\n- date: {}\n",
        host.processor, host.kernel, host.compiler, host.commit, host.date
    );
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "- {} connections, a frame of {} from each; {} s of silence",
        course.clients,
        table::size(course.large_bytes),
        course.silence.as_secs_f64()
    );
    for (name, _) in chart::all(results) {
        let allocator = name.trim_start_matches("idle-").trim_end_matches(".svg");
        let _ = write!(text, "\n![Resident memory over time, over {allocator}]({folder}{name})\n");
    }
    for (title, table) in table::all(results) {
        let _ = write!(text, "\n### {title}\n\n{}", table.markdown());
    }
    let _ = write!(text, "\n### What has to hold\n\n{}", mark::table(&marks::all(results)).markdown());
    text
}

/// One line and one chart, which is at `chart`; `None` where a figure is missing.
#[must_use]
pub fn front(results: &Results, chart: &str) -> Option<String> {
    let kept =
        |contestant| results.median(contestant, Allocator::Glibc, |run| run.idle as f64).map(table::mib);
    let [bytes_mut, codec, bump, shard] =
        [Contestant::BytesMut, Contestant::Codec, Contestant::BumpKeeper, Contestant::ShardKeeper].map(kept);
    Some(format!(
        "A server over glibc has {} connections, each of which once sent a frame of {}. When all are silent, it keeps {} with a \
         `BytesMut` for each, and {} with tokio-util's codec. With the keeper it keeps {} of bump-pointer shards, or {} of the \
         sharded pool. [The morning after](docs/idle.md) has jemalloc and mimalloc too.\n\n![Resident memory of a server over time]({chart})\n",
        results.course.clients,
        table::size(results.course.large_bytes),
        bytes_mut?,
        codec?,
        bump?,
        shard?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Course;
    use crate::record::{Host, IdleRun, Load};

    fn results(contestants: &[Contestant]) -> Results {
        let load = Load { requests: 1, seconds: 1.0, processor_seconds: 1.0 };
        let run = |&contestant: &Contestant| IdleRun {
            contestant,
            allocator: Allocator::Glibc,
            before: 1 << 20,
            peak: 3 << 20,
            idle: 2 << 20,
            idle_lazily_freed: 0,
            busy: load,
            after: load,
            phases: Vec::new(),
            samples: Vec::new(),
        };
        Results {
            host: Host::default(),
            course: Course::FULL,
            idle: contestants.iter().map(run).collect(),
            budget: Vec::new(),
            profile: Vec::new(),
        }
    }

    /// `tidy` refuses longer sentences on the front page.
    #[test]
    fn the_front_page_has_short_sentences() {
        let text = front(&results(&Contestant::ALL), "chart.svg").unwrap();
        assert_eq!(text.matches("2.0 MiB").count(), 4, "{text}");
        for sentence in text.split(". ") {
            assert!(sentence.split_whitespace().count() < 30, "{sentence}");
        }
        assert_eq!(front(&results(&[Contestant::Codec]), "chart.svg"), None);
    }

    #[test]
    fn the_block_has_tables_and_what_has_to_hold() {
        let text = block(&results(&Contestant::ALL), "results/");
        assert!(text.contains("- 1000 connections, a frame of 1 MiB from each; 8 s of silence\n"), "{text}");
        assert!(text.contains("| ShardPool, keeper | 1.0 MiB | 3.0 MiB | 2.0 MiB | 2.00 |"), "{text}");
        assert!(text.contains("at most 1.2 | 2.00 | **no** |"), "{text}");
    }
}
