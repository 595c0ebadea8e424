//! Charts, drawn as SVG: lines over a parameter where there is one, dots on a scale where there is
//! none. Times are on logarithmic scales, since they span decades.

use super::dots::{Dot, Dots, Line};
use super::{lines, view};
use crate::drawing::{number, svg};
use crate::harness::Kind;
use crate::harness::record::{Column, Results, Row, Timing};

/// The width of a chart on a page with room for it.
const WIDE: f64 = 960.0;
/// The width of the same chart on a telephone.
const NARROW: f64 = 380.0;

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// File name without extension.
    pub name: String,
    /// The workload that it shows; empty for the overview.
    pub workload: String,
    /// What it shows.
    pub title: String,
    /// The drawing, without styles.
    pub wide: String,
    /// The same for less room.
    pub narrow: String,
}

impl Chart {
    /// The drawing as a file of its own.
    #[must_use]
    pub fn standalone(&self) -> String {
        svg::standalone(&self.wide)
    }

    /// Draws in both widths; `None` without data.
    fn draw(name: &str, workload: &str, title: &str, draw: impl Fn(f64) -> Option<String>) -> Option<Self> {
        let (wide, narrow) = (draw(WIDE)?, draw(NARROW)?);
        Some(Self { name: name.into(), workload: workload.into(), title: title.into(), wide, narrow })
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
                charts.extend(Chart::draw(workload, workload, &title, |width| lines.draw(width)));
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
        Chart::draw(&name, "threads", &title, |width| lines.draw(width))
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
    Chart::draw("overview", "", title, |width| dots.draw(width))
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
    Chart::draw(workload, workload, &title, |width| dots.draw(width))
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
                for drawing in [&chart.wide, &chart.narrow] {
                    assert!(drawing.contains("slot"), "{drawing}");
                    assert!(!drawing.contains("-default"), "{drawing}");
                }
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
