//! Charts, drawn as SVG: lines over a parameter where there is one, dots on a scale where there is none. Times are on
//! logarithmic scales, since they span decades.

use std::fmt::Write;

use super::view;
use crate::drawing::number;
use crate::drawing::svg::{self, Drawing};
use crate::harness::Kind;
use crate::harness::contestant::FLOOR;
use crate::harness::record::{Results, Row};

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
    svg: String,
}

impl Chart {
    /// The drawing for a page that has `svg::style` already.
    #[must_use]
    pub fn inline(&self) -> &str {
        &self.svg
    }

    /// The drawing as a file of its own.
    #[must_use]
    pub fn standalone(&self) -> String {
        svg::standalone(&self.svg)
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
                charts.extend(lines(results, workload, workload, &title, &rows, &names));
            }
            "threads" => {
                // Parameters are `threads × size`.
                let sizes: Vec<&str> = {
                    let mut sizes: Vec<&str> =
                        rows.iter().filter_map(|row| Some(row.parameters.split_once(" × ")?.1)).collect();
                    sizes.dedup();
                    sizes
                };
                for size in sizes {
                    let of_size: Vec<&Row> = rows
                        .iter()
                        .copied()
                        .filter(|row| row.parameters.ends_with(&format!("× {size}")))
                        .collect();
                    let names: Vec<&str> =
                        of_size.iter().filter_map(|row| Some(row.parameters.split_once(" × ")?.0)).collect();
                    let name = format!("threads-{}", size.replace(' ', ""));
                    let title =
                        format!("threads: time per operation of one thread by number of threads, {size}");
                    charts.extend(lines(results, &name, workload, &title, &of_size, &names));
                }
            }
            _ => charts.extend(times(results, workload, &rows)),
        }
    }
    charts
}

/// The class that gives a contestant its colour.
fn class(results: &Results, name: &str) -> String {
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
        Kind::Control => 'c',
        Kind::Peer => 'p',
    };
    format!("{letter}{place}")
}

/// Mean ratio to `vec` by workload.
fn overview(results: &Results) -> Option<Chart> {
    let workloads = view::workloads(results);
    let rows: Vec<Line> = workloads
        .iter()
        .map(|(workload, rows)| Line {
            label: (*workload).to_owned(),
            dots: results
                .contestants
                .iter()
                .filter_map(|column| {
                    let (mean, count) = view::mean_ratio(results, rows, &column.name)?;
                    let title = format!(
                        "{} at {workload}: {} times vec, mean of {count} rows",
                        column.name,
                        number::ratio(mean)
                    );
                    Some(Dot { contestant: column.name.clone(), value: mean, span: None, title })
                })
                .collect(),
        })
        // `vec` is not in all of them.
        .filter(|line| !line.dots.is_empty())
        .collect();
    let title = "time relative to vec: geometric mean by workload";
    let svg = dots(results, title, "times vec (left is faster)", Some(1.0), &rows, number::ratio)?;
    Some(Chart { name: "overview".into(), workload: String::new(), title: title.into(), svg })
}

/// Times of a workload without a parameter to draw a line over.
fn times(results: &Results, workload: &str, rows: &[&Row]) -> Option<Chart> {
    let lines: Vec<Line> = rows
        .iter()
        .map(|row| Line {
            label: row.parameters.clone(),
            dots: results
                .contestants
                .iter()
                .filter_map(|column| {
                    let timing = results.cell(&row.id, &column.name)?.timing()?;
                    let title = format!(
                        "{} at {workload} {}: {} ({} to {})",
                        column.name,
                        row.parameters,
                        number::time(timing.median),
                        number::time(timing.p10),
                        number::time(timing.p90)
                    );
                    let span = Some((timing.p10, timing.p90));
                    Some(Dot { contestant: column.name.clone(), value: timing.median, span, title })
                })
                .collect(),
        })
        .collect();
    let title = format!("{workload}: time per operation");
    let svg = dots(results, &title, "time per operation (left is faster)", None, &lines, number::time)?;
    Some(Chart { name: workload.into(), workload: workload.into(), title, svg })
}

/// A row of dots.
struct Line {
    label: String,
    dots: Vec<Dot>,
}

/// One contestant's value.
struct Dot {
    contestant: String,
    value: f64,
    /// The tenth and the ninetieth percentile.
    span: Option<(f64, f64)>,
    title: String,
}

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 16.0;

/// Dots on a logarithmic scale, a row for each line; `None` without data.
fn dots(
    results: &Results,
    title: &str,
    axis: &str,
    mark: Option<f64>,
    lines: &[Line],
    show: fn(f64) -> String,
) -> Option<String> {
    const ROW: f64 = 26.0;
    let values = lines.iter().flat_map(|line| line.dots.iter().map(|dot| dot.value));
    let scale = svg::Log::around(values.chain(mark))?;
    let longest = lines.iter().map(|line| svg::text_width(&line.label)).fold(0.0, f64::max);
    let left = MARGIN + longest + 12.0;
    let right = WIDTH - MARGIN - 12.0;
    let mut drawing = Drawing::new(WIDTH);
    drawing.title(title);
    let named: Vec<(String, String)> = results
        .contestants
        .iter()
        .filter(|column| lines.iter().any(|line| line.dots.iter().any(|dot| dot.contestant == column.name)))
        .map(|column| (column.name.clone(), class(results, &column.name)))
        .collect();
    let top = drawing.legend(&named) + 10.0;
    let bottom = top + ROW * lines.len() as f64;
    let x = |value: f64| left + scale.place(value) * (right - left);
    for tick in scale.ticks() {
        drawing.vertical(x(tick.value), top, bottom, if tick.major { "grid major" } else { "grid" });
        if tick.labelled {
            drawing.text(x(tick.value), bottom + 16.0, "middle", "tick", &number::tick(&show(tick.value)));
        }
    }
    if let Some(mark) = mark {
        drawing.vertical(x(mark), top, bottom, "mark");
    }
    drawing.text((left + right) / 2.0, bottom + 34.0, "middle", "axis", axis);
    for (index, line) in lines.iter().enumerate() {
        let y = top + ROW * (index as f64 + 0.5);
        drawing.text(left - 10.0, y + 4.0, "end", "label", &line.label);
        drawing.horizontal(left, right, y, "grid");
        // Strategies last, so that they lie on top.
        let mut order: Vec<&Dot> = line.dots.iter().collect();
        order.sort_by_key(|dot| class(results, &dot.contestant).starts_with('s'));
        for dot in order {
            let class = class(results, &dot.contestant);
            if let Some((low, high)) = dot.span {
                drawing.horizontal(
                    x(low.max(scale.low)),
                    x(high.min(scale.high)),
                    y,
                    &format!("span {class}"),
                );
            }
            drawing.dot(x(dot.value), y, &class, dot.contestant == FLOOR, &dot.title);
        }
    }
    Some(drawing.finish(bottom + 46.0))
}

/// Lines over equally spaced parameters, times on a logarithmic scale; `None` without data.
fn lines(
    results: &Results,
    name: &str,
    workload: &str,
    title: &str,
    rows: &[&Row],
    names: &[&str],
) -> Option<Chart> {
    const HEIGHT: f64 = 380.0;
    const LABEL: f64 = 15.0;
    let timing = |row: &Row, contestant: &str| results.cell(&row.id, contestant)?.timing();
    let values = rows.iter().flat_map(|row| {
        results.contestants.iter().filter_map(|column| Some(timing(row, &column.name)?.median))
    });
    let scale = svg::Log::around(values)?;
    let longest = results.contestants.iter().map(|column| svg::text_width(&column.name)).fold(0.0, f64::max);
    let (left, right) = (MARGIN + 62.0, WIDTH - MARGIN - longest - 24.0);
    let mut drawing = Drawing::new(WIDTH);
    drawing.title(title);
    let top = 48.0;
    let bottom = top + HEIGHT;
    let step = (right - left) / (rows.len().max(2) - 1) as f64;
    let x = |index: usize| left + step * index as f64;
    let y = |value: f64| bottom - scale.place(value) * (bottom - top);
    for tick in scale.ticks() {
        drawing.horizontal(left, right, y(tick.value), if tick.major { "grid major" } else { "grid" });
        if tick.labelled {
            drawing.text(
                left - 8.0,
                y(tick.value) + 4.0,
                "end",
                "tick",
                &number::tick(&number::time(tick.value)),
            );
        }
    }
    for (index, name) in names.iter().enumerate() {
        drawing.vertical(x(index), top, bottom, "grid");
        drawing.text(x(index), bottom + 18.0, "middle", "tick", name);
    }
    let axis = if workload == "threads" { "threads" } else { "bytes of the buffer" };
    drawing.text((left + right) / 2.0, bottom + 38.0, "middle", "axis", axis);
    let mut ends = Vec::new();
    let mut order: Vec<&str> = results.contestants.iter().map(|column| column.name.as_str()).collect();
    order.sort_by_key(|name| class(results, name).starts_with('s'));
    for contestant in order {
        let class = class(results, contestant);
        let mut path = String::new();
        let mut last = None;
        for (index, row) in rows.iter().enumerate() {
            let Some(timing) = timing(row, contestant) else { continue };
            let (x, y) = (x(index), y(timing.median));
            let _ = write!(path, "{}{x:.1},{y:.1} ", if path.is_empty() { "M" } else { "L" });
            last = Some(y);
        }
        let Some(end) = last else { continue };
        drawing.path(&path, &class, contestant == FLOOR);
        for (index, row) in rows.iter().enumerate() {
            let Some(timing) = timing(row, contestant) else { continue };
            let title = format!(
                "{contestant} at {} {}: {} ({} to {})",
                row.workload,
                row.parameters,
                number::time(timing.median),
                number::time(timing.p10),
                number::time(timing.p90)
            );
            drawing.dot(x(index), y(timing.median), &class, contestant == FLOOR, &title);
        }
        ends.push((end, contestant, class));
    }
    // Names at the lines' ends, moved apart where they would overlap.
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let places =
        svg::apart(&ends.iter().map(|end| end.0).collect::<Vec<_>>(), LABEL, top - 20.0, bottom + 30.0);
    for ((end, contestant, class), place) in ends.iter().zip(places) {
        let path = format!("M{:.1},{end:.1} L{:.1},{place:.1}", right + 5.0, right + 16.0);
        drawing.path(&path, &format!("leader {class}"), false);
        let strong = if class.starts_with('s') { "strong " } else { "" };
        drawing.text(right + 19.0, place + 4.0, "start", &format!("name {strong}{class}"), contestant);
    }
    let svg = drawing.finish(bottom + 48.0);
    Some(Chart { name: name.into(), workload: workload.into(), title: title.into(), svg })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One without a colour would be drawn in black, or where it is a hollow dot not at all.
    #[test]
    fn every_contestant_has_a_colour() {
        let all = crate::adapters::all();
        for (index, one) in all.iter().enumerate() {
            let place = all[..index].iter().filter(|other| other.kind == one.kind).count();
            let class = class_of(one.kind, place);
            assert!(svg::has_colour(&class), "{} has no colour {class}", one.name);
            assert_eq!(class == "c2", one.name == FLOOR, "the legend draws {class} hollow");
        }
    }
}
