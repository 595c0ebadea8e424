//! The sections: where strategies win and lose, what settings are worth, and one for each workload.

use buftrials::report::Section;
use buftrials::table::Table;

use super::{chart, defaults, front, measures, texts, view};
use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Outcome, Record, Results, Row};

/// All sections.
#[must_use]
pub fn all(results: &Results) -> Vec<Section> {
    let mut charts = chart::all(results);
    let mut verdict = verdict(results);
    verdict
        .pictures
        .extend(charts.extract_if(.., |chart| chart.workload.is_empty()).map(|chart| chart.picture));
    verdict.pictures.extend(front::draw(results));
    let mut sections = vec![verdict];
    sections.extend(untuned(results));
    for (workload, rows) in view::workloads(results) {
        let pictures = charts.extract_if(.., |chart| chart.workload == workload);
        sections.push(Section {
            title: workload.into(),
            text: texts::about(workload).into(),
            pictures: pictures.map(|chart| chart.picture).collect(),
            tables: tables(results, &rows),
        });
    }
    sections.extend(missing(results));
    sections.push(contestants(results));
    sections
}

fn at(row: &Row) -> String {
    format!("{} {}", row.workload, row.parameters)
}

fn ratio_at((row, ratio): (&Row, f64)) -> String {
    format!("{} at {}", number::ratio(ratio), at(row))
}

/// Where our strategies win and lose.
fn verdict(results: &Results) -> Section {
    let mut scores = Table::new(&["strategy", "rows", "faster than `vec`", "the fastest of all"]);
    for strategy in view::names(results, Kind::Strategy) {
        let (rows, fastest, faster) = view::score(results, strategy);
        if rows > 0 {
            let counts = [rows, faster, fastest].map(|count| count.to_string());
            scores.rows.push([vec![strategy.to_owned()], counts.to_vec()].concat());
        }
    }
    let mut losses = Table::new(&["loses at", "strategy", "times the time", "of"]);
    losses.rows.extend(
        view::losses(results).into_iter().map(|loss| {
            vec![at(loss.row), loss.strategy.into(), number::ratio(loss.times), loss.faster.into()]
        }),
    );
    let mut tables = vec![scores];
    if !losses.rows.is_empty() {
        tables.push(losses);
    }
    tables.extend(view::names(results, Kind::Strategy).filter_map(|strategy| duels(results, strategy)));
    Section { title: "Where our strategies win and lose".into(), tables, ..Section::default() }
}

/// A strategy against each of the others, over all rows.
fn duels(results: &Results, strategy: &str) -> Option<Table> {
    let name = format!("time of {strategy} to that of");
    let mut table = Table::new(&[name.as_str(), "rows", "mean", "best", "worst"]);
    table.rows.extend(view::duels(results, strategy).into_iter().map(|duel| {
        let (rows, mean) = (duel.rows.to_string(), number::ratio(duel.mean));
        vec![duel.rival.name.clone(), rows, mean, ratio_at(duel.best), ratio_at(duel.worst)]
    }));
    (!table.rows.is_empty()).then_some(table)
}

/// Contestants without settings, against those that have some.
fn untuned(results: &Results) -> Option<Section> {
    let summaries = defaults::summaries(results);
    if summaries.is_empty() {
        return None;
    }
    let limit = format!("more than {} times", defaults::SLOW);
    let mut summary = Table::new(&["without settings", "rows", "mean", limit.as_str(), "worst"]);
    summary.rows.extend(summaries.into_iter().map(|line| {
        let (rows, slow) = (line.rows.to_string(), line.slow.to_string());
        vec![line.name.into(), rows, number::ratio(line.mean), slow, ratio_at(line.worst)]
    }));
    let mut tables = vec![summary];
    let slow = defaults::slow(results);
    if !slow.is_empty() {
        let mut table = Table::new(&[
            limit.as_str(),
            "without settings",
            "times",
            "its time",
            "with settings",
            "fallbacks",
            "control or peer",
            "times that",
        ]);
        let none = || String::from("–");
        table.rows.extend(slow.into_iter().map(|slow| {
            vec![
                at(slow.row),
                slow.record.contestant.clone(),
                number::ratio(slow.times),
                number::time(slow.time),
                number::time(slow.tuned),
                slow.record.fallbacks.map_or_else(none, number::share),
                slow.rival.map_or_else(none, |rival| rival.0.into()),
                slow.rival.map_or_else(none, |rival| number::ratio(rival.1)),
            ]
        }));
        tables.push(table);
    }
    tables.push(all_untuned(results));
    Some(Section { title: "Defaults".into(), text: texts::DEFAULTS.into(), tables, ..Section::default() })
}

/// The ratio of each contestant without settings in every row.
fn all_untuned(results: &Results) -> Table {
    let columns = defaults::columns(results);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut table = Table::new(&[&["time without settings to that with"], names.as_slice()].concat());
    for row in defaults::rows(results) {
        let ratio = |name: &&str| {
            let ratio = results.cell(&row.id, name).and_then(|record| record.to_tuned);
            ratio.map_or_else(
                || "–".into(),
                |ratio| {
                    let shown = number::ratio(ratio);
                    if ratio > defaults::SLOW { format!("**{shown}**") } else { shown }
                },
            )
        };
        table.rows.push(std::iter::once(at(row)).chain(names.iter().map(ratio)).collect());
    }
    table
}

/// The tables of a workload: times, each strategy's in times of everybody's, and what is measured
/// besides.
fn tables(results: &Results, rows: &[&Row]) -> Vec<Table> {
    let times =
        grid(results, rows, "time per operation (ratio to vec)", |row, record| time(results, row, record));
    let ratios = view::names(results, Kind::Strategy).map(|strategy| {
        grid(results, rows, &format!("time of {strategy} to that of"), |_, record| {
            record.strategies_to_this.get(strategy).copied().map(number::ratio)
        })
    });
    let measures = measures::MEASURES
        .iter()
        .map(|measure| grid(results, rows, measure.title, |_, record| (measure.show)(record)));
    std::iter::once(times).chain(ratios).chain(measures).flatten().collect()
}

/// A table with a line for each row and a column for each contestant; `None` without any figure.
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
                record.to_vec.map_or_else(String::new, |ratio| format!(" ({})", number::ratio(ratio)));
            let shown = format!("{}{ratio}", number::time(timing.median));
            let wins = view::winner(results, &row.id) == Some(&record.contestant);
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
        let same = |line: &&mut (&str, &Outcome, Vec<&str>)| {
            line.0 == record.contestant && *line.1 == record.outcome
        };
        match lines.iter_mut().find(same) {
            Some((_, _, cases)) => cases.push(&record.case),
            None => lines.push((&record.contestant, &record.outcome, vec![&record.case])),
        }
    }
    lines.sort_by_key(|(_, outcome, _)| matches!(outcome, Outcome::Unsupported { .. }));
    let line = |(contestant, outcome, cases): &(&str, &Outcome, Vec<&str>)| {
        format!("- {contestant} at {}: {}\n", cases.join(", "), outcome.explain())
    };
    let text: String = lines.iter().map(line).collect();
    (!text.is_empty()).then(|| Section { title: "Cells without times".into(), text, ..Section::default() })
}

fn contestants(results: &Results) -> Section {
    let line = |column: &crate::harness::record::Column| {
        format!("- **{}** ({}): {}\n", column.name, super::kind(column.kind), column.idiom)
    };
    let text = results.contestants.iter().map(line).collect();
    Section { title: "Contestants".into(), text, ..Section::default() }
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
        let text = super::super::of(&results).markdown();
        let lines: Vec<&str> = text.lines().collect();
        // In the verdict, and in the workload's section.
        assert!(lines.contains(&"| ring | 1 | 0 | 1 |"), "{text}");
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
        let text = super::super::of(&results).markdown();
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

    /// One table is printed for each section: that of times is the first.
    #[test]
    fn times_come_first() {
        let results = crate::report::defaults::tests::sample();
        let report = super::super::of(&results);
        let section = report.sections.iter().find(|section| section.title == "reuse").expect("reuse");
        assert_eq!(section.tables[0].head[0], "time per operation (ratio to vec)");
        assert!(
            section.tables[0].rows[0].contains(&"**1.00 ns (0.12)**".to_owned()),
            "{:?}",
            section.tables[0]
        );
    }
}
