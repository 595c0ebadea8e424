//! Resident memory over time, a line for each engine: on a logarithmic scale, since what is
//! kept may be a hundredth of what was used.

use core::fmt::Write;

use bufadvise::number;
use buftrials::drawing::scale::{Log, apart};
use buftrials::drawing::svg::{self, Drawing, MARGIN, text_width};
use buftrials::report::Picture;

use crate::engine::{Allocator, Engine};
use crate::record::{IdleRun, Results};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
/// From one name at the lines' ends to the next, at least.
const LABEL: f64 = 15.0;
/// The least room for the seconds at a tick.
const SECONDS: f64 = 44.0;

/// The lines of the front page's chart.
const FRONT: [Engine; 5] =
    [Engine::BytesMut, Engine::Codec, Engine::BumpKeeper, Engine::Shard, Engine::ShardKeeper];

/// The chart of an allocator; `None` without data.
#[must_use]
pub fn over(results: &Results, allocator: Allocator) -> Option<Picture> {
    let title = format!("Resident memory of a server over time, over {}", allocator.name());
    let runs = Engine::all().filter_map(|one| results.runs(one, allocator).next());
    draw(format!("idle-{}", allocator.name()), title, &runs.collect::<Vec<_>>())
}

/// The chart of the front page; `None` where a line is missing.
#[must_use]
pub fn front(results: &Results) -> Option<Picture> {
    let runs = FRONT.into_iter().map(|one| results.runs(one, Allocator::Glibc).next());
    let title = format!(
        "Resident memory of a server: {} connections that each send {} once",
        results.course.clients,
        number::exact_memory(results.course.large_bytes as u64)
    );
    draw("front".to_owned(), title, &runs.collect::<Option<Vec<_>>>()?)
}

/// When the run's burst was over, in milliseconds since its start. Bursts take more or less time; what
/// comes later takes the same in all runs.
fn origin(run: &IdleRun) -> f64 {
    run.phases.iter().find(|phase| phase.name == "burst").map_or(0.0, |phase| phase.to as f64)
}

/// Where on the drawing the values are.
struct Frame {
    scale: Log,
    /// The first look and the last, in milliseconds since the end of the burst.
    times: (f64, f64),
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, millis: f64) -> f64 {
        let (first, last) = self.times;
        self.left + (millis - first) / (last - first) * (self.right - self.left)
    }

    fn y(&self, bytes: f64) -> f64 {
        self.bottom - self.scale.place(bytes) * (self.bottom - self.top)
    }
}

/// `None` without data.
fn draw(name: String, title: String, runs: &[&IdleRun]) -> Option<Picture> {
    let samples = || runs.iter().flat_map(|run| &run.samples);
    let scale = Log::around(samples().map(|sample| sample.bytes as f64))?;
    let times = runs.iter().flat_map(|run| run.samples.iter().map(|sample| sample.at as f64 - origin(run)));
    let first = times.clone().fold(f64::INFINITY, f64::min);
    let last = times.fold(first + 1.0, f64::max);
    let mut drawing = Drawing::new(WIDTH);
    let top = drawing.title(&title) + 36.0;
    let longest = runs.iter().map(|run| text_width(run.engine.title())).fold(0.0, f64::max);
    let (left, right) = (MARGIN + 64.0, WIDTH - MARGIN - longest - 40.0);
    let frame = Frame { scale, times: (first, last), left, right, top, bottom: top + HEIGHT };
    grid(&mut drawing, &frame);
    if let Some(first) = runs.first() {
        phases(&mut drawing, &frame, first);
    }
    for run in runs {
        line(&mut drawing, &frame, run);
    }
    names(&mut drawing, &frame, runs);
    let svg = svg::standalone(&drawing.finish(frame.bottom + 48.0));
    Some(Picture { name, title, svg })
}

/// Lines at bytes and seconds.
fn grid(drawing: &mut Drawing, frame: &Frame) {
    // Powers of ten of mebibytes, not of bytes.
    let mebi = f64::from(1 << 20);
    let scale = Log { low: frame.scale.low / mebi, high: frame.scale.high / mebi };
    for tick in scale.ticks(frame.bottom - frame.top, LABEL) {
        let (y, class) = (frame.y(tick.value * mebi), if tick.major { "grid major" } else { "grid" });
        drawing.horizontal(frame.left, frame.right, y, class);
        if tick.labelled {
            let text = number::tick(&format!("{} MiB", number::three_digits(tick.value)));
            drawing.text(frame.left - 8.0, y + 4.0, "end", "tick", &text);
        }
    }
    let (first, last) = (frame.times.0 / 1e3, frame.times.1 / 1e3);
    let steps = [1, 2, 5, 10, 30, 60];
    let fits = |step: &&i64| (frame.right - frame.left) / (last - first) * **step as f64 >= SECONDS;
    let step = steps.iter().find(fits).copied().unwrap_or(60);
    let (from, to) = ((first / step as f64).ceil() as i64, (last / step as f64).floor() as i64);
    for second in (from..=to).map(|at| at * step) {
        let x = frame.x(second as f64 * 1e3);
        drawing.vertical(x, frame.top, frame.bottom, "grid");
        drawing.text(x, frame.bottom + 18.0, "middle", "tick", &format!("{second} s"));
    }
    let middle = (frame.left + frame.right) / 2.0;
    drawing.text(middle, frame.bottom + 38.0, "middle", "axis", "seconds since the end of the burst");
}

/// What happened when. Of the burst only the end is the same in all runs.
fn phases(drawing: &mut Drawing, frame: &Frame, run: &IdleRun) {
    let x = |millis: u64| frame.x(millis as f64 - origin(run));
    for phase in run.phases.iter().skip_while(|phase| phase.name != "burst") {
        let (from, to) = (x(phase.from), x(phase.to));
        drawing.vertical(to, frame.top, frame.bottom, "mark");
        // Where there is no room the lines speak for themselves.
        let place = (from.max(frame.left) + to) / 2.0;
        if text_width(&phase.name) < to - from {
            drawing.text(place, frame.top - 8.0, "middle", "axis", &phase.name);
        }
    }
}

fn line(drawing: &mut Drawing, frame: &Frame, run: &IdleRun) {
    let mut path = String::new();
    for sample in &run.samples {
        let (x, y) = (frame.x(sample.at as f64 - origin(run)), frame.y(sample.bytes as f64));
        // Writing to a string does not fail.
        let _ = write!(path, "{}{x:.1},{y:.1} ", if path.is_empty() { "M" } else { "L" });
    }
    drawing.path(&path, run.engine.class(), is_dashed(run));
}

/// A strategy without its keeper has the colour that it has with it.
fn is_dashed(run: &IdleRun) -> bool {
    run.engine.lacks_keeper()
}

/// Names at the lines' ends, moved apart where they would overlap.
fn names(drawing: &mut Drawing, frame: &Frame, runs: &[&IdleRun]) {
    let end = |run: &&IdleRun| Some((frame.y(run.samples.last()?.bytes as f64), run.engine));
    let mut ends: Vec<(f64, Engine)> = runs.iter().filter_map(end).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let heights: Vec<f64> = ends.iter().map(|end| end.0).collect();
    let places = apart(&heights, LABEL, frame.top - 20.0, frame.bottom + 6.0);
    for ((y, engine), place) in ends.into_iter().zip(places) {
        let path = format!("M{:.1},{y:.1} L{:.1},{place:.1}", frame.right + 5.0, frame.right + 16.0);
        drawing.path(&path, &format!("leader {}", engine.class()), false);
        let hollow = engine.lacks_keeper();
        drawing.dot(frame.right + 23.0, place, engine.class(), hollow, engine.title());
        let strong = if engine.has_keeper() { " strong" } else { "" };
        drawing.text(frame.right + 33.0, place + 4.0, "start", &format!("name{strong}"), engine.title());
    }
}

#[cfg(test)]
mod tests {
    use buftrials::watch::Sample;

    use super::*;
    use crate::record::{Phase, fixture};

    fn run(engine: Engine, bytes: u64) -> IdleRun {
        let samples = (0..30).map(|at| Sample { at: at * 100, bytes: bytes << 20 }).collect();
        let phase = |name: &str, from, to| Phase { name: name.to_owned(), from, to };
        let phases = vec![phase("burst", 0, 1000), phase("silence", 1000, 3000)];
        IdleRun { phases, samples, ..fixture::run(engine, 1, 1, 1, 1) }
    }

    #[test]
    fn a_line_and_a_name_for_each() {
        let runs = [run(Engine::Codec, 10), run(Engine::Shard, 300), run(Engine::ShardKeeper, 5)];
        let draw = |runs: &[&IdleRun]| draw("memory".to_owned(), "Memory".to_owned(), runs);
        let drawing = draw(&runs.iter().collect::<Vec<_>>()).unwrap().svg;
        for run in &runs {
            assert!(drawing.contains(&format!(">{}</text>", run.engine.title())), "{drawing}");
        }
        assert_eq!(drawing.matches("<path class=\"line").count(), 3, "{drawing}");
        for label in ["silence", "100 MiB", "-1 s", "1 s"] {
            assert!(drawing.contains(&format!(">{label}</text>")), "{label}: {drawing}");
        }
        assert!(draw(&[]).is_none());
    }
}
