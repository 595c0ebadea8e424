//! Time against memory, of all candidates.

use super::record::Advice;
use crate::drawing::number;
use crate::drawing::scale::Log;
use crate::drawing::svg::{self, Drawing, MARGIN};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 84.0;
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
    let mut drawing = Drawing::new(WIDTH);
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
    let (right, bottom) = (WIDTH - MARGIN, top + HEIGHT);
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
        drawing.text(x(value), bottom + 16.0, "middle", "tick", &number::exact_memory(value as u64));
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
    let pick = advice.pick();
    let (x, y) = (x(pick.bytes() as f64), y(pick.times.median));
    let (anchor, x) = if x > middle { ("end", x - 10.0) } else { ("start", x + 10.0) };
    drawing.text(x, y - 8.0, anchor, "name strong", &format!("→ {}", pick.candidate));
    Some(svg::standalone(&drawing.finish(bottom + 68.0)))
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
