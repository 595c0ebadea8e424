//! Charts of a row for each line of a workload, with a dot for each engine on a logarithmic scale,
//! since times span decades.

use bufadvise::number;
use buftrials::drawing::svg;
use buftrials::report::Picture;

use super::dots::{Dot, Dots, Line};
use super::view;
use crate::harness::Kind;
use crate::harness::record::{Results, Row};

/// The class that gives an engine its colour and its shape.
pub(super) fn class(results: &Results, name: &str) -> String {
    let column = results.engines.iter().find(|column| column.name == name);
    let kind = column.map_or(Kind::Peer, |column| column.kind);
    let mut same = view::names(results, kind);
    class_of(kind, same.position(|other| other == name).unwrap_or(0))
}

/// The class of the engine at `place` among those of its kind.
fn class_of(kind: Kind, place: usize) -> String {
    let letter = match kind {
        Kind::Strategy => 's',
        Kind::Setting => 'v',
        Kind::Control => 'c',
        Kind::Peer => 'p',
    };
    format!("{letter}{place}")
}

fn picture(name: &str, dots: &Dots<'_>) -> Option<Picture> {
    let svg = svg::standalone(&dots.draw()?);
    Some(Picture { name: name.into(), title: dots.title.into(), svg })
}

/// Mean ratio to `vec` by workload; `None` without data.
pub(super) fn overview(results: &Results) -> Option<Picture> {
    let line = |(workload, rows): &(&str, Vec<&Row>)| {
        let columns = results.engines.iter().filter(|column| column.kind != Kind::Setting);
        let dots = columns.filter_map(|column| {
            let name = &column.name;
            let (value, count) = view::mean_ratio(results, rows, name)?;
            let ratio = number::three_digits(value);
            let title = format!("{name} at {workload}: {ratio} times vec, mean of {count} rows");
            Some(Dot { engine: name.clone(), value, span: None, title })
        });
        Line { label: (*workload).to_owned(), dots: dots.collect() }
    };
    // `vec` is not in all of them.
    let lines: Vec<Line> =
        view::workloads(results).iter().map(line).filter(|line| !line.dots.is_empty()).collect();
    let title = "time relative to vec: geometric mean by workload";
    let axis = "times vec (left is faster)";
    let dots = Dots { results, title, axis, mark: Some(1.0), lines: &lines, show: number::three_digits };
    picture("overview", &dots)
}

/// Times of a workload; `None` without data.
pub(super) fn times(results: &Results, workload: &str, rows: &[&Row]) -> Option<Picture> {
    let line = |row: &&Row| {
        let dots = results.engines.iter().filter_map(|column| {
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
            Some(Dot { engine: column.name.clone(), value: timing.median, span, title })
        });
        Line { label: row.parameters.clone(), dots: dots.collect() }
    };
    let lines: Vec<Line> = rows.iter().map(line).collect();
    let title = format!("{workload}: time per operation");
    let axis = "time per operation (left is faster)";
    let dots = Dots { results, title: &title, axis, mark: None, lines: &lines, show: number::time };
    picture(workload, &dots)
}

#[cfg(test)]
mod tests {
    use buftrials::drawing::colours::has_colour;

    use super::*;
    use crate::harness::engine::NOOP;

    /// One without a colour would be drawn in black, or where it is a hollow dot not at all.
    #[test]
    fn every_engine_has_a_colour() {
        let all = crate::adapters::all();
        for (index, one) in all.iter().enumerate() {
            let place = all[..index].iter().filter(|other| other.kind == one.kind).count();
            let class = class_of(one.kind, place);
            assert!(has_colour(&class), "{} has no colour {class}", one.name);
            assert_eq!(class == svg::NOOP, one.name == NOOP, "the legend draws {class} hollow");
        }
    }
}
