//! Charts, drawn as SVG: lines over a parameter where there is one, dots on a scale where there is
//! none. Times are on logarithmic scales, since they span decades.

use buftrials::report::Picture;

use super::dots::{Dot, Dots, Line};
use super::{lines, view};
use crate::drawing::{number, svg};
use crate::harness::Kind;
use crate::harness::record::{Column, Results, Row, Timing};

/// The width of a chart.
pub(super) const WIDTH: f64 = 960.0;

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// The workload that it shows; empty for the overview.
    pub workload: String,
    /// The drawing as a file of its own.
    pub picture: Picture,
}

impl Chart {
    /// `None` without data.
    fn new(name: &str, workload: &str, title: &str, drawing: Option<String>) -> Option<Self> {
        let picture = Picture { name: name.into(), title: title.into(), svg: svg::standalone(&drawing?) };
        Some(Self { workload: workload.into(), picture })
    }
}

/// All charts that the results have data for.
#[must_use]
pub fn all(results: &Results) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(overview(results));
    for (workload, rows) in view::workloads(results) {
        match workload {
            "reuse" | "handoff" | "file" => {
                let names: Vec<&str> = rows.iter().map(|row| row.parameters.as_str()).collect();
                let title = format!("{workload}: time per operation by size of the buffer");
                let axis = "bytes of the buffer";
                let lines = lines::Lines { results, title: &title, axis, rows: &rows, names: &names };
                charts.extend(Chart::new(workload, workload, &title, lines.draw()));
            }
            "threads" => charts.extend(by_threads(results, &rows)),
            _ => charts.extend(times(results, workload, &rows)),
        }
    }
    charts
}

/// A chart for each size of the buffer; the rows' parameters are `threads × size`.
fn by_threads(results: &Results, rows: &[&Row]) -> Vec<Chart> {
    let mut sizes: Vec<&str> =
        rows.iter().filter_map(|row| Some(row.parameters.split_once(" × ")?.1)).collect();
    sizes.dedup();
    let chart = |size: &str| {
        let of_size: Vec<&Row> =
            rows.iter().copied().filter(|row| row.parameters.ends_with(&format!("× {size}"))).collect();
        let names: Vec<&str> =
            of_size.iter().filter_map(|row| Some(row.parameters.split_once(" × ")?.0)).collect();
        let name = format!("threads-{}", size.replace(' ', ""));
        let title = format!("threads: time per operation of one thread by number of threads, {size}");
        let lines = lines::Lines { results, title: &title, axis: "threads", rows: &of_size, names: &names };
        Chart::new(&name, "threads", &title, lines.draw())
    };
    sizes.into_iter().filter_map(chart).collect()
}

/// The class that gives a contestant its colour and its shape.
pub(super) fn class(results: &Results, name: &str) -> String {
    let column = results.contestants.iter().find(|column| column.name == name);
    let kind = column.map_or(Kind::Peer, |column| column.kind);
    let place = results
        .contestants
        .iter()
        .filter(|column| column.kind == kind)
        .position(|column| column.name == name)
        .unwrap_or(0);
    class_of(kind, place)
}

/// The class of the contestant at `place` among those of its kind.
fn class_of(kind: Kind, place: usize) -> String {
    let letter = match kind {
        Kind::Strategy => 's',
        Kind::Setting => 'v',
        // Not drawn: see `drawn`.
        Kind::Default => 'd',
        Kind::Control => 'c',
        Kind::Peer => 'p',
    };
    format!("{letter}{place}")
}

/// The contestants that charts show. Those without settings have tables: there are more contestants
/// than a chart can hold, and colours.
pub(super) fn drawn(results: &Results) -> impl Iterator<Item = &Column> {
    results.contestants.iter().filter(|column| column.kind != Kind::Default)
}

/// The names of the contestants for which `any` holds, in the order of the report, each with its
/// class.
pub(super) fn named(results: &Results, any: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    drawn(results)
        .filter(|column| any(&column.name))
        .map(|column| (column.name.clone(), class(results, &column.name)))
        .collect()
}

/// A cell in words: who, where, how long.
pub(super) fn words(contestant: &str, row: &Row, timing: &Timing) -> String {
    format!(
        "{contestant} at {} {}: {} ({} to {})",
        row.workload,
        row.parameters,
        number::time(timing.median),
        number::time(timing.p10),
        number::time(timing.p90)
    )
}

/// Mean ratio to `vec` by workload.
fn overview(results: &Results) -> Option<Chart> {
    let workloads = view::workloads(results);
    let lines: Vec<Line> = workloads
        .iter()
        .map(|(workload, rows)| {
            let dot = |name: &str| {
                let (mean, count) = view::mean_ratio(results, rows, name)?;
                let ratio = number::ratio(mean);
                let title = format!("{name} at {workload}: {ratio} times vec, mean of {count} rows");
                Some(Dot { contestant: name.to_owned(), value: mean, span: None, title })
            };
            let columns = drawn(results).filter(|column| column.kind != Kind::Setting);
            let dots = columns.filter_map(|column| dot(&column.name)).collect();
            Line { label: (*workload).to_owned(), dots }
        })
        // `vec` is not in all of them.
        .filter(|line| !line.dots.is_empty())
        .collect();
    let title = "time relative to vec: geometric mean by workload";
    let axis = "times vec (left is faster)";
    let dots = Dots { results, title, axis, mark: Some(1.0), lines: &lines, show: number::ratio };
    Chart::new("overview", "", title, dots.draw())
}

/// Times of a workload without a parameter to draw a line over.
fn times(results: &Results, workload: &str, rows: &[&Row]) -> Option<Chart> {
    let lines: Vec<Line> = rows
        .iter()
        .map(|row| {
            let dot = |name: &str| {
                let timing = results.cell(&row.id, name)?.timing()?;
                let span = Some((timing.p10, timing.p90));
                let title = words(name, row, timing);
                Some(Dot { contestant: name.to_owned(), value: timing.median, span, title })
            };
            let dots = drawn(results).filter_map(|column| dot(&column.name)).collect();
            Line { label: row.parameters.clone(), dots }
        })
        .collect();
    let title = format!("{workload}: time per operation");
    let axis = "time per operation (left is faster)";
    let dots = Dots { results, title: &title, axis, mark: None, lines: &lines, show: number::time };
    Chart::new(workload, workload, &title, dots.draw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::colours::has_colour;
    use crate::harness::contestant::FLOOR;

    #[test]
    fn charts_are_without_defaults() {
        let results = crate::report::defaults::tests::sample();
        // Dots, and lines.
        for workload in ["reuse", "mixed"] {
            let mut results = results.clone();
            results.cases.iter_mut().for_each(|row| row.workload = workload.into());
            let charts = all(&results);
            assert_eq!(charts.len(), 2, "the overview, and that of {workload}");
            for chart in charts {
                let drawing = chart.picture.svg;
                assert!(drawing.contains("slot"), "{drawing}");
                assert!(!drawing.contains("-default"), "{drawing}");
            }
        }
    }

    /// One without a colour would be drawn in black, or where it is a hollow dot not at all.
    #[test]
    fn every_contestant_has_a_colour() {
        let all = crate::adapters::all();
        for (index, one) in all.iter().enumerate().filter(|(_, one)| one.kind != Kind::Default) {
            let place = all[..index].iter().filter(|other| other.kind == one.kind).count();
            let class = class_of(one.kind, place);
            assert!(has_colour(&class), "{} has no colour {class}", one.name);
            assert_eq!(class == svg::FLOOR, one.name == FLOOR, "the legend draws {class} hollow");
        }
    }
}
