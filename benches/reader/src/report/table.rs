//! Tables: one for each row, with a line for each engine.

use bufadvise::number;
use buftrials::table::Table;

use crate::cell::{Cell, Measured, Row};
use crate::plan::Results;

/// A table for each row, with its title.
#[must_use]
pub fn all(results: &Results) -> Vec<(String, Table)> {
    results.rows().into_iter().map(|row| (row.title(), of_row(results, row))).collect()
}

fn of_row(results: &Results, row: Row) -> Table {
    let mut table = Table::new(&[
        "buffers",
        "GB/s",
        "processor s/GB",
        "processor µs/read",
        "to the least",
        "page faults/read",
    ]);
    let cells: Vec<&Cell> =
        results.cells.iter().map(|(cell, _)| cell).filter(|cell| cell.row == row).collect();
    let micros = |cell: &Cell| results.median(cell, Measured::micros);
    let least = cells.iter().filter_map(|cell| micros(cell)).fold(f64::INFINITY, f64::min);
    for cell in cells {
        let of = |of: fn(&Measured) -> f64| results.median(cell, of).unwrap_or(f64::NAN);
        let as_wanted = results.median(cell, |found| f64::from(u8::from(found.as_wanted))) == Some(1.0);
        table.rows.push(vec![
            if as_wanted { cell.name() } else { format!("{} (refused)", cell.name()) },
            format!("{:.2}", of(Measured::rate)),
            format!("{:.4}", of(Measured::processor)),
            format!("{:.2}", of(Measured::micros)),
            number::three_digits(of(Measured::micros) / least),
            format!("{:.2}", of(|found| found.faults as f64 / found.reads as f64)),
        ]);
    }
    table
}
