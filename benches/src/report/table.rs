//! The table in the terminal.

use std::io::IsTerminal;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};

use super::{defaults, view};
use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Column, Outcome, Record, Results, Row};

/// Columns of characters when nobody says how many there are.
const DEFAULT_WIDTH: usize = 120;
/// What one contestant's column takes, borders included.
const COLUMN_WIDTH: usize = 19;

/// Prints times and ratios: for each workload a table of those who take part, as many of them as
/// the terminal is wide, and further ones below.
pub fn print(results: &Results) {
    let label = results.cases.iter().map(|row| name(row).chars().count()).max().unwrap_or(0) + 5;
    let width = Table::new().width().map_or(DEFAULT_WIDTH, usize::from);
    let fits = (width.saturating_sub(label) / COLUMN_WIDTH).max(1);
    println!("Times of an operation, and their ratios to vec's.");
    for (workload, rows) in view::workloads(results) {
        for columns in view::columns(results, &rows).chunks(fits) {
            println!("{}", times(results, workload, &rows, columns));
        }
    }
    println!("* fastest of the row, the floor apart. Times are medians of interleaved rounds.");
    print_defaults(results);
}

/// Prints what settings are worth, where contestants without any were measured.
fn print_defaults(results: &Results) {
    if defaults::columns(results).is_empty() {
        return;
    }
    let slow = defaults::slow(results);
    if slow.is_empty() {
        println!("No default takes more than {} times as long as with settings.", defaults::SLOW);
        return;
    }
    let mut table = new_table();
    let name = format!("more than {} times", defaults::SLOW);
    table.set_header([name.as_str(), "without settings", "times", "its time", "with settings"]);
    for slow in slow {
        let right = |text| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(format!("{} {}", slow.row.workload, slow.row.parameters)),
            Cell::new(&slow.record.contestant),
            right(number::ratio(slow.times)),
            right(number::time(slow.time)),
            right(number::time(slow.tuned)),
        ]);
    }
    println!("{table}");
}

fn times(results: &Results, workload: &str, rows: &[&Row], columns: &[&Column]) -> Table {
    let mut table = new_table();
    let header = columns.iter().map(|column| {
        let cell = Cell::new(&column.name).set_alignment(CellAlignment::Right);
        if column.kind == Kind::Strategy { cell.add_attribute(Attribute::Bold) } else { cell }
    });
    let workload = Cell::new(workload).add_attribute(Attribute::Bold);
    table.set_header(std::iter::once(workload).chain(header));
    for row in rows {
        let winner = view::winner(results, &row.id);
        let cells = columns.iter().map(|column| {
            let record = results.cell(&row.id, &column.name);
            cell(record, winner == Some(&column.name))
        });
        table.add_row(std::iter::once(Cell::new(name(row))).chain(cells));
    }
    table
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    if !std::io::stdout().is_terminal() {
        table.force_no_tty();
    }
    table
}

fn name(row: &Row) -> String {
    format!("  {}", row.parameters)
}

fn cell(record: Option<&Record>, wins: bool) -> Cell {
    let Some(record) = record else { return Cell::new("") };
    let text = match &record.outcome {
        Outcome::Timed(timing) => {
            let ratio =
                record.to_vec.map_or_else(String::new, |ratio| format!(" ({})", number::ratio(ratio)));
            let star = if wins { "* " } else { "" };
            format!("{star}{}{ratio}", number::time(timing.median))
        }
        Outcome::Checked => "right".into(),
        Outcome::Unsupported { .. } => "–".into(),
        Outcome::Wrong { .. } => "WRONG BYTES".into(),
        Outcome::Crashed { .. } => "crashed".into(),
        Outcome::Hung { .. } => "hung".into(),
    };
    let cell = Cell::new(text).set_alignment(CellAlignment::Right);
    match &record.outcome {
        Outcome::Timed(_) if wins => cell.fg(Color::Green),
        Outcome::Wrong { .. } | Outcome::Crashed { .. } | Outcome::Hung { .. } => cell.fg(Color::Red),
        _ => cell,
    }
}

/// Prints what `--test` found: how many cells of each contestant are right.
pub fn print_test(results: &Results) {
    let mut table = new_table();
    table.set_header(["contestant", "right", "unsupported", "failed"]);
    for column in &results.contestants {
        let count = |which: fn(&Outcome) -> bool| {
            let cells = results.cells.iter().filter(|record| record.contestant == column.name);
            cells.filter(|record| which(&record.outcome)).count().to_string()
        };
        table.add_row([
            column.name.clone(),
            count(|outcome| matches!(outcome, Outcome::Checked)),
            count(|outcome| matches!(outcome, Outcome::Unsupported { .. })),
            count(Outcome::is_failure),
        ]);
    }
    println!("{table}");
}
