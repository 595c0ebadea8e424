//! `report.md`.

use std::fmt::Write;

use super::chart::Chart;
use super::{defaults, view};
use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Outcome, Record, Results, Row};

/// The whole report, as `head` and what follows it, for charts that are in `folder`.
#[must_use]
pub fn report(results: &Results, charts: &[Chart], head: &str, folder: &str) -> String {
    let mut text = format!("{head}\n\n");
    host(results, &mut text);
    verdict(results, &mut text);
    untuned(results, &mut text);
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
        if rows == 0 {
            continue;
        }
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

/// Contestants without settings, against those that have some.
fn untuned(results: &Results, text: &mut String) {
    let summaries = defaults::summaries(results);
    if summaries.is_empty() {
        return;
    }
    let at = |row: &Row| format!("{} {}", row.workload, row.parameters);
    let _ = writeln!(text, "\n## Defaults\n\n{}\n", super::texts::DEFAULTS);
    let _ = writeln!(text, "| without settings | rows | mean | more than {} times | worst |", defaults::SLOW);
    let _ = writeln!(text, "| --- | ---: | ---: | ---: | --- |");
    for line in summaries {
        let (mean, (row, worst)) = (number::ratio(line.mean), line.worst);
        let worst = format!("{} at {}", number::ratio(worst), at(row));
        let _ = writeln!(text, "| {} | {} | {mean} | {} | {worst} |", line.name, line.rows, line.slow);
    }
    let slow = defaults::slow(results);
    if slow.is_empty() {
        let _ = writeln!(text, "\nNo default takes more than {} times as long.", defaults::SLOW);
    } else {
        let _ = writeln!(
            text,
            "\n| more than {} times | without settings | times | its time | with settings | fallbacks | control or peer | \
             times that |",
            defaults::SLOW
        );
        let _ = writeln!(text, "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |");
    }
    let none = || String::from("–");
    for slow in slow {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            at(slow.row),
            slow.record.contestant,
            number::ratio(slow.times),
            number::time(slow.time),
            number::time(slow.tuned),
            slow.record.fallbacks.map_or_else(none, number::share),
            slow.rival.map_or_else(none, |rival| rival.0.into()),
            slow.rival.map_or_else(none, |rival| number::ratio(rival.1)),
        );
    }
    all_untuned(results, text);
}

/// The ratio of each contestant without settings in every row.
fn all_untuned(results: &Results, text: &mut String) {
    let columns = defaults::columns(results);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let _ = writeln!(text, "\n| time without settings to that with | {} |", names.join(" | "));
    let _ = writeln!(text, "| --- |{}", " ---: |".repeat(names.len()));
    for row in defaults::rows(results) {
        let _ = write!(text, "| {} {} |", row.workload, row.parameters);
        for name in &names {
            let shown = results.cell(&row.id, name).and_then(|record| record.to_tuned).map(|ratio| {
                let shown = number::ratio(ratio);
                if ratio > defaults::SLOW { format!("**{shown}**") } else { shown }
            });
            let _ = write!(text, " {} |", shown.unwrap_or_else(|| "–".into()));
        }
        text.push('\n');
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
        assert!(!text.contains("## Defaults"), "there are none: {text}");
    }

    #[test]
    fn defaults_have_a_part_of_their_own() {
        let results = crate::report::defaults::tests::sample();
        let text = report(&results, &[], "# Benchmark matrix", "");
        let start = text.find("## Defaults").expect("the part on defaults");
        let part = &text[start..start + text[start..].find("\n## reuse").expect("the next part")];
        for line in [
            "| slot-default | 2 | 1.73 | 1 | 3.00 at reuse 64 B |",
            "| reuse 4 KiB | ring-default | 10.0 | 10.0 ns | 1.00 ns | – | – | – |",
            "| reuse 64 B | slot-default | 3.00 | 6.00 ns | 2.00 ns | 50.0 % | peer | 1.50 |",
            "| time without settings to that with | slot-default | ring-default | peer-default |",
            "| reuse 64 B | **3.00** | 1.20 | 0.88 |",
            "| reuse 1 KiB | 1.00 | – | – |",
        ] {
            assert!(part.lines().any(|found| found == line), "{line}\n{part}");
        }
        let worst = part.find("ring-default | 10.0 | ").expect("the worst");
        assert!(worst < part.find("slot-default | 3.00 | ").expect("the second"), "worst first");
        assert!(text.contains("- ring-default at 1 KiB: unsupported: the ring would be exhausted"), "{text}");
    }
}
