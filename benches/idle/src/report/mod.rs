//! What the trials found, for people: tables and charts.

pub mod chart;
pub mod table;

use bufadvise::number::exact_memory;
use buftrials::mark;
use buftrials::report::{Report, Section, facts};

use crate::engine::Allocator;
use crate::marks;
use crate::record::Results;

/// The whole report.
#[must_use]
pub fn of(results: &Results) -> Report {
    let course = &results.course;
    let more = format!(
        "{} connections, a frame of {} from each; {} s of silence",
        course.clients,
        exact_memory(course.large_bytes as u64),
        course.silence.as_secs_f64()
    );
    let mut sections: Vec<Section> = Allocator::plain()
        .filter_map(|allocator| {
            let table = table::idle(results, allocator)?;
            Some(Section {
                title: format!("Idle after a burst, over {}", allocator.name()),
                pictures: chart::over(results, allocator).into_iter().collect(),
                tables: vec![table],
                ..Section::default()
            })
        })
        .collect();
    if let Some(first) = sections.first_mut() {
        first.pictures.extend(chart::front(results));
    }
    let mut section = |title: &str, table| {
        sections.push(Section { title: title.to_owned(), tables: vec![table], ..Section::default() });
    };
    if !results.budget.is_empty() {
        section("More than the server may hold", table::budget(&results.budget));
    }
    section("What has to hold", mark::table(&marks::all(results)));
    Report {
        title: "The morning after".to_owned(),
        head: facts(&results.host, &[("course", more)]),
        sections,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::record::fixture;

    #[test]
    fn the_report_has_tables_and_what_has_to_hold() {
        let run = |engine| fixture::run(engine, 1 << 20, 3 << 20, 2 << 20, 1);
        let results = fixture::results(Engine::all().map(run).collect());
        let text = of(&results).markdown();
        for line in [
            "- course: 1000 connections, a frame of 1 MiB from each; 8 s of silence\n",
            "| ShardPool, keeper | 1.0 MiB | 3.0 MiB | 2.0 MiB | 2.00 |",
            "at most 1.2 | 2.00 | **no** |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
