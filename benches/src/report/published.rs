//! What is checked in of results: for each `results.json` in the documents its text and pictures,
//! made from it and from nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{chart, front, markdown};
use crate::harness::record::Results;

/// A document of results.
struct Document {
    /// Its name, without `.md`, and that of the folder of the results and their charts. Both are
    /// within the folder of the documents.
    name: &'static str,
    head: &'static str,
    /// Whether the front page's chart is made of the same results.
    is_front: bool,
}

const DOCUMENTS: [Document; 2] = [
    Document {
        name: "results",
        head: "# Results

Written by `cargo xtask bench --quick --peers`; the method is in [benchmarking.md](benchmarking.md), the numbers for programs in
[results.json](results/results.json).",
        is_front: true,
    },
    Document {
        name: "scaling",
        head: "# From one thread to 32, on 16 cores

Written by `cargo xtask bench --peers --workload threads` on a machine with more cores than that of [results.md](results.md). The
method is in [benchmarking.md](benchmarking.md), the numbers for programs in [results.json](scaling/results.json).",
        is_front: false,
    },
];

impl Document {
    /// All files that are made of the results, by their names within the folder of the documents.
    fn files(&self, docs: &Path) -> Result<Vec<(String, String)>> {
        let results = Results::read(&docs.join(self.name))?;
        let charts = chart::all(&results);
        let text = markdown::report(&results, &charts, self.head, &format!("{}/", self.name));
        let mut files = vec![(format!("{}.md", self.name), text)];
        if self.is_front {
            let overview =
                front::draw(&results).context("the results lack a cell of the front page's chart")?;
            files.push(("overview.svg".into(), overview));
        }
        files.extend(
            charts.iter().map(|chart| (format!("{}/{}.svg", self.name, chart.name), chart.standalone())),
        );
        Ok(files)
    }
}

/// All files of all documents.
fn files(docs: &Path) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for document in DOCUMENTS {
        all.extend(document.files(docs)?);
    }
    Ok(all)
}

/// Makes the documents of the results in `docs` again.
///
/// # Errors
///
/// When results cannot be read, lack something, or a file cannot be written.
pub fn write(docs: &Path) -> Result<()> {
    for (name, text) in files(docs)? {
        let path = docs.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Checks that the documents in `docs` are what the results there say.
///
/// # Errors
///
/// When results cannot be read, or a document is not what would be made of them.
pub fn check(docs: &Path) -> Result<()> {
    let files = files(docs)?;
    let differs =
        |(name, text): &&(String, String)| fs::read_to_string(docs.join(name)).ok().as_ref() != Some(text);
    let stale: Vec<&str> = files.iter().filter(differs).map(|(name, _)| name.as_str()).collect();
    ensure!(
        stale.is_empty(),
        "{} of {} are not what results.json says; `cargo run --package bufbench -- results` writes them: {}",
        stale.len(),
        files.len(),
        stale.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_documents_are_what_the_results_say() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        if let Err(error) = check(&docs) {
            panic!("{error:#}");
        }
    }
}
