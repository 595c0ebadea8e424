//! Processor time of reads past the page cache: a bar for each engine, on a logarithmic scale.

use bufadvise::number;
use buftrials::bars::{Bar, Bars};
use buftrials::report::Picture;

use crate::cell::{Measured, Row, Work, size};
use crate::plan::Results;

/// The sizes that the chart shows, where they were measured.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// The shortest bar stands for this many microseconds.
const LEAST: f64 = 0.5;

/// The chart; `None` without data.
#[must_use]
pub fn draw(results: &Results) -> Option<Picture> {
    let depth = results.rows().iter().map(|row| row.depth).filter(|&depth| depth <= 8).max()?;
    let group = |bytes| {
        let row = Row { work: Work::Read, direct: true, bytes, depth, threads: 1 };
        let cells = results.cells.iter().map(|(cell, _)| *cell).filter(|cell| cell.row == row);
        let bars = cells.filter_map(|cell| {
            let value = results.median(&cell, Measured::micros)?;
            Some(Bar { name: cell.name(), class: cell.engine.class(), value })
        });
        (format!("{}, depth {depth}", size(bytes)), bars.collect::<Vec<_>>())
    };
    Bars {
        name: "reader",
        title: "Microseconds of a processor for a read past the page cache (logarithmic)",
        groups: SIZES.map(group).into_iter().filter(|group| !group.1.is_empty()).collect(),
        place: |value, most| (value.max(LEAST) / LEAST).ln() / (most.max(2.0 * LEAST) / LEAST).ln(),
        mark: None,
        show: number::three_digits,
        note: format!("{}, {} cores", results.host.cpu, results.host.cores),
    }
    .draw()
}
