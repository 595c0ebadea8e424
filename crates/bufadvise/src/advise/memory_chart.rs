//! Memory over time as a chart, and in a sentence.

use super::memory_timeline::{MemoryTimeline, Series};
use crate::drawing::number::{exact_memory, memory, tick, time};
use crate::drawing::svg::{self, Drawing, MARGIN};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 84.0;
/// Values on each axis, at most.
const MOST_TICKS: f64 = 8.0;
/// The class of the line of what is out.
const OUT: &str = "c3";

/// Draws the picture, as a file of its own. `name` is the program's, or a call site's.
pub(super) fn draw(name: &str, memory: &MemoryTimeline) -> String {
    let mut drawing = Drawing::new(WIDTH);
    drawing.title(&format!("{name}: memory over time, now and with the choice"));
    let lines = lines(memory);
    let legend: Vec<(String, String)> =
        lines.iter().map(|line| (line.name.clone(), line.class.to_owned())).collect();
    let top = drawing.legend(&legend) + 12.0;
    let (right, bottom) = (WIDTH - MARGIN, top + HEIGHT);
    let first = memory.seconds.first().copied().unwrap_or(0.0);
    let seconds = (memory.seconds.last().copied().unwrap_or(0.0) - first).max(1e-9);
    let most = lines.iter().flat_map(|line| line.bytes).max().copied().unwrap_or(0).max(1) as f64;
    let x = |second: f64| LEFT + (second - first) / seconds * (right - LEFT);
    let y = |bytes: f64| bottom - bytes / most * HEIGHT;
    for bytes in ticks(most, &[1.0, 2.0, 4.0, 8.0], 16.0) {
        drawing.horizontal(LEFT, right, y(bytes), "grid");
        drawing.text(LEFT - 8.0, y(bytes) + 4.0, "end", "tick", &exact_memory(bytes as u64));
    }
    for second in ticks(seconds, &[1.0, 2.0, 5.0], 10.0) {
        drawing.vertical(x(first + second), top, bottom, "grid");
        drawing.text(x(first + second), bottom + 16.0, "middle", "tick", &tick(&time(second * 1e9)));
    }
    let note =
        "time since the first request; the bytes of the buffers that are out, and the pages that they take";
    drawing.text((LEFT + right) / 2.0, bottom + 36.0, "middle", "axis", note);
    for line in &lines {
        let mut path = String::new();
        let mut before = None;
        for (second, bytes) in memory.seconds.iter().zip(line.bytes) {
            let (x, y) = (x(*second), y(*bytes as f64));
            path += &match before {
                None => format!("M{x:.1},{y:.1}"),
                // It was the same until now.
                Some(before) => format!(" L{x:.1},{before:.1} L{x:.1},{y:.1}"),
            };
            before = Some(y);
        }
        drawing.path(&path, line.class, line.is_dashed);
    }
    svg::standalone(&drawing.finish(bottom + 48.0))
}

/// A line of the chart.
struct Line<'a> {
    name: String,
    class: &'static str,
    bytes: &'a [u64],
    is_dashed: bool,
}

fn lines(memory: &MemoryTimeline) -> Vec<Line<'_>> {
    let line =
        |what: &str, series: &'_ Series| (format!("{what}: {}", series.settings), series.settings.colour());
    let (name, class) = line("now", &memory.now);
    let mut lines = vec![
        Line { name: "bytes out".into(), class: OUT, bytes: &memory.out, is_dashed: true },
        Line { name, class, bytes: &memory.now.bytes, is_dashed: false },
    ];
    if let Some(choice) = &memory.choice {
        let (name, class) = line("the choice", choice);
        lines.push(Line { name, class, bytes: &choice.bytes, is_dashed: false });
    }
    lines
}

/// Values of an axis up to `most`: multiples of the smallest step that leaves few enough. Steps are
/// `digits` times powers of `base`.
fn ticks(most: f64, digits: &[f64], base: f64) -> Vec<f64> {
    let mut power = base.powf((most / MOST_TICKS).log(base).floor());
    let step = loop {
        let fits = |digit: &&f64| most / (*digit * power) <= MOST_TICKS;
        match digits.iter().find(fits) {
            Some(digit) => break digit * power,
            None => power *= base,
        }
    };
    let count = (most / step).floor() as usize;
    (0..=count).map(|nth| nth as f64 * step).collect()
}

/// Writes both as a sentence.
pub(super) fn sentence(timeline: &MemoryTimeline) -> String {
    let figures = |series: &Series| {
        let bytes = &series.bytes;
        let (most, last) = (bytes.iter().max().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        format!(
            "`{}` takes {} on average, {} at most, and {} at the end",
            series.settings,
            memory(timeline.mean(bytes)),
            memory(most),
            memory(last),
        )
    };
    let out = memory(timeline.mean(&timeline.out));
    let now = figures(&timeline.now);
    match &timeline.choice {
        None => format!("Memory over time: {out} are out on average. As it is now, {now}."),
        Some(choice) => {
            format!(
                "Memory over time: {out} are out on average. As it is now, {now}. The choice {}.",
                figures(choice)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Candidate;
    use super::*;

    fn series(settings: &str, bytes: &[u64]) -> Series {
        Series { settings: settings.parse::<Candidate>().expect("settings"), bytes: bytes.to_vec() }
    }

    fn memory_of(choice: Option<Series>) -> MemoryTimeline {
        MemoryTimeline {
            seconds: vec![0.0, 0.5, 2.0],
            out: vec![0, 1 << 20, 0],
            now: series("vec", &[0, 4 << 20, 3 << 20]),
            choice,
        }
    }

    #[test]
    fn both_are_drawn_and_named() {
        let memory = memory_of(Some(series("slot:slots=16", &[0, 1 << 20, 1 << 20])));
        let drawn = draw("app", &memory);
        for part in ["app: memory over time", "now: vec", "the choice: slot:slots=16", "2 MiB", "500 ms"] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert_eq!(drawn.matches("class=\"line").count(), 3, "{drawn}");
    }

    #[test]
    fn a_sentence_has_the_figures_of_both() {
        let words = sentence(&memory_of(Some(series("slot", &[0, 1 << 20, 1 << 20]))));
        assert!(words.contains("768 KiB are out on average"), "{words}");
        assert!(
            words.contains("`vec` takes 3.0 MiB on average, 4.0 MiB at most, and 3.0 MiB at the end"),
            "{words}"
        );
        assert!(words.contains("The choice `slot"), "{words}");
        assert!(!sentence(&memory_of(None)).contains("choice"));
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(12.0, &[1.0, 2.0, 5.0], 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        let mib = f64::from(1 << 20);
        assert_eq!(ticks(3.4 * mib, &[1.0, 2.0, 4.0, 8.0], 16.0).len(), 7);
        assert_eq!(ticks(3.4 * mib, &[1.0, 2.0, 4.0, 8.0], 16.0)[2], mib);
        assert_eq!(ticks(1.0, &[1.0, 2.0, 5.0], 10.0).len(), 6);
    }
}
