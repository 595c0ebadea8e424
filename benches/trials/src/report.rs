//! A report: sections of text, pictures and tables.
//!
//! It is printed on a terminal, and written as Markdown and as a page of HTML, with its pictures
//! beside them.

use core::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use bufadvise::measure::host::Host;
use pulldown_cmark::{Options, Parser, html};

use crate::table::Table;

/// The columns of a terminal that does not tell.
const TERMINAL: usize = 120;

/// The look of the page.
const STYLE: &str = ":root { color-scheme: light dark } body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem } \
    table { border-collapse: collapse; margin-bottom: 1.5em; display: block; overflow-x: auto; font-variant-numeric: tabular-nums } \
    th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #8884; white-space: nowrap } \
    h1 + table :is(th, td) { white-space: normal; vertical-align: top; text-align: left !important } img { max-width: 100% } \
    summary { font-weight: 600; cursor: pointer; padding: 0.2rem 0 }";

/// A report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The title.
    pub title: String,
    /// What stands in front of all sections, in Markdown: see [`facts`].
    pub head: String,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// The title; none for a section that stands directly below the report's.
    pub title: String,
    /// Whether a reader has to open it.
    pub folded: bool,
    /// Text in front of the pictures and tables, in Markdown.
    pub text: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
    /// The tables, of which the terminal shows the first.
    pub tables: Vec<Table>,
}

/// A picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// The name of its file, without `.svg`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The drawing.
    pub svg: String,
}

impl Report {
    /// Returns it in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        if !self.head.is_empty() {
            let _ = write!(text, "\n{}\n", self.head.trim_end());
        }
        // Writing to a string does not fail.
        for section in &self.sections {
            let title = &section.title;
            if section.folded {
                let _ = write!(text, "\n<details><summary>{title}</summary>\n");
            } else if !title.is_empty() {
                let _ = write!(text, "\n## {title}\n");
            }
            if !section.text.is_empty() {
                let _ = write!(text, "\n{}\n", section.text.trim_end());
            }
            for picture in &section.pictures {
                let _ = write!(text, "\n![{}]({}.svg)\n", picture.title, picture.name);
            }
            for table in &section.tables {
                let _ = write!(text, "\n{}", table.markdown());
            }
            if section.folded {
                text += "\n</details>\n";
            }
        }
        text
    }

    /// Returns it as a page of HTML.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = format!(
            "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\"><title>{}</title><style>{STYLE}</style>\n",
            self.title
        );
        html::push_html(&mut page, Parser::new_ext(&self.markdown(), Options::ENABLE_TABLES));
        page
    }

    /// Writes `report.md`, `index.html` and the pictures into `folder`, which is created where it is
    /// missing.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        for picture in self.sections.iter().flat_map(|section| &section.pictures) {
            put(&format!("{}.svg", picture.name), &picture.svg)?;
        }
        put("report.md", &self.markdown())?;
        put("index.html", &self.page())
    }

    /// Writes the report, and prints the first table of each section, those that are not folded last.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn show(&self, folder: &Path) -> Result<()> {
        self.write(folder)?;
        self.print(folder);
        Ok(())
    }

    fn print(&self, folder: &Path) {
        let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let part = |folded| self.sections.iter().filter(move |section| section.folded == folded);
        for section in part(true).chain(part(false)) {
            let title = if section.title.is_empty() { &self.title } else { &section.title };
            if let Some(table) = section.tables.first() {
                println!("\n{title}\n\n{}", table.plain(width.unwrap_or(TERMINAL)));
            }
        }
        println!("report: {}", folder.join("index.html").display());
    }
}

/// Lists the facts without which a number means nothing, in Markdown.
#[must_use]
pub fn facts(host: &Host, more: &[(&str, String)]) -> String {
    let mut facts = vec![
        ("processor", format!("{}, {} cores", host.cpu, host.cores)),
        ("kernel", host.kernel.clone()),
        ("compiler", host.rustc.clone()),
        ("commit", host.commit.clone()),
        ("date", host.date.clone()),
    ];
    facts.extend(host.load.map(|load| ("load before", format!("{load:.2}"))));
    facts.extend_from_slice(more);
    facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let mut table = Table::new(&["name", "µs"]);
        table.rows.push(vec!["a < b".to_owned(), "10".to_owned()]);
        let picture =
            Picture { name: "times".to_owned(), title: "Times".to_owned(), svg: "<svg/>".to_owned() };
        Report {
            title: "Speed".to_owned(),
            head: facts(&Host::default(), &[("rounds", "3".to_owned())]),
            sections: vec![
                Section {
                    title: "reads".to_owned(),
                    text: "With `read`.".to_owned(),
                    pictures: vec![picture],
                    tables: vec![table.clone()],
                    ..Section::default()
                },
                Section { title: "more".to_owned(), folded: true, tables: vec![table], ..Section::default() },
            ],
        }
    }

    #[test]
    fn every_part_is_written_in_order() {
        let folder = std::env::temp_dir().join(format!("buftrials-{}", std::process::id()));
        sample().write(&folder).unwrap();
        let [text, page, picture] = ["report.md", "index.html", "times.svg"]
            .map(|file| fs::read_to_string(folder.join(file)).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        let parts = [
            "# Speed\n",
            "- rounds: 3\n",
            "## reads\n",
            "With `read`.\n",
            "![Times](times.svg)\n",
            "| a < b | 10 |",
            "<details><summary>more</summary>\n\n| name | µs |",
            "\n\n</details>\n",
        ];
        let places: Vec<_> = parts.map(|part| text.find(part)).to_vec();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        for part in ["<h2>reads</h2>", "<code>read</code>", "<img src=\"times.svg\"", "<td>a &lt; b</td>"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert_eq!(picture, "<svg/>");
    }
}
