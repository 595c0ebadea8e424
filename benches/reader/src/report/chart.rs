//! Processor time of reads past the page cache: a bar for each contestant, on a logarithmic scale.

use bufadvise::drawing::number;
use bufadvise::drawing::scale::Log;
use bufadvise::drawing::svg::{self, Drawing, MARGIN, text_width};
use buftrials::report::Picture;

use crate::cell::{Cell, Measured, Row, Work, size};
use crate::plan::Results;

const TITLE: &str = "Microseconds of a processor for a read past the page cache (logarithmic)";
const WIDTH: f64 = 960.0;
const BAR: f64 = 12.0;
const LINE: f64 = 19.0;

/// The sizes that the chart shows, where they were measured.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// The chart; `None` without data.
#[must_use]
pub fn draw(results: &Results) -> Option<Picture> {
    let depth = results.rows().iter().map(|row| row.depth).filter(|&depth| depth <= 8).max()?;
    let rows = SIZES.map(|bytes| Row { work: Work::Read, direct: true, bytes, depth, threads: 1 });
    let bars = |row: Row| {
        let cells = results.cells.iter().map(|(cell, _)| *cell).filter(move |cell| cell.row == row);
        cells.filter_map(|cell| Some((cell, results.median(&cell, Measured::micros)?))).collect::<Vec<_>>()
    };
    let groups: Vec<(Row, Vec<(Cell, f64)>)> =
        rows.into_iter().map(|row| (row, bars(row))).filter(|group| !group.1.is_empty()).collect();
    let all = || groups.iter().flat_map(|group| &group.1);
    let scale = Log::around(all().map(|bar| bar.1))?;
    let longest = all().map(|(cell, _)| text_width(&cell.name())).fold(0.0, f64::max);
    let mut drawing = Drawing::new(WIDTH);
    let mut y = drawing.title(TITLE) + 24.0;
    let (left, right) = (MARGIN + longest + 12.0, WIDTH - MARGIN - 60.0);
    for (row, bars) in groups {
        drawing.text(MARGIN, y, "start", "name strong", &format!("{}, depth {depth}", size(row.bytes)));
        y += LINE;
        for (cell, micros) in bars {
            let end = left + scale.place(micros) * (right - left);
            drawing.text(left - 8.0, y + 4.0, "end", "name", &cell.name());
            drawing.bar(left, end.max(left + 1.0), y, BAR, cell.contestant.class());
            drawing.text(end + 6.0, y + 4.0, "start", "tick", &number::three_digits(micros));
            y += LINE;
        }
        y += LINE / 2.0;
    }
    let svg = svg::standalone(&drawing.finish(y + 8.0));
    Some(Picture { name: "reader".to_owned(), title: TITLE.to_owned(), svg })
}
