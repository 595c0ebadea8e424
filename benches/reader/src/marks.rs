//! What has to hold of the results.

use buftrials::mark::Mark;

use crate::cell::{Cell, Measured, Row, Work};
use crate::engine::{Engine, Memory};
use crate::plan::Results;

/// What two runs of the same differ by.
const NOISE: f64 = 1.02;

/// All that can be judged by these results.
#[must_use]
pub fn all(results: &Results) -> Vec<Mark> {
    let mut marks = Vec::new();
    marks.extend(huge(results));
    for (bytes, most) in [(4 << 10, 0.9), (64 << 10, 0.75)] {
        marks.extend(registered(results, bytes, most));
    }
    for row in results.rows() {
        if !row.direct {
            marks.extend(cached(results, row));
        }
        if row.work == Work::Tensors {
            marks.extend(tensors(results, row));
        }
    }
    marks
}

fn mark(what: String, ratio: f64, most: f64) -> Mark {
    Mark { what: format!("{what}, at most {most}"), found: format!("{ratio:.3}"), holds: ratio <= most }
}

/// The row that marks of direct reads are of.
fn direct(bytes: usize) -> Row {
    Row { work: Work::Read, direct: true, bytes, depth: 8, threads: 1 }
}

/// The best of some cells in a row, by the median of something that is to be small.
fn best(
    results: &Results,
    row: Row,
    is_one: impl Fn(&Cell) -> bool,
    of: impl Fn(&Measured) -> f64,
) -> Option<Cell> {
    let cells = results.cells.iter().map(|(cell, _)| cell).filter(|cell| cell.row == row && is_one(cell));
    cells
        .filter_map(|cell| Some((results.median(cell, &of)?, *cell)))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|found| found.1)
}

/// 1 MiB on huge pages, to fresh aligned memory.
fn huge(results: &Results) -> Option<Mark> {
    let row = direct(1 << 20);
    let ours = best(results, row, |cell| cell.memory.is_huge(), Measured::micros)?;
    let fresh = Cell { row, engine: Engine::Aligned, memory: Memory::Plain };
    let ratio = results.ratio(&ours, &fresh, Measured::micros)?;
    let what = format!("processor time of a read, {}: {} to {}", row.title(), ours.name(), fresh.name());
    Some(mark(what, ratio, 0.06))
}

/// Registered to not, on plain pages.
fn registered(results: &Results, bytes: usize, most: f64) -> Option<Mark> {
    let row = direct(bytes);
    let of = |memory| Cell { row, engine: Engine::Slot, memory };
    let (ours, plain) = (of(Memory::Registered), of(Memory::Plain));
    let ratio = results.ratio(&ours, &plain, Measured::micros)?;
    let what = format!("processor time of a read, {}: {} to {}", row.title(), ours.name(), plain.name());
    Some(mark(what, ratio, most))
}

/// Out of the page cache, a pool to fresh memory.
fn cached(results: &Results, row: Row) -> Vec<Mark> {
    let is_fresh = |cell: &Cell| matches!(cell.engine, Engine::Vec | Engine::Zeroed | Engine::Aligned);
    let Some(fresh) = best(results, row, is_fresh, |found| 1.0 / found.rate()) else { return Vec::new() };
    let ours = best(results, row, |cell| cell.engine.is_ours(), |found| 1.0 / found.rate());
    ours.and_then(|ours| {
        let ratio = results.ratio(&ours, &fresh, |found| 1.0 / found.rate())?;
        let what = format!("time, {}: {} to {}", row.title(), ours.name(), fresh.name());
        Some(mark(what, ratio, 1.0))
    })
    .into_iter()
    .collect()
}

/// Tensors, the best pool to zeropool, to a zeroed vector, and to whoever is best.
fn tensors(results: &Results, row: Row) -> Vec<Mark> {
    let slow = |found: &Measured| 1.0 / found.rate();
    let Some(ours) = best(results, row, |cell| cell.engine.is_ours(), slow) else { return Vec::new() };
    let of = |engine| Cell { row, engine, memory: Memory::Plain };
    let other = best(results, row, |cell| !cell.engine.is_ours(), slow);
    let others = [(Some(of(Engine::Zeropool)), 1.0), (Some(of(Engine::Zeroed)), 1.0), (other, NOISE)];
    let marks = others.into_iter().filter_map(|(other, most)| {
        let other = other?;
        let ratio = results.ratio(&ours, &other, slow)?;
        Some(mark(format!("time, {}: {} to {}", row.title(), ours.name(), other.name()), ratio, most))
    });
    let mut marks: Vec<Mark> = marks.collect();
    marks.dedup_by(|one, other| one.what == other.what);
    marks
}
