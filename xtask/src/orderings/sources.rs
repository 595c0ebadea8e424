//! The product's files, and what becomes of them in the copy that has all mutants.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Orderings, Source};
use crate::mutant_build::read;
use crate::packages::Package;

/// The files of a package that are not for tests, in order of their paths.
pub(crate) fn of(package: &Package) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    collect(&package.folder.join("src"), &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default();
        if ["tests", "loom", "shuttle"].iter().any(|tests| stem == *tests) {
            continue;
        }
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = read(&path)?;
            found.push((path, text));
        }
    }
    Ok(())
}

/// The files that have mutants as they are in the copy, by their paths from the root.
pub(super) fn with_mutants(orderings: &Orderings) -> Vec<(PathBuf, String)> {
    let changed = orderings.sources.iter().filter(|source| !source.places.is_empty());
    changed.map(|source| (source.path.clone(), replaced(source))).collect()
}

/// A file's text with a call for each order.
fn replaced(source: &Source) -> String {
    const FULL: &str = "core::sync::atomic::Ordering";
    let mut text = source.text.clone();
    // From behind, so that the other places stay where they are.
    for (place, numbers) in source.places.iter().rev() {
        if let (Some(fence), [number], ["Relaxed"]) = (&place.fence, &numbers[..], place.weaker()) {
            let call = &source.text[fence.clone()];
            text.replace_range(
                fence.clone(),
                &format!("if !crate::chosen_mutant::is({number}) {{ {call} }}"),
            );
            continue;
        }
        let mut order = source.text[place.at.clone()].to_owned();
        for (number, weaker) in numbers.iter().zip(place.weaker()) {
            order = format!("crate::chosen_mutant::order({number}, {order}, {FULL}::{weaker})");
        }
        text.replace_range(place.at.clone(), &order);
    }
    text
}
