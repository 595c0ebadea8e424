//! The product's files, and what becomes of them in the copy that has all mutants.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Orderings, Source};
use crate::packages::Package;

/// The environment variable that chooses a mutant by its number.
pub(super) const CHOSEN: &str = "ORDERING_MUTANT";
/// What a program prints in front of the number of each mutant whose operation it comes to.
pub(super) const REACHED: &str = "ordering mutant in reach: ";

/// What is added to each library. Nothing here orders threads: its atomics are `core`'s, which no checker sees, and relaxed.
const MODULE: &str = r#"
#[doc(hidden)]
mod ordering_mutants {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    // Not the standard library's streams: their lock is one of the reports that ThreadSanitizer makes by mistake.
    unsafe extern "C" {
        fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    }

    const UNKNOWN: usize = usize::MAX;
    const NONE: usize = usize::MAX - 1;
    static CHOSEN: AtomicUsize = AtomicUsize::new(UNKNOWN);
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    fn chosen() -> usize {
        let known = CHOSEN.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known;
        }
        let named = std::env::var_os("VARIABLE");
        let number = named.and_then(|text| text.to_str()?.parse().ok()).unwrap_or(NONE);
        CHOSEN.store(number, Ordering::Relaxed);
        number
    }

    pub(crate) fn is(number: usize) -> bool {
        if !REACHED[number].load(Ordering::Relaxed) && !REACHED[number].swap(true, Ordering::Relaxed) {
            let line = std::format!("\nPRINTED{number}\n");
            unsafe { write(2, line.as_ptr(), line.len()) };
        }
        chosen() == number
    }

    #[inline]
    pub(crate) fn at(number: usize, order: Ordering, weaker: Ordering) -> Ordering {
        if is(number) { weaker } else { order }
    }
}
"#;

/// The files of a package that are not for tests, in order of their paths.
pub(crate) fn of(package: &Package) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    collect(&package.folder.join("src"), &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<()> {
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot list {}", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let stem = path.file_stem().unwrap_or_default();
        if ["tests", "loom", "shuttle"].iter().any(|tests| stem == *tests) {
            continue;
        }
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.push((path, text));
        }
    }
    Ok(())
}

/// The files as they are in the copy, by their paths from the root.
pub(super) fn with_mutants(orderings: &Orderings) -> Vec<(PathBuf, String)> {
    let count = orderings.count();
    let mut files = Vec::new();
    for source in &orderings.sources {
        let is_root = source.path.ends_with("src/lib.rs");
        if source.places.is_empty() && !is_root {
            continue;
        }
        let mut text = replaced(source);
        if is_root {
            let module = MODULE.replace("VARIABLE", CHOSEN).replace("PRINTED", REACHED);
            let module = module.replace("COUNT", &count.to_string());
            text = format!("#![allow(warnings)]\n{text}{module}");
        }
        files.push((source.path.clone(), text));
    }
    files
}

/// A file's text with a call for each order.
fn replaced(source: &Source) -> String {
    const FULL: &str = "core::sync::atomic::Ordering";
    let mut text = source.text.clone();
    // From behind, so that the other places stay where they are.
    for (place, numbers) in source.places.iter().rev() {
        let is_removed = |weaker: &&str| *weaker == "Relaxed";
        if let (Some(fence), [number], true) =
            (&place.fence, &numbers[..], place.weaker().iter().all(is_removed))
        {
            let call = &source.text[fence.clone()];
            text.replace_range(
                fence.clone(),
                &format!("if !crate::ordering_mutants::is({number}) {{ {call} }}"),
            );
            continue;
        }
        let mut order = source.text[place.at.clone()].to_owned();
        for (number, weaker) in numbers.iter().zip(place.weaker()) {
            order = format!("crate::ordering_mutants::at({number}, {order}, {FULL}::{weaker})");
        }
        text.replace_range(place.at.clone(), &order);
    }
    text
}
