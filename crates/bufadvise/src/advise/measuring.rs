//! From a trace to its advice: the candidates, their replays, the choice.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::analysis::Analysis;
use super::child::{self, Read};
use super::choice::{Choice, Prices, front};
use super::entry::Entry;
use super::memory_timeline::MemoryTimeline;
use super::record::{Advice, SCHEMA};
use super::schedule::Schedule;
use super::tournament::{Effort, Outcome, Parent, TEST_EVENTS};
use super::traffic::{MOST_EVENTS, Needs};
use super::{candidate, codegen, per_site, render_text, traffic_pipe};
use crate::print;

/// Measures and chooses; nothing where no candidate is within the limit, which it says then.
pub(crate) fn advise(analysis: &Analysis<'_>) -> Result<Option<Advice>> {
    let started = Instant::now();
    let read = child::read(analysis.file, if analysis.is_test { TEST_EVENTS } else { MOST_EVENTS })?;
    let traffic = &read.traffic;
    let seconds = read.trace.duration_ns().max(1) as f64 / 1e9;
    let rate = read.trace.summary().acquires as f64 / seconds;
    let prices = Prices { memory_limit: analysis.memory_limit, rate };
    let mut candidates = candidate::sweep(&Needs::of(traffic).with_margin());
    candidates.extend(analysis.given.filter(|given| !candidates.contains(given)));
    let effort = if analysis.is_test { Effort::test() } else { Effort::usual(f64::from(analysis.seconds)) };
    let parent = Parent {
        program: std::env::current_exe().context("cannot find this program")?,
        traffic,
        piped: traffic_pipe::both(traffic),
        candidates: &candidates,
        prices,
        given: analysis.given.and_then(|given| candidates.iter().position(|one| *one == given)),
    };
    let outcome = parent.run(&effort)?;
    let Some(choice) = outcome.choose(&prices) else {
        print::note(render_text::nothing(&outcome.entries, &prices));
        return Ok(None);
    };
    let call_sites = read.heap.as_ref().map(|heap| per_site::advise(analysis, heap, &parent)).transpose()?;
    let mut advice = write_up(analysis, &read, &parent, outcome, choice);
    advice.call_sites = call_sites.unwrap_or_default();
    advice.seconds = started.elapsed().as_secs_f64();
    Ok(Some(advice))
}

/// Writes the advice up, but for what is known by its caller alone.
fn write_up(
    analysis: &Analysis<'_>,
    read: &Read,
    parent: &Parent<'_>,
    outcome: Outcome,
    choice: Choice,
) -> Advice {
    let (traffic, prices) = (&read.traffic, parent.prices);
    let needs = Needs::of(traffic);
    let schedule = Schedule::new(traffic, child::workers_here(traffic));
    let pick = &parent.candidates[choice.pick];
    let now = outcome.without_pool(read.requests_zeros());
    let memory = MemoryTimeline::of(traffic, &outcome, now, choice.pick);
    let entries = outcome.entries;
    let host = crate::measure::host::look();
    let mut advice = Advice {
        schema: SCHEMA,
        trace: analysis.file.display().to_string(),
        name: name_of(&read.trace.meta().name, analysis.file),
        needs,
        room: needs.with_margin(),
        prices,
        acquires: read.acquires,
        replayed: traffic.buffers.len(),
        threads: traffic.threads,
        workers: schedule.parts.len(),
        crossing: schedule.crossings as f64 / traffic.buffers.len() as f64,
        crossing_kept: schedule.crossings_kept as f64 / schedule.crossings.max(1) as f64,
        version: env!("CARGO_PKG_VERSION").into(),
        machine: host.cpu,
        date: host.date,
        front: front_of(&entries, &prices),
        code: codegen::rust(pick),
        beyond: pick.beyond().into(),
        why: Vec::new(),
        call_sites: Vec::new(),
        entries,
        choice,
        memory,
        seconds: 0.0,
    };
    advice.why = render_text::why(&advice);
    advice
}

/// Returns the trade-off among those that can be chosen.
fn front_of(entries: &[Entry], prices: &Prices) -> Vec<usize> {
    let cost = |entry: &Entry| {
        let counts = entry.serves_all() && prices.allows(entry.bytes());
        (if counts { entry.times.median } else { f64::NAN }, entry.bytes())
    };
    front(&entries.iter().map(cost).collect::<Vec<_>>())
}

/// Returns the trace's own name, or its file's.
fn name_of(name: &str, file: &Path) -> String {
    if name.is_empty() {
        file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        name.into()
    }
}
