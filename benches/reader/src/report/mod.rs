//! What was measured, for people: tables and a chart.

pub mod chart;
pub mod table;

use buftrials::mark;
use buftrials::report::{Report, Section, facts};
use buftrials::run::Scale;

use crate::marks;
use crate::plan::Results;

/// The whole report.
#[must_use]
pub fn of(results: &Results) -> Report {
    let rows = if results.scale == Scale::Full { "" } else { ", of the rows that the marks need" };
    let mut sections: Vec<Section> = table::all(results)
        .into_iter()
        .map(|(title, table)| Section { title, tables: vec![table], ..Section::default() })
        .collect();
    let marks = mark::table(&marks::all(results));
    sections.push(Section {
        title: "What has to hold".to_owned(),
        pictures: chart::draw(results).into_iter().collect(),
        tables: vec![marks],
        ..Section::default()
    });
    let head = facts(&results.host, &[("rounds", format!("{}{rows}", results.rounds))]);
    Report { title: "Reading large files".to_owned(), head, sections }
}
