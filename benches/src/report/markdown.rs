//! `report.md`.

use std::fmt::Write;

use super::chart::Chart;
use super::view;
use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Outcome, Record, Results, Row};

/// The whole report, as `head` and what follows it, for charts that are in `folder`.
#[must_use]
pub fn report(results: &Results, charts: &[Chart], head: &str, folder: &str) -> String {
    let mut text = format!("{head}\n\n");
    host(results, &mut text);
    verdict(results, &mut text);
    for (workload, rows) in view::workloads(results) {
        let _ = writeln!(text, "\n## {workload}\n\n{}\n", super::texts::about(workload));
        for chart in charts.iter().filter(|chart| chart.workload == workload) {
            let _ = writeln!(text, "![{}]({folder}{}.svg)\n", chart.title, chart.name);
        }
        times(results, &rows, &mut text);
        ratios(results, &rows, &mut text);
        extra(results, &rows, &mut text);
    }
    reasons(results, &mut text);
    let _ = writeln!(text, "\n## Contestants\n");
    for column in &results.contestants {
        let kind = super::kind(column.kind);
        let _ = writeln!(text, "- **{}** ({kind}): {}", column.name, column.idiom);
    }
    text
}

fn host(results: &Results, text: &mut String) {
    for (name, value) in super::facts(results) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = writeln!(text, "\n{}", super::texts::METHOD);
}

fn verdict(results: &Results, text: &mut String) {
    let _ = writeln!(text, "\n## Where our strategies win and lose\n");
    for strategy in view::names(results, Kind::Strategy) {
        let (rows, fastest, faster) = view::score(results, strategy);
        let _ = writeln!(
            text,
            "- **{strategy}**: timed in {rows} rows, faster than `vec` in {faster}, the fastest of all in {fastest}."
        );
    }
    let losses = view::losses(results);
    if losses.is_empty() {
        let _ = writeln!(text, "- No row in which a control or a peer is clearly faster.");
    }
    for loss in losses {
        let _ = writeln!(
            text,
            "- {} loses at {} {}: {} times the time of {}.",
            loss.strategy,
            loss.row.workload,
            loss.row.parameters,
            number::ratio(loss.times),
            loss.faster
        );
    }
    duels(results, text);
}

/// Each strategy against each of the others, over all rows.
fn duels(results: &Results, text: &mut String) {
    for strategy in view::names(results, Kind::Strategy) {
        let duels = view::duels(results, strategy);
        if duels.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n| time of {strategy} to that of | rows | mean | best | worst |");
        let _ = writeln!(text, "| --- | ---: | ---: | --- | --- |");
        for duel in duels {
            let at = |(row, ratio): (&Row, f64)| {
                format!("{} at {} {}", number::ratio(ratio), row.workload, row.parameters)
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                duel.rival.name,
                duel.rows,
                number::ratio(duel.mean),
                at(duel.best),
                at(duel.worst)
            );
        }
    }
}

fn header(results: &Results, rows: &[&Row], first: &str, text: &mut String) {
    let names: Vec<&str> =
        view::columns(results, rows).into_iter().map(|column| column.name.as_str()).collect();
    let _ = writeln!(text, "| {first} | {} |", names.join(" | "));
    let _ = writeln!(text, "| --- |{}", " ---: |".repeat(names.len()));
}

fn grid(results: &Results, rows: &[&Row], text: &mut String, show: impl Fn(&Row, &Record) -> Option<String>) {
    let columns = view::columns(results, rows);
    for row in rows {
        let _ = write!(text, "| {} |", row.parameters);
        for column in &columns {
            let shown = results.cell(&row.id, &column.name).and_then(|record| show(row, record));
            let _ = write!(text, " {} |", shown.unwrap_or_else(|| "–".into()));
        }
        text.push('\n');
    }
}

fn times(results: &Results, rows: &[&Row], text: &mut String) {
    header(results, rows, "time per operation (ratio to vec)", text);
    grid(results, rows, text, |row, record| {
        Some(match &record.outcome {
            Outcome::Timed(timing) => {
                let ratio =
                    record.to_vec.map_or_else(String::new, |ratio| format!(" ({})", number::ratio(ratio)));
                let shown = format!("{}{ratio}", number::time(timing.median));
                if view::winner(results, &row.id) == Some(&record.contestant) {
                    format!("**{shown}**")
                } else {
                    shown
                }
            }
            Outcome::Unsupported { .. } => "–".into(),
            Outcome::Checked => "right".into(),
            Outcome::Wrong { .. } => "WRONG BYTES".into(),
            Outcome::Crashed { .. } => "crashed".into(),
            Outcome::Hung { .. } => "hung".into(),
        })
    });
}

/// Each strategy's times in times of everybody's.
fn ratios(results: &Results, rows: &[&Row], text: &mut String) {
    for strategy in view::names(results, Kind::Strategy) {
        let ratio = |record: &Record| record.strategies_to_this.get(strategy).copied();
        let any =
            |row: &&Row| results.cells.iter().any(|record| record.case == row.id && ratio(record).is_some());
        if rows.iter().any(any) {
            text.push('\n');
            header(results, rows, &format!("time of {strategy} to that of"), text);
            grid(results, rows, text, |_, record| ratio(record).map(number::ratio));
        }
    }
}

fn extra(results: &Results, rows: &[&Row], text: &mut String) {
    for measure in super::measures::MEASURES {
        let any = rows.iter().any(|row| {
            results.cells.iter().any(|record| record.case == row.id && (measure.show)(record).is_some())
        });
        if any {
            text.push('\n');
            header(results, rows, measure.title, text);
            grid(results, rows, text, |_, record| (measure.show)(record));
        }
    }
}

fn reasons(results: &Results, text: &mut String) {
    let lines = super::reasons(results);
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## Cells without times\n");
    for (contestant, outcome, cases) in lines {
        let _ = writeln!(text, "- {contestant} at {}: {}", cases.join(", "), outcome.explain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};

    #[test]
    fn each_strategy_has_its_tables() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("ring-half", Kind::Setting),
                column("peer", Kind::Peer),
            ],
            vec![
                timed("64 B", "slot", 2.0, false),
                timed("64 B", "ring", 1.0, false),
                timed("64 B", "peer", 4.0, false),
            ],
        );
        results.compare();
        let text = report(&results, &[], "# Benchmark matrix", "");
        let lines: Vec<&str> = text.lines().collect();
        // In the verdict, and in the workload's section.
        assert!(lines.contains(&"| peer | 1 | 0.25 | 0.25 at reuse 64 B | 0.25 at reuse 64 B |"), "{text}");
        assert!(lines.contains(&"| time of ring to that of | slot | ring | peer |"), "{text}");
        assert!(lines.contains(&"| 64 B | 0.50 | – | 0.25 |"), "{text}");
        assert!(lines.contains(&"| time of slot to that of | slot | ring | peer |"), "{text}");
        assert!(lines.contains(&"- **ring-half** (setting): "), "{text}");
    }
}
