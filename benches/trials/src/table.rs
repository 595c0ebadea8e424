//! Tables, whose first column is of names.

use crate::median;

/// A table, whose first column is of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    #[must_use]
    pub fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self { head: head.iter().map(|name| name.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    /// Returns it in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let marks: Vec<String> =
            (0..self.head.len()).map(|at| if at == 0 { "---" } else { "---:" }.to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.head) + &line(&marks) + &rows
    }

    /// Returns it for a terminal of `width` characters. Columns that have no room follow below, with
    /// the first column again.
    #[must_use]
    pub fn plain(&self, width: usize) -> String {
        let lines = || core::iter::once(&self.head).chain(&self.rows);
        let widest = |at: usize| {
            lines().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(widest).collect();
        let first = widths.first().copied().unwrap_or(0);
        let (mut parts, mut part, mut used) = (Vec::new(), Vec::new(), first);
        for (at, column) in widths.iter().enumerate().skip(1) {
            if used + 2 + column > width && used > first {
                parts.push(core::mem::take(&mut part));
                used = first;
            }
            used += 2 + column;
            part.push(at);
        }
        parts.push(part);
        let line = |row: &[String], part: &[usize]| {
            let name = row.first().map_or("", String::as_str);
            let cells = part.iter().map(|&at| format!("  {:>width$}", row[at], width = widths[at]));
            let line = format!("{name:<first$}{}", cells.collect::<String>());
            line.trim_end().to_owned() + "\n"
        };
        let part = |part: &Vec<usize>| lines().map(|row| line(row, part)).collect::<String>();
        parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }
}

/// Mebibytes.
#[must_use]
pub fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// The median, and the lowest and the highest where there are several.
#[must_use]
pub fn spread(values: impl Iterator<Item = f64> + Clone, digits: usize) -> String {
    let lowest = values.clone().fold(f64::INFINITY, f64::min);
    let highest = values.clone().fold(0.0, f64::max);
    let several = values.clone().count() > 1;
    let middle = median(values).unwrap_or_default();
    if several {
        format!("{middle:.digits$} ({lowest:.digits$} – {highest:.digits$})")
    } else {
        format!("{middle:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_have_a_spread() {
        assert_eq!(spread([2.0].into_iter(), 1), "2.0");
        assert_eq!(spread([3.0, 1.0, 2.0].into_iter(), 0), "2 (1 – 3)");
    }

    #[test]
    fn tables_are_drawn_twice() {
        let mut table = Table::new(&["name", "µs"]);
        table.rows.push(vec!["one".to_owned(), "10".to_owned()]);
        assert_eq!(table.markdown(), "| name | µs |\n| --- | ---: |\n| one | 10 |\n");
        assert_eq!(table.plain(80), "name  µs\none   10\n");
    }

    #[test]
    fn columns_without_room_follow_below() {
        let mut table = Table::new(&["name", "a", "b", "long"]);
        table.rows.push(["one", "1", "2", "3"].map(str::to_owned).to_vec());
        assert_eq!(table.plain(10), "name  a  b\none   1  2\n\nname  long\none      3\n");
        assert_eq!(table.plain(1), "name  a\none   1\n\nname  b\none   2\n\nname  long\none      3\n");
    }
}
