//! The gate on instruction counts: what was counted now against what is written down in
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

/// What to do when a change of a count is meant.
const ADVICE: &str =
    "if the change is intended, `cargo xtask bench --instructions --update` writes the new counts";

/// Instructions per operation, by `strategy/operation`.
type Counts = BTreeMap<String, f64>;

/// The file that is checked in.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Baseline {
    /// Whose code was counted: another compiler makes other code.
    compiler: String,
    instructions: Counts,
}

/// Reads what gungraun printed, one JSON object a line for each run, into `run number ->
/// instructions`.
fn parse(summaries: &str) -> Result<BTreeMap<usize, u64>> {
    let run = |line: &str| -> Option<(usize, u64)> {
        let summary: Value = serde_json::from_str(line).ok()?;
        let number = summary["id"].as_str()?.strip_prefix("run_")?.parse().ok()?;
        let profiles = summary["profiles"].as_array()?;
        let callgrind = profiles.iter().find(|profile| profile["tool"] == "Callgrind")?;
        let instructions = callgrind["data"]["total"]["metrics"]["Ir"]["values"]["new"].as_u64()?;
        Some((number, instructions))
    };
    let lines = summaries.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| run(line).with_context(|| format!("no summary of a run: {line}"))).collect()
}

/// The cost of one operation of each measure, rounded to what is written down.
fn counts(measures: &[Measure], runs: &BTreeMap<usize, u64>) -> Result<Counts> {
    let count = |(index, measure): (usize, &Measure)| {
        let of = |run| {
            let missing = || format!("no count of run {run}, of {measure:?}");
            runs.get(&run).copied().with_context(missing)
        };
        let each = per_operation(of(2 * index)?, of(2 * index + 1)?);
        Ok((format!("{measure:?}"), (each * 100.0).round() / 100.0))
    };
    measures.iter().enumerate().map(count).collect()
}

/// A line for each operation, and what is wrong.
fn compare(found: &Counts, baseline: &Counts) -> (String, Vec<String>) {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(table, "  {name:<20} {text}");
    };
    for (name, &now) in found {
        let Some(&before) = baseline.get(name) else {
            line(name, format!("{now:8.2} instructions, new"));
            wrong.push(format!("{name}: {now} instructions, without a checked-in count"));
            continue;
        };
        let change = now / before - 1.0;
        let shown = format!("{now:8.2} instructions, {before:8.2} before ({:+.1} %)", change * 100.0);
        if now > before * (1.0 + TOLERANCE) {
            wrong.push(format!("{name}: rose by {:.1} %, from {before} to {now}", change * 100.0));
        }
        line(name, shown);
    }
    for name in baseline.keys().filter(|name| !found.contains_key(*name)) {
        line(name, "not counted any more".into());
        wrong.push(format!("{name}: has a checked-in count, but is no longer counted"));
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
    let found = counts(&measures(), &parse(&read(summaries)?)?)?;
    let compiler = compiler()?;
    if update {
        let text = serde_json::to_string_pretty(&Baseline { compiler, instructions: found.clone() })? + "\n";
        fs::write(baseline, text).with_context(|| format!("cannot write {}", baseline.display()))?;
        println!("{} operations written to {}", found.len(), baseline.display());
        return Ok(());
    }
    let known: Baseline = serde_json::from_str(&read(baseline)?)
        .with_context(|| format!("{} has no counts of instructions", baseline.display()))?;
    let (table, wrong) = compare(&found, &known.instructions);
    print!("instructions per operation\n{table}");
    if wrong.is_empty() {
        println!("no count is more than {:.0} % over its checked-in count", TOLERANCE * 100.0);
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
        let wrong = |found: &[(&str, f64)]| compare(&named(found), &baseline).1;
        assert_eq!(wrong(&[("slot/drop", 103.0), ("slot/grow", 2.0)]), [""; 0], "three percent, and a fall");
        let rose = wrong(&[("slot/drop", 104.0), ("slot/grow", 10.0)]);
        assert_eq!(rose, ["slot/drop: rose by 4.0 %, from 100 to 104"]);
        let names = wrong(&[("slot/drop", 100.0), ("ring/drop", 5.0)]);
        assert!(names.len() == 2 && names[0].starts_with("ring/drop"), "new, and gone: {names:?}");
    }

    /// A run as gungraun 0.20 prints it, shortened.
    fn summary(run: usize, instructions: u64) -> String {
        format!(
            r#"{{"id":"run_{run}","profiles":[{{"tool":"Callgrind","data":{{"total":{{"metrics":{{"Ir":{{"values":{{"new":{instructions}}}}}}}}}}}}}]}}"#
        )
    }

    #[test]
    fn summaries_are_understood_or_refused() {
        let all = measures();
        let text: Vec<String> = (0..2 * all.len())
            .map(|run| summary(run, if run.is_multiple_of(2) { 50 + 1000 * 7 } else { 50 + 3000 * 7 }))
            .collect();
        let runs = parse(&format!("running\n{}\n", text.join("\n"))).unwrap();
        let counted = counts(&all, &runs).unwrap();
        assert_eq!(counted.len(), all.len());
        assert!(counted.values().all(|count| *count == 7.0), "{counted:?}");
        let missing = parse(&text[1..].join("\n")).unwrap();
        assert!(counts(&all, &missing).is_err());
        assert!(parse(r#"{"id":"other"}"#).is_err());
    }

    #[test]
    fn the_file_names_what_is_measured() {
        let text =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")).unwrap();
        let baseline: Baseline = serde_json::from_str(&text).unwrap();
        let names: Vec<String> = baseline.instructions.keys().cloned().collect();
        let mut measured: Vec<String> = measures().iter().map(|measure| format!("{measure:?}")).collect();
        measured.sort();
        assert_eq!(names, measured);
    }
}
