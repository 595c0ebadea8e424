//! Time against memory, of all candidates.

use super::entry::Entry;
use super::record::Advice;
use crate::drawing::number;
use crate::drawing::scale::{Log, apart};
use crate::drawing::svg::{self, Drawing, MARGIN, text_width};

/// Up to the names.
const WIDTH: f64 = 708.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 84.0;
/// From the chart to a name, and behind the names.
const NAMES: f64 = 32.0;
const LABEL: f64 = 16.0;
/// The least height of the scale of times, as a ratio: differences of a few percent should not fill
/// the page.
const LEAST_RATIO: f64 = 1.5;

/// Draws the picture, as a file of its own.
#[must_use]
pub(crate) fn draw(advice: &Advice) -> Option<String> {
    let entries = &advice.entries;
    let bytes = Log::around(entries.iter().map(|entry| entry.bytes() as f64))?;
    let bytes = Log { low: bytes.low / 1.1, high: bytes.high * 1.1 };
    let mut times = Log::around(entries.iter().map(|entry| entry.times.median))?;
    times.high = times.high.max(times.low * LEAST_RATIO);
    let widest = entries.iter().map(|entry| text_width(&format!("→ {}", entry.candidate)));
    let width = WIDTH + NAMES + widest.fold(0.0, f64::max) + MARGIN;
    let mut drawing = Drawing::new(width);
    let title = format!("{}: time and memory of {} candidates", advice.name, entries.len());
    drawing.title(&title);
    let named: Vec<(String, String)> = entries.iter().fold(Vec::new(), |mut named, entry| {
        let name = entry.candidate.strategy().to_owned();
        if !named.iter().any(|(other, _)| *other == name) {
            named.push((name, entry.candidate.colour().to_owned()));
        }
        named
    });
    let top = drawing.legend(&named) + 12.0;
    let (right, bottom) = (WIDTH, top + HEIGHT);
    let x = |value: f64| LEFT + bytes.place(value) * (right - LEFT);
    let y = |value: f64| bottom - times.place(value) * (bottom - top);
    for tick in times.ticks(HEIGHT, LABEL) {
        drawing.horizontal(LEFT, right, y(tick.value), if tick.major { "grid major" } else { "grid" });
        if tick.labelled {
            let text = number::tick(&number::time(tick.value));
            drawing.text(LEFT - 8.0, y(tick.value) + 4.0, "end", "tick", &text);
        }
    }
    for value in powers_of_two(&bytes) {
        drawing.vertical(x(value), top, bottom, "grid");
        drawing.text(x(value), bottom + 16.0, "middle", "tick", &whole(&number::memory(value as u64)));
    }
    let middle = (LEFT + right) / 2.0;
    drawing.text(middle, bottom + 36.0, "middle", "axis", "resident memory at its peak (left is less)");
    let note = "time per request, of all threads together (down is faster); hollow: refused requests; dashed: nobody would notice what is below";
    drawing.text(middle, bottom + 54.0, "middle", "axis", note);
    let fastest = entries[advice.choice.fastest].times.median;
    drawing.horizontal(LEFT, right, y(advice.prices.unnoticed(fastest).min(times.high)), "mark");
    for entry in entries {
        let title = format!(
            "{}: {} ({} to {}), {}",
            entry.candidate,
            number::time(entry.times.median),
            number::time(entry.times.p10),
            number::time(entry.times.p90),
            number::memory(entry.bytes())
        );
        let (x, y) = (x(entry.bytes() as f64), y(entry.times.median));
        drawing.dot(x, y, entry.candidate.colour(), !entry.serves_all(), &title);
    }
    names(&mut drawing, advice, right, top, bottom, |entry| (x(entry.bytes() as f64), y(entry.times.median)));
    Some(svg::standalone(&drawing.finish(bottom + 68.0)))
}

/// Names beside the chart, moved apart: of those that came to the last stage, and of the best of
/// each strategy.
fn names(
    drawing: &mut Drawing,
    advice: &Advice,
    right: f64,
    top: f64,
    bottom: f64,
    place: impl Fn(&Entry) -> (f64, f64),
) {
    let best = |strategy: &str| {
        let same = advice.entries.iter().filter(|entry| entry.candidate.strategy() == strategy);
        same.min_by(|one, other| {
            let rank = |entry: &Entry| (!entry.serves_all(), entry.times.median);
            rank(one).0.cmp(&rank(other).0).then(rank(one).1.total_cmp(&rank(other).1))
        })
    };
    let pick = advice.pick();
    let mut named: Vec<&Entry> = advice
        .entries
        .iter()
        .filter(|entry| {
            entry.stage == 3
                || best(entry.candidate.strategy()).is_some_and(|best| best.candidate == entry.candidate)
        })
        .collect();
    named.sort_by(|one, other| place(one).1.total_cmp(&place(other).1));
    let heights: Vec<f64> = named.iter().map(|entry| place(entry).1).collect();
    for (entry, height) in named.iter().zip(apart(&heights, LABEL, top, bottom)) {
        let (x, y) = place(entry);
        let path = format!("M{:.1},{y:.1} L{:.1},{height:.1}", x + 6.0, right + 14.0);
        drawing.path(&path, &format!("leader {}", entry.candidate.colour()), false);
        let chosen = if entry.candidate == pick.candidate { "→ " } else { "" };
        let strong = if chosen.is_empty() { "" } else { "strong" };
        let text = format!("{chosen}{}", entry.candidate);
        drawing.dot(right + 22.0, height, entry.candidate.colour(), !entry.serves_all(), "");
        drawing.text(right + NAMES, height + 4.0, "start", &format!("name {strong}"), &text);
    }
}

/// Returns the powers of two on the scale, some of them left out where they would be too many.
fn powers_of_two(scale: &Log) -> Vec<f64> {
    const MOST: usize = 9;
    let powers: Vec<f64> = (0..63)
        .map(|power| 2_f64.powi(power))
        .filter(|value| (scale.low..=scale.high).contains(value))
        .collect();
    let step = powers.len().div_ceil(MOST).max(1);
    powers.into_iter().step_by(step).collect()
}

/// Shortens `2.0 MiB` by its zero.
fn whole(text: &str) -> String {
    text.replace(".0 ", " ")
}
