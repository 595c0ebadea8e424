//! The sections: what to take, and folded, where strategies win and lose and one for each workload.

use buftrials::report::Section;
use buftrials::run::name_of;
use buftrials::table::Table;

use super::{chart, front, measures, verdict, view};
use crate::harness::Kind;
use crate::harness::record::{Outcome, Record, Results, Row};
use crate::workloads::WORKLOADS;
use bufadvise::number;

/// All sections.
pub(super) fn all(results: &Results) -> Vec<Section> {
    let mut scores = scores(results);
    scores.pictures.extend(chart::overview(results));
    scores.pictures.extend(front::draw(results));
    let mut sections: Vec<Section> = verdict::section(results).into_iter().chain([scores]).collect();
    for (workload, rows) in view::workloads(results) {
        let about = WORKLOADS.iter().find(|(name, _)| *name == workload);
        sections.push(Section {
            title: workload.into(),
            text: about.map_or("", |(_, about)| about).into(),
            pictures: chart::times(results, workload, &rows).into_iter().collect(),
            tables: tables(results, &rows),
            folded: true,
        });
    }
    sections.extend(missing(results));
    sections.push(engines(results));
    sections
}

fn at(row: &Row) -> String {
    format!("{} {}", row.workload, row.parameters)
}

/// Where our strategies win and lose.
fn scores(results: &Results) -> Section {
    let mut scores = Table::new(&["strategy", "rows", "faster than `vec`", "the fastest of all"]);
    for strategy in view::names(results, Kind::Strategy) {
        let (rows, fastest, faster) = view::score(results, strategy);
        if rows > 0 {
            let counts = [rows, faster, fastest].map(|count| count.to_string());
            scores.rows.push([vec![strategy.to_owned()], counts.to_vec()].concat());
        }
    }
    let mut losses = Table::new(&["loses at", "strategy", "times the time", "of"]);
    losses.rows.extend(view::losses(results).into_iter().map(|loss| {
        vec![at(loss.row), loss.strategy.into(), number::three_digits(loss.times), loss.faster.into()]
    }));
    let mut tables = vec![scores];
    if !losses.rows.is_empty() {
        tables.push(losses);
    }
    Section { title: "Where our strategies win and lose".into(), tables, folded: true, ..Section::default() }
}

/// The tables of a workload: times, and what is measured besides.
fn tables(results: &Results, rows: &[&Row]) -> Vec<Table> {
    let times =
        grid(results, rows, "time per operation (ratio to vec)", |row, record| time(results, row, record));
    let measures = measures::MEASURES
        .iter()
        .map(|measure| grid(results, rows, measure.title, |_, record| (measure.show)(record)));
    std::iter::once(times).chain(measures).flatten().collect()
}

/// A table with a line for each row and a column for each engine; `None` without any figure.
fn grid(
    results: &Results,
    rows: &[&Row],
    first: &str,
    show: impl Fn(&Row, &Record) -> Option<String>,
) -> Option<Table> {
    let columns = view::columns(results, rows);
    let names = columns.iter().map(|column| column.name.as_str());
    let mut table = Table::new(&std::iter::once(first).chain(names).collect::<Vec<_>>());
    let mut any = false;
    for row in rows {
        let cells = columns.iter().map(|column| {
            let shown = results.cell(&row.id, &column.name).and_then(|record| show(row, record));
            any |= shown.is_some();
            shown.unwrap_or_else(|| "–".into())
        });
        let line = std::iter::once(row.parameters.clone()).chain(cells).collect();
        table.rows.push(line);
    }
    any.then_some(table)
}

fn time(results: &Results, row: &Row, record: &Record) -> Option<String> {
    Some(match &record.outcome {
        Outcome::Timed(timing) => {
            let ratio =
                record.to_vec.map_or_else(String::new, |ratio| format!(" ({})", number::three_digits(ratio)));
            let shown = format!("{}{ratio}", number::time(timing.median));
            let wins = view::winner(results, &row.id) == Some(&record.engine);
            if wins { format!("**{shown}**") } else { shown }
        }
        Outcome::Unsupported { .. } => return None,
        Outcome::Checked => "right".into(),
        Outcome::Wrong { .. } => "WRONG BYTES".into(),
        Outcome::Crashed { .. } => "crashed".into(),
        Outcome::Hung { .. } => "hung".into(),
    })
}

/// Cells without times, those with the same reason together.
fn missing(results: &Results) -> Option<Section> {
    let mut lines: Vec<(&str, &Outcome, Vec<&str>)> = Vec::new();
    for record in &results.cells {
        if matches!(record.outcome, Outcome::Timed(_) | Outcome::Checked) {
            continue;
        }
        let same =
            |line: &&mut (&str, &Outcome, Vec<&str>)| line.0 == record.engine && *line.1 == record.outcome;
        match lines.iter_mut().find(same) {
            Some((_, _, cases)) => cases.push(&record.case),
            None => lines.push((&record.engine, &record.outcome, vec![&record.case])),
        }
    }
    lines.sort_by_key(|(_, outcome, _)| matches!(outcome, Outcome::Unsupported { .. }));
    let line = |(engine, outcome, cases): &(&str, &Outcome, Vec<&str>)| {
        format!("- {engine} at {}: {}\n", cases.join(", "), outcome.explain())
    };
    let text: String = lines.iter().map(line).collect();
    (!text.is_empty()).then(|| text_section("Cells without times", text))
}

fn engines(results: &Results) -> Section {
    let line = |column: &crate::harness::record::Column| {
        format!("- **{}** ({}): {}\n", column.name, name_of(&column.kind), column.idiom)
    };
    let text = results.engines.iter().map(line).collect();
    text_section("Engines", text)
}

/// A folded section of text alone.
pub(super) fn text_section(title: &str, text: String) -> Section {
    Section { title: title.into(), text, folded: true, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};

    #[test]
    fn each_workload_has_its_tables() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("ring-half", Kind::Setting),
                column("vec", Kind::Control),
            ],
            vec![timed("64 B", "slot", 2.0), timed("64 B", "ring", 1.0), timed("64 B", "vec", 4.0)],
        );
        results.compare();
        let text = super::super::of(&results).markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&"| ring | 1 | 1 | 1 |"), "{text}");
        assert!(lines.contains(&"| time per operation (ratio to vec) | slot | ring | vec |"), "{text}");
        assert!(lines.contains(&"| 64 B | 2.00 ns (0.50) | **1.00 ns (0.25)** | 4.00 ns (1.00) |"), "{text}");
        assert!(lines.contains(&"- **ring-half** (setting): "), "{text}");
    }
}
