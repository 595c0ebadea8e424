//! Tables, whose first column is of names.

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
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
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

    /// Returns it for a terminal.
    #[must_use]
    pub fn plain(&self) -> String {
        let lines = || core::iter::once(&self.head).chain(&self.rows);
        let width = |at: usize| {
            lines().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells =
                cells.map(
                    |(at, (cell, &width))| {
                        if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                    },
                );
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        lines().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_drawn_twice() {
        let mut table = Table::new(&["name", "µs"]);
        table.rows.push(vec!["one".to_owned(), "10".to_owned()]);
        assert_eq!(table.markdown(), "| name | µs |\n| --- | ---: |\n| one | 10 |\n");
        assert_eq!(table.plain(), "name  µs\none   10\n");
    }
}
