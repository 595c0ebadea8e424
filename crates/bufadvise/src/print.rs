//! Printing: a closed pipe or a full disk is no panic, and names out of a recording do not control
//! the terminal.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

/// Prints a text and the end of its line.
///
/// # Errors
///
/// When it cannot be printed. A reader that has closed its end of a pipe has what it wants.
pub(crate) fn line(text: impl Display) -> Result<()> {
    print(&mut io::stdout().lock(), &text.to_string())
}

/// Prints a line to the standard error, as [`line()`] does.
pub(crate) fn error_line(text: impl Display) -> Result<()> {
    print(&mut io::stderr().lock(), &text.to_string())
}

fn print(to: &mut impl Write, text: &str) -> Result<()> {
    match to.write_all((printable(text) + "\n").as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the answer"),
        _ => Ok(()),
    }
}

/// Writes a number of things.
pub(crate) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns a table without rows.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    if !io::stdout().is_terminal() {
        table.force_no_tty();
    }
    table.set_header(header);
    table
}

/// Returns cells with figures in them.
pub(crate) fn figures(cells: impl IntoIterator<Item = String>) -> impl Iterator<Item = Cell> {
    cells.into_iter().map(|text| Cell::new(text).set_alignment(CellAlignment::Right))
}

/// Replaces the characters that a terminal obeys, except for the end of a line.
fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |character: char| character.is_control() && character != '\n' && character != '\t';
    if text.contains(obeyed) { text.replace(obeyed, "\u{fffd}").into() } else { text.into() }
}

/// Returns a name, or another text that is to stay in its line.
pub(crate) fn in_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}
