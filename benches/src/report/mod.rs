//! The report: terminal, Markdown, charts, one page.

pub mod chart;
pub mod defaults;
mod dots;
pub mod front;
mod lines;
pub mod markdown;
mod measures;
pub mod page;
pub mod published;
pub mod table;
mod texts;
pub mod view;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Outcome, Results};

/// Writes all files of the report but `results.json`.
///
/// # Errors
///
/// When one cannot be written.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let charts = chart::all(results);
    for chart in &charts {
        put(&format!("{}.svg", chart.name), &chart.standalone())?;
    }
    put("report.md", &markdown::report(results, &charts, "# Benchmark matrix", ""))?;
    put("index.html", &page::page(results, &charts))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Strategy => "strategy",
        Kind::Setting => "setting",
        Kind::Default => "default",
        Kind::Control => "control",
        Kind::Peer => "peer",
    }
}

/// The machine, the build and the settings, by name.
fn facts(results: &Results) -> Vec<(&'static str, String)> {
    let host = &results.host;
    let mut facts = vec![
        ("processor", format!("{}, {} cores", host.cpu, host.cores)),
        ("memory", number::memory(host.memory_bytes)),
        ("governor", host.governor.clone().unwrap_or_else(|| "not readable".into())),
        ("kernel", host.kernel.clone()),
        ("compiler", host.rustc.clone()),
        ("commit", host.commit.clone()),
        ("date", host.date.clone()),
    ];
    if let Some(load) = host.load {
        facts.push(("load before", format!("{load:.2}")));
    }
    let settings = &results.settings;
    facts.push((
        "settings",
        format!(
            "{}: {} processes a row, each of up to {} rounds of {} ms; {} single operations for the tails; {:.0} s in all",
            settings.scale, settings.layouts, settings.rounds, settings.run_ms, settings.samples, results.seconds
        ),
    ));
    facts
}

/// Cells without times, those with the same reason together: contestant, outcome, rows.
fn reasons(results: &Results) -> Vec<(&str, &Outcome, Vec<&str>)> {
    let mut lines: Vec<(&str, &Outcome, Vec<&str>)> = Vec::new();
    for record in &results.cells {
        if matches!(record.outcome, Outcome::Timed(_) | Outcome::Checked) {
            continue;
        }
        let known = lines
            .iter_mut()
            .find(|(name, outcome, _)| *name == record.contestant && **outcome == record.outcome);
        match known {
            Some((_, _, cases)) => cases.push(&record.case),
            None => lines.push((&record.contestant, &record.outcome, vec![&record.case])),
        }
    }
    lines.sort_by_key(|(_, outcome, _)| matches!(outcome, Outcome::Unsupported { .. }));
    lines
}
