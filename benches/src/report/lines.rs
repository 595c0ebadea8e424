//! Lines over equally spaced parameters, times on a logarithmic scale.

use std::fmt::Write;

use super::chart::{WIDTH, class, drawn, words};
use crate::drawing::number;
use crate::drawing::scale::{Log, apart};
use crate::drawing::svg::{Drawing, MARGIN, text_width};
use crate::harness::contestant::FLOOR;
use crate::harness::record::{Results, Row, Timing};

/// The chart.
pub(super) struct Lines<'a> {
    pub(super) results: &'a Results,
    pub(super) title: &'a str,
    pub(super) axis: &'a str,
    pub(super) rows: &'a [&'a Row],
    /// What the rows are called on the axis.
    pub(super) names: &'a [&'a str],
}

/// Where on the drawing the values are.
struct Frame {
    scale: Log,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// From one row to the next.
    step: f64,
}

impl Frame {
    fn x(&self, index: usize) -> f64 {
        self.left + self.step * index as f64
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.scale.place(value) * (self.bottom - self.top)
    }
}

/// Where a contestant's line ends.
struct End<'a> {
    y: f64,
    contestant: &'a str,
    class: String,
}

const HEIGHT: f64 = 380.0;
/// From one name at the lines' ends to the next, at least.
const LABEL: f64 = 15.0;

impl Lines<'_> {
    /// The drawing; `None` without data.
    pub(super) fn draw(&self) -> Option<String> {
        let names: Vec<&str> = drawn(self.results).map(|column| column.name.as_str()).collect();
        let values = self
            .rows
            .iter()
            .flat_map(|row| names.iter().filter_map(|name| Some(self.timing(row, name)?.median)));
        let scale = Log::around(values)?;
        let shown = |name: &str| self.rows.iter().any(|row| self.timing(row, name).is_some());
        let longest =
            names.iter().filter(|name| shown(name)).map(|name| text_width(name)).fold(0.0, f64::max);
        let mut drawing = Drawing::new(WIDTH);
        let top = drawing.title(self.title) + 20.0;
        let (left, right) = (MARGIN + 52.0, WIDTH - MARGIN - longest - 40.0);
        let step = (right - left) / (self.rows.len().max(2) - 1) as f64;
        let frame = Frame { scale, left, right, top, bottom: top + HEIGHT, step };
        self.grid(&mut drawing, &frame);
        // Strategies last, so that they lie on top.
        let mut order: Vec<(&str, String)> =
            names.into_iter().map(|name| (name, class(self.results, name))).collect();
        order.sort_by_key(|(_, class)| class.starts_with('s'));
        let ends: Vec<End<'_>> = order
            .into_iter()
            .filter_map(|(contestant, class)| {
                let y = self.line(&mut drawing, &frame, contestant, &class)?;
                Some(End { y, contestant, class })
            })
            .collect();
        Self::names_at_ends(&mut drawing, &frame, ends);
        Some(drawing.finish(frame.bottom + 48.0))
    }

    fn timing(&self, row: &Row, contestant: &str) -> Option<&Timing> {
        self.results.cell(&row.id, contestant)?.timing()
    }

    fn grid(&self, drawing: &mut Drawing, frame: &Frame) {
        for tick in frame.scale.ticks(frame.bottom - frame.top, LABEL) {
            let (y, class) = (frame.y(tick.value), if tick.major { "grid major" } else { "grid" });
            drawing.horizontal(frame.left, frame.right, y, class);
            if tick.labelled {
                let text = number::tick(&number::time(tick.value));
                drawing.text(frame.left - 8.0, y + 4.0, "end", "tick", &text);
            }
        }
        let longest = self.names.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        // Where they would touch, every other name is left out.
        let every = ((longest / frame.step).ceil() as usize).max(1);
        for (index, name) in self.names.iter().enumerate() {
            drawing.vertical(frame.x(index), frame.top, frame.bottom, "grid");
            if index % every == 0 {
                drawing.text(frame.x(index), frame.bottom + 18.0, "middle", "tick", name);
            }
        }
        drawing.text((frame.left + frame.right) / 2.0, frame.bottom + 38.0, "middle", "axis", self.axis);
    }

    /// Draws a contestant's line and its dots; returns where the line ends, if there is one.
    fn line(&self, drawing: &mut Drawing, frame: &Frame, contestant: &str, class: &str) -> Option<f64> {
        let timed: Vec<(usize, &Row, &Timing)> = self
            .rows
            .iter()
            .enumerate()
            .filter_map(|(index, row)| Some((index, *row, self.timing(row, contestant)?)))
            .collect();
        let end = frame.y(timed.last()?.2.median);
        let mut path = String::new();
        for (index, _, timing) in &timed {
            let (x, y) = (frame.x(*index), frame.y(timing.median));
            let _ = write!(path, "{}{x:.1},{y:.1} ", if path.is_empty() { "M" } else { "L" });
        }
        drawing.path(&path, class, contestant == FLOOR);
        for (index, row, timing) in timed {
            let (x, y) = (frame.x(index), frame.y(timing.median));
            drawing.dot(x, y, class, contestant == FLOOR, &words(contestant, row, timing));
        }
        Some(end)
    }

    /// Names at the lines' ends, moved apart where they would overlap.
    fn names_at_ends(drawing: &mut Drawing, frame: &Frame, mut ends: Vec<End<'_>>) {
        ends.sort_by(|one, other| one.y.total_cmp(&other.y));
        let heights: Vec<f64> = ends.iter().map(|end| end.y).collect();
        let lowest = frame.bottom + 6.0;
        let mut places = apart(&heights, LABEL, frame.top - 20.0, lowest);
        keep_above(&mut places, lowest);
        for (end, place) in ends.iter().zip(places) {
            let path =
                format!("M{:.1},{:.1} L{:.1},{place:.1}", frame.right + 5.0, end.y, frame.right + 16.0);
            drawing.path(&path, &format!("leader {}", end.class), false);
            drawing.dot(frame.right + 23.0, place, &end.class, end.contestant == FLOOR, end.contestant);
            let strong = if end.class.starts_with('s') { " strong" } else { "" };
            drawing.text(frame.right + 33.0, place + 4.0, "start", &format!("name{strong}"), end.contestant);
        }
    }
}

/// Moves sorted places up until the last is at `lowest`, and neighbours are as far apart as before,
/// or by [`LABEL`]. Where many names crowd at the lower bound, `apart` leaves some below it.
fn keep_above(places: &mut [f64], lowest: f64) {
    let mut limit = lowest;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_the_drawing() {
        let heights = [vec![10.0], vec![370.0; 21]].concat();
        let mut places = apart(&heights, LABEL, 0.0, 386.0);
        keep_above(&mut places, 386.0);
        assert!(places.iter().all(|place| (0.0..=386.0).contains(place)), "{places:?}");
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > LABEL - 0.1), "{places:?}");
    }
}
