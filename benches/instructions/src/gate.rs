//! The gate on counts: of instructions, and of the branches and cache lines that a simple processor
//! would have missed. What was counted now is held against what is written down in
//! `benches/instructions/instructions.json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Measure, measures, per_operation};

/// How much a count may rise: a share of what is written down.
const TOLERANCE: f64 = 0.03;

/// What is counted, as callgrind's events that make it up; and how much it may rise beside, for what
/// is mostly nothing.
const EVENTS: [(&str, &[&str], f64); 3] = [
    ("instructions", &["Ir"], 0.0),
    ("mispredicted branches", &["Bcm", "Bim"], 0.02),
    ("cache misses", &["D1mr", "D1mw"], 0.1),
];
/// Those of one run.
type Events = [u64; EVENTS.len()];

/// What to do when a change of a count is meant.
const ADVICE: &str =
    "if the change is intended, `cargo xtask bench --instructions --update` writes the new counts";

/// Events of a kind per operation, by `strategy/operation`.
type Counts = BTreeMap<String, f64>;

/// The file that is checked in.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Baseline {
    /// Whose code was counted: another compiler makes other code.
    compiler: String,
    #[serde(flatten)]
    counts: BTreeMap<String, Counts>,
}

/// Reads what gungraun printed, one JSON object a line for each run, into `run number -> events`.
fn parse(summaries: &str) -> Result<BTreeMap<usize, Events>> {
    let run = |line: &str| -> Option<(usize, Events)> {
        let summary: Value = serde_json::from_str(line).ok()?;
        let number = summary["id"].as_str()?.strip_prefix("run_")?.parse().ok()?;
        let profiles = summary["profiles"].as_array()?;
        let callgrind = profiles.iter().find(|profile| profile["tool"] == "Callgrind")?;
        let metrics = &callgrind["data"]["total"]["metrics"];
        let mut events = [0; EVENTS.len()];
        for (sum, (_, parts, _)) in events.iter_mut().zip(EVENTS) {
            for part in parts {
                *sum += metrics[*part]["values"]["new"].as_u64()?;
            }
        }
        Some((number, events))
    };
    let lines = summaries.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| run(line).with_context(|| format!("no summary of a run: {line}"))).collect()
}

/// The events of one kind in one operation of each measure, rounded to what is written down.
fn counts(measures: &[Measure], runs: &BTreeMap<usize, Events>, event: usize) -> Result<Counts> {
    let count = |(index, measure): (usize, &Measure)| {
        let of = |run| {
            let missing = || format!("no count of run {run}, of {measure:?}");
            Ok::<_, anyhow::Error>(runs.get(&run).with_context(missing)?[event])
        };
        let each = per_operation(of(2 * index)?, of(2 * index + 1)?);
        Ok((format!("{measure:?}"), (each * 100.0).round() / 100.0))
    };
    measures.iter().enumerate().map(count).collect()
}

/// A line for each operation, and what is wrong. A count may rise by `slack` beside the tolerance.
fn compare(event: &str, slack: f64, found: &Counts, baseline: &Counts) -> (String, Vec<String>) {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(table, "  {name:<20} {text}");
    };
    for (name, &now) in found {
        let Some(&before) = baseline.get(name) else {
            line(name, format!("{now:8.2}, new"));
            wrong.push(format!("{name}: {now} {event}, without a checked-in count"));
            continue;
        };
        if now > before * (1.0 + TOLERANCE) + slack {
            wrong.push(format!("{name}: {event} rose from {before} to {now}"));
        }
        line(name, format!("{now:8.2}, {before:8.2} before ({:+.2})", now - before));
    }
    for name in baseline.keys().filter(|name| !found.contains_key(*name)) {
        line(name, "not counted any more".into());
        wrong.push(format!("{name}: has a checked-in count of {event}, but is no longer counted"));
    }
    (table, wrong)
}

/// Compares what gungraun found with the baseline, or replaces the baseline.
///
/// # Errors
///
/// When an operation costs more than what is written down and the tolerance allow, or nothing is
/// written down of it, or it is gone.
pub fn check(summaries: &Path, baseline: &Path, update: bool) -> Result<()> {
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let (measures, runs) = (measures(), parse(&read(summaries)?)?);
    let mut found = BTreeMap::new();
    for (index, (event, ..)) in EVENTS.iter().enumerate() {
        found.insert((*event).to_owned(), counts(&measures, &runs, index)?);
    }
    let compiler = compiler()?;
    if update {
        let text = serde_json::to_string_pretty(&Baseline { compiler, counts: found })? + "\n";
        fs::write(baseline, text).with_context(|| format!("cannot write {}", baseline.display()))?;
        println!("{} operations written to {}", measures.len(), baseline.display());
        return Ok(());
    }
    let known: Baseline = serde_json::from_str(&read(baseline)?)
        .with_context(|| format!("{} has no counts", baseline.display()))?;
    let mut wrong = Vec::new();
    for (event, _, slack) in EVENTS {
        let known = known.counts.get(event).with_context(|| format!("no {event} are checked in"))?;
        let (table, risen) = compare(event, slack, &found[event], known);
        print!("{event} per operation\n{table}");
        wrong.extend(risen);
    }
    if wrong.is_empty() {
        println!("no count is over its checked-in count by more than is allowed");
        return Ok(());
    }
    let other = if known.compiler == compiler {
        String::new()
    } else {
        format!("\n  note: counted with {compiler}, checked in with {}", known.compiler)
    };
    bail!(
        "{} counts differ from the checked-in ones:\n  {}{other}\n  {ADVICE}",
        wrong.len(),
        wrong.join("\n  ")
    )
}

fn compiler() -> Result<String> {
    let output =
        Command::new("rustc").arg("--version").output().context("cannot ask rustc for its version")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(counts: &[(&str, f64)]) -> Counts {
        counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn a_rise_of_more_than_three_percent_fails() {
        let baseline = named(&[("slot/drop", 100.0), ("slot/grow", 10.0)]);
        let wrong = |found: &[(&str, f64)]| compare("instructions", 0.0, &named(found), &baseline).1;
        assert_eq!(wrong(&[("slot/drop", 103.0), ("slot/grow", 2.0)]), [""; 0], "three percent, and a fall");
        let rose = wrong(&[("slot/drop", 104.0), ("slot/grow", 10.0)]);
        assert_eq!(rose, ["slot/drop: instructions rose from 100 to 104"]);
        let risen =
            |slack| compare("cache misses", slack, &named(&[("a/b", 0.05)]), &named(&[("a/b", 0.0)])).1.len();
        assert_eq!((risen(0.1), risen(0.02)), (0, 1));
        let names = wrong(&[("slot/drop", 100.0), ("ring/drop", 5.0)]);
        assert!(names.len() == 2 && names[0].starts_with("ring/drop"), "new, and gone: {names:?}");
    }

    /// A run as gungraun 0.20 prints it, shortened.
    fn summary(run: usize, count: u64) -> String {
        let event = |name: &&str| format!(r#""{name}":{{"values":{{"new":{count}}}}}"#);
        let metrics: Vec<String> = EVENTS.iter().flat_map(|(_, parts, _)| *parts).map(event).collect();
        let metrics = metrics.join(",");
        format!(
            r#"{{"id":"run_{run}","profiles":[{{"tool":"Callgrind","data":{{"total":{{"metrics":{{{metrics}}}}}}}}}]}}"#
        )
    }

    #[test]
    fn summaries_are_understood_or_refused() {
        let all = measures();
        let text: Vec<String> = (0..2 * all.len())
            .map(|run| summary(run, if run.is_multiple_of(2) { 50 + 1000 * 7 } else { 50 + 3000 * 7 }))
            .collect();
        let runs = parse(&format!("running\n{}\n", text.join("\n"))).unwrap();
        for (event, times) in [(0, 1.0), (1, 2.0), (2, 2.0)] {
            let counted = counts(&all, &runs, event).unwrap();
            assert_eq!(counted.len(), all.len());
            assert!(counted.values().all(|count| *count == 7.0 * times), "{counted:?}");
        }
        let missing = parse(&text[1..].join("\n")).unwrap();
        assert!(counts(&all, &missing, 0).is_err());
        assert!(parse(r#"{"id":"other"}"#).is_err());
    }

    #[test]
    fn the_file_names_what_is_measured() {
        let text =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")).unwrap();
        let baseline: Baseline = serde_json::from_str(&text).unwrap();
        let mut measured: Vec<String> = measures().iter().map(|measure| format!("{measure:?}")).collect();
        measured.sort();
        for (event, ..) in EVENTS {
            let names: Vec<String> = baseline.counts[event].keys().cloned().collect();
            assert_eq!(names, measured, "{event}");
        }
    }
}
