//! Figures that texts quote: they are those of the results, cell by cell.
//!
//! A table whose first cell is the title of one in the results, such as *time per operation (ratio to
//! vec)*, quotes it. Each column is named as there, and each row by its section and its name there, as
//! `reuse 64 B`. Behind a colon the row may say more. A table whose first cell is *ratio to vec* quotes
//! the ratios alone.

use std::collections::HashMap;

use super::Finding;

/// The table with times and ratios, and what a table of its ratios alone is called.
const TIMES: &str = "time per operation (ratio to vec)";
const RATIOS: &str = "ratio to vec";

/// What is quoted.
pub(super) const RESULTS: &str = "docs/results.md";
/// Documents whose figures are of their own results. They quote nothing.
pub(super) const MADE: [&str; 2] = [RESULTS, "docs/scaling.md"];

/// All tables of the results: title, then section and row, then column.
#[derive(Debug)]
pub(super) struct Figures<'a> {
    tables: HashMap<&'a str, HashMap<String, HashMap<&'a str, &'a str>>>,
}

impl<'a> Figures<'a> {
    /// What the results have.
    pub(super) fn of(results: &'a str) -> Self {
        let mut tables: HashMap<&str, HashMap<String, HashMap<&str, &str>>> = HashMap::new();
        let mut section = "";
        let mut head: Vec<&str> = Vec::new();
        for line in results.lines() {
            if let Some(name) = line.strip_prefix("## ") {
                section = name;
            }
            let cells = cells(line);
            match (head.first(), cells.first()) {
                (_, None) => head.clear(),
                (None, Some(_)) => head = cells,
                (Some(title), Some(row)) => {
                    let columns = head.iter().skip(1).copied();
                    let values = cells.iter().skip(1).map(|cell| cell.trim_matches('*'));
                    let figures: HashMap<_, _> = columns.zip(values).collect();
                    let name = format!("{section} {row}");
                    if *title == TIMES {
                        let ratios = figures.iter().map(|(&column, value)| (column, ratio(value)));
                        tables.entry(RATIOS).or_default().insert(name.clone(), ratios.collect());
                    }
                    tables.entry(title).or_default().insert(name, figures);
                }
            }
        }
        Self { tables }
    }

    /// `text` with the figures of the results, and what in it is not to be found there.
    pub(super) fn correct(&self, text: &str) -> (String, Vec<Finding>) {
        let (mut corrected, mut found) = (String::new(), Vec::new());
        let mut head: Vec<&str> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let cells = cells(line);
            let mut right = None;
            match (head.first(), cells.first()) {
                (_, None) => head.clear(),
                (None, Some(_)) => head = cells,
                (Some(title), Some(row)) => {
                    if let Some(rows) = self.tables.get(title).filter(|_| !row.starts_with("---")) {
                        match Self::row(rows, row, &head[1..]) {
                            Ok(line) => right = Some(line),
                            Err(missing) => {
                                found.push(Finding::at(
                                    at + 1,
                                    format!("{RESULTS} has no {missing} under “{title}”"),
                                ));
                            }
                        }
                    }
                }
            }
            corrected += right.as_deref().unwrap_or(line);
            corrected.push('\n');
        }
        (corrected, found)
    }

    fn row(
        rows: &HashMap<String, HashMap<&str, &str>>,
        row: &str,
        columns: &[&str],
    ) -> Result<String, String> {
        let name = row.split_once(": ").map_or(row, |(name, _)| name);
        let values = rows.get(name).ok_or_else(|| format!("row “{name}”"))?;
        let mut line = format!("| {row} |");
        for column in columns {
            let value = values.get(column).ok_or_else(|| format!("column “{column}” in row “{row}”"))?;
            line += &format!(" {value} |");
        }
        Ok(line)
    }
}

/// Checks a Markdown text that is not the results.
pub(super) fn check(text: &str, figures: &Figures<'_>) -> Vec<Finding> {
    let (corrected, mut found) = figures.correct(text);
    for (at, (is, should)) in text.lines().zip(corrected.lines()).enumerate() {
        if is != should {
            let message =
                format!("not the figures of {RESULTS} (`cargo xtask tidy --figures` writes them): {should}");
            found.push(Finding::at(at + 1, message));
        }
    }
    found
}

/// The ratio in a cell with a time: what is in its parentheses.
fn ratio(cell: &str) -> &str {
    cell.strip_suffix(')').and_then(|cell| cell.split_once('(')).map_or("–", |(_, ratio)| ratio)
}

/// The cells of a table's line; none where the line is not of a table.
fn cells(line: &str) -> Vec<&str> {
    let inside = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    inside.map(|inside| inside.split('|').map(str::trim).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS_TEXT: &str = "\
# Results

## reuse

| time | slot | ring |
| --- | ---: | ---: |
| 4 B | 5 ns (0.27) | **4 ns (0.22)** |

| memory | slot |
| --- | ---: |
| 4 B | 64 KiB |

## live

| time | slot | ring |
| --- | ---: | ---: |
| 4 B | 7 ns | 8 ns |
";

    fn messages(text: &str) -> Vec<(usize, String)> {
        let found = check(text, &Figures::of(RESULTS_TEXT));
        found.into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn right_figures_are_left_alone() {
        let text = "| time | ring | slot |\n| --- | ---: | ---: |\n| reuse 4 B | 4 ns (0.22) | 5 ns (0.27) |\n\
                    | live 4 B | 8 ns | 7 ns |\n\ntext\n\n| memory | slot |\n| --- | --- |\n| reuse 4 B | 64 KiB |\n";
        assert_eq!(messages(text), []);
    }

    #[test]
    fn wrong_figures_are_found_and_mended() {
        let text = "| time | slot |\n| --- | --- |\n| reuse 4 B | 6 ns |\n| live 4 B | 7 ns |\n";
        let found = messages(text);
        assert_eq!((found.len(), found[0].0), (1, 3));
        assert!(found[0].1.ends_with("| reuse 4 B | 5 ns (0.27) |"), "{}", found[0].1);
        let (mended, missing) = Figures::of(RESULTS_TEXT).correct(text);
        assert_eq!((messages(&mended), missing), (vec![], vec![]));
    }

    #[test]
    fn what_the_results_do_not_have_is_found() {
        let text = "| time | slot | bump |\n| --- | --- | --- |\n| reuse 4 B | 5 ns | 1 ns |\n| reuse 8 B | 1 | 1 |\n";
        let found = messages(text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4]);
        assert!(found[0].1.contains("bump") && found[1].1.contains("reuse 8 B"));
    }

    #[test]
    fn ratios_are_quoted_alone() {
        let results = format!(
            "## reuse\n\n| {TIMES} | slot | pipe |\n| --- | --- | --- |\n| 4 B | **5 ns (0.27)** | 9 ns |\n"
        );
        let figures = Figures::of(&results);
        let table = |row: &str| format!("| {RATIOS} | slot |\n| --- | --- |\n{row}\n");
        assert_eq!(check(&table("| reuse 4 B: one after the other | 0.27 |"), &figures), []);
        assert_eq!(check(&table("| reuse 4 B: one after the other | 0.30 |"), &figures).len(), 1);
        let none = format!("| {RATIOS} | pipe |\n| --- | --- |\n| reuse 4 B | – |\n");
        assert_eq!(check(&none, &figures), []);
    }

    #[test]
    fn other_tables_are_not_looked_at() {
        assert_eq!(messages("| setting | slot |\n| --- | --- |\n| reuse 4 B | 1 |\n"), []);
    }
}
