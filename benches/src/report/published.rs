//! What is checked in of the results: the texts and pictures of `docs/results/results.json`, made
//! from it and from nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{chart, front, markdown};
use crate::harness::record::Results;

/// The folder of the results and their charts, within that of the documents.
const FOLDER: &str = "results";

const HEAD: &str = "# Results

Written by `cargo xtask bench --quick --peers`; the method is in [benchmarking.md](benchmarking.md), the numbers for programs in
[results.json](results/results.json).";

/// All files that are made of the results, by their names within the folder of the documents.
fn files(results: &Results) -> Result<Vec<(String, String)>> {
    let charts = chart::all(results);
    let text = markdown::report(results, &charts, HEAD, &format!("{FOLDER}/"));
    let overview = front::draw(results).context("the results lack a cell of the front page's chart")?;
    let mut files = vec![("results.md".into(), text), ("overview.svg".into(), overview)];
    files.extend(charts.iter().map(|chart| (format!("{FOLDER}/{}.svg", chart.name), chart.standalone())));
    Ok(files)
}

/// Makes the documents of the results in `docs` again.
///
/// # Errors
///
/// When the results cannot be read, lack something, or a file cannot be written.
pub fn write(docs: &Path) -> Result<()> {
    for (name, text) in files(&Results::read(&docs.join(FOLDER))?)? {
        let path = docs.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Checks that the documents in `docs` are what the results there say.
///
/// # Errors
///
/// When the results cannot be read, or a document is not what would be made of them.
pub fn check(docs: &Path) -> Result<()> {
    let files = files(&Results::read(&docs.join(FOLDER))?)?;
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
