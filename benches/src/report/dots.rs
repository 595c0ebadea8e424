//! Dots on a logarithmic scale, a row for each line of a workload.

use super::chart::class;
use crate::harness::engine::NOOP;
use crate::harness::record::Results;
use bufadvise::number;
use buftrials::drawing::scale::Log;
use buftrials::drawing::svg::{Drawing, MARGIN, text_width};

/// A row of dots.
pub(super) struct Line {
    pub(super) label: String,
    pub(super) dots: Vec<Dot>,
}

/// One engine's value.
pub(super) struct Dot {
    pub(super) engine: String,
    pub(super) value: f64,
    /// The tenth and the ninetieth percentile.
    pub(super) span: Option<(f64, f64)>,
    pub(super) title: String,
}

/// The chart.
pub(super) struct Dots<'a> {
    pub(super) results: &'a Results,
    pub(super) title: &'a str,
    pub(super) axis: &'a str,
    /// A value that a line across the chart marks.
    pub(super) mark: Option<f64>,
    pub(super) lines: &'a [Line],
    /// A value as people read it.
    pub(super) show: fn(f64) -> String,
}

/// Where on the drawing the values are.
struct Frame {
    scale: Log,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.place(value) * (self.right - self.left)
    }
}

/// The width of a chart.
const WIDTH: f64 = 960.0;
/// The height of a row.
const ROW: f64 = 26.0;
/// The room that a tick's label takes.
const LABEL: f64 = 40.0;

impl Dots<'_> {
    /// The drawing; `None` without data.
    pub(super) fn draw(&self) -> Option<String> {
        let values = self.lines.iter().flat_map(|line| line.dots.iter().map(|dot| dot.value));
        let scale = Log::around(values.chain(self.mark))?;
        let longest = self.lines.iter().map(|line| text_width(&line.label)).fold(0.0, f64::max);
        let mut drawing = Drawing::new(WIDTH);
        drawing.title(self.title);
        let any = |name: &str| self.lines.iter().any(|line| line.dots.iter().any(|dot| dot.engine == name));
        let named = self.results.engines.iter().filter(|column| any(&column.name));
        let named: Vec<_> =
            named.map(|column| (column.name.clone(), class(self.results, &column.name))).collect();
        let top = drawing.legend(&named) + 10.0;
        let frame = Frame {
            scale,
            left: MARGIN + longest + 12.0,
            right: WIDTH - MARGIN - 12.0,
            top,
            bottom: top + ROW * self.lines.len() as f64,
        };
        self.grid(&mut drawing, &frame);
        for (index, line) in self.lines.iter().enumerate() {
            self.line(&mut drawing, &frame, line, frame.top + ROW * (index as f64 + 0.5));
        }
        Some(drawing.finish(frame.bottom + 46.0))
    }

    fn grid(&self, drawing: &mut Drawing, frame: &Frame) {
        for tick in frame.scale.ticks(frame.right - frame.left, LABEL) {
            let class = if tick.major { "grid major" } else { "grid" };
            drawing.vertical(frame.x(tick.value), frame.top, frame.bottom, class);
            if tick.labelled {
                let text = number::tick(&(self.show)(tick.value));
                drawing.text(frame.x(tick.value), frame.bottom + 16.0, "middle", "tick", &text);
            }
        }
        if let Some(mark) = self.mark {
            drawing.vertical(frame.x(mark), frame.top, frame.bottom, "mark");
        }
        drawing.text((frame.left + frame.right) / 2.0, frame.bottom + 34.0, "middle", "axis", self.axis);
    }

    fn line(&self, drawing: &mut Drawing, frame: &Frame, line: &Line, y: f64) {
        drawing.text(frame.left - 10.0, y + 4.0, "end", "label", &line.label);
        drawing.horizontal(frame.left, frame.right, y, "grid");
        // Strategies last, so that they lie on top.
        let mut order: Vec<(&Dot, String)> =
            line.dots.iter().map(|dot| (dot, class(self.results, &dot.engine))).collect();
        order.sort_by_key(|(_, class)| class.starts_with('s'));
        for (dot, class) in order {
            if let Some((low, high)) = dot.span {
                let (low, high) = (low.max(frame.scale.low), high.min(frame.scale.high));
                drawing.horizontal(frame.x(low), frame.x(high), y, &format!("span {class}"));
            }
            drawing.dot(frame.x(dot.value), y, &class, dot.engine == NOOP, &dot.title);
        }
    }
}
