//! `cargo xtask size`: how much there is, in lines, public types, words and circles of files, beside what it may come to.
//!
//! A line counts if it has code: no comments, no blank lines. Of libraries, test code does not count either: items under `cfg(test)`,
//! their files, `tests`, `benches`, `examples`. Of programs and of the tools, tests in the sources count.

mod modules;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::modules::{Sources, module};
use crate::outside;
use crate::packages::{self, Package};
use crate::rust_code::Code;
use crate::shell;

/// Published packages that are counted apart from the libraries.
const ADVISER: [&str; 2] = ["bufadvise", "buftrace"];
const CORE: &str = "bufcore";
/// Folders of what measures, tests and builds; those that do not exist count nothing.
const TOOLS: [&str; 4] = ["benches", "xtask", "testing/kit", "testing/fuzz"];
/// What the lock file of a program had with a package.
const BEFORE: [(&str, &str); 1] = [("bufslot", "76")];
/// Folders of a package whose files are not its product.
const NOT_PRODUCT: [&str; 3] = ["tests", "benches", "examples"];

/// Options of `size`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The checkout that is counted.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    of: PathBuf,
    /// Measure as well what building the libraries cold takes of the processor, relative to the crate `bytes`.
    #[arg(long)]
    build: bool,
    /// Print the files of each circle.
    #[arg(long)]
    circles: bool,
}

/// A row of the table.
struct Row {
    what: String,
    before: &'static str,
    now: String,
    mark: String,
}

fn row(what: impl Into<String>, before: &'static str, now: impl ToString, mark: &str) -> Row {
    Row { what: what.into(), before, now: now.to_string(), mark: mark.to_owned() }
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let packages = packages::all_of(&self.of)?;
        let files = shell::files(&self.of)?;
        let tree = Tree { root: &self.of, files: &files };
        let (mut libraries, mut adviser) = (0, 0);
        let (mut circles, mut core) = (Vec::new(), Sources::new());
        for package in &packages {
            let sources = tree.sources(package)?;
            if package.folder.parent().is_some_and(|parent| parent.ends_with("crates")) {
                let found = sources.circles();
                circles.extend(found.into_iter().map(|circle| (package.name.clone(), circle)));
            }
            if ADVISER.contains(&package.name.as_str()) {
                adviser += sources.lines();
            } else if package.published {
                libraries += sources.lines();
            }
            if package.name == CORE {
                core = sources;
            }
        }
        let tools = tree.lines_under(&TOOLS)?;
        circles.sort_by_key(|(_, circle)| std::cmp::Reverse(circle.len()));
        let largest = circles.first().map_or(0, |(_, circle)| circle.len());
        let in_circles: usize = circles.iter().map(|(_, circle)| circle.len()).sum();
        let mut rows = vec![
            row("lines of the libraries", "28 000", libraries, "23 500"),
            row("lines of `bufadvise` and `buftrace`", "10 900", adviser, "8 000"),
            row("lines of `bufcore`", "7 600", core.lines(), "4 500"),
            row("public types of `bufcore`", "69", core.public_types(), "40"),
            row("lines of benches, xtask, test kit and fuzz", "33 900", tools, "26 000"),
            row("words of documents", "203 000", tree.words()?, "45 000"),
            row("circles of files in `crates`", "22", circles.len(), ""),
            row("files in them; in the largest", "75; 15", format!("{in_circles}; {largest}"), "3"),
        ];
        for outside::Locked { package, most, names } in outside::locked(&self.of)? {
            let before = BEFORE.iter().find(|(name, _)| *name == package).map_or("", |(_, before)| before);
            let what = format!("packages in the lock file of a program with `{package}`");
            rows.push(row(what, before, names.len(), &most.to_string()));
        }
        if self.build {
            for (package, times) in outside::build_times(&self.of)? {
                let mark = if package == "bufslot" { ("4.1", "3.5") } else { ("8.4", "7") };
                let what = format!("processor time to build `{package}`, relative to `bytes`");
                rows.push(row(what, mark.0, format!("{times:.1}"), mark.1));
            }
        }
        println!("| | before | now | at most |\n| --- | ---: | ---: | ---: |");
        for Row { what, before, now, mark } in rows {
            println!("| {what} | {before} | {now} | {mark} |");
        }
        for (package, circle) in circles.iter().filter(|_| self.circles) {
            println!("{package}: {}", circle.join(", "));
        }
        Ok(())
    }
}

struct Tree<'a> {
    root: &'a Path,
    files: &'a [PathBuf],
}

impl Tree<'_> {
    fn read(&self, file: &Path) -> Result<String> {
        let path = self.root.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn sources_under(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().filter(move |file| {
            file.starts_with(folder) && file.extension().is_some_and(|extension| extension == "rs")
        })
    }

    /// Lines of all Rust files in folders, with their tests.
    fn lines_under(&self, folders: &[&str]) -> Result<usize> {
        let mut sum = 0;
        for file in folders.iter().flat_map(|folder| self.sources_under(Path::new(folder))) {
            sum += Code::of(&self.read(file)?, true)?.lines();
        }
        Ok(sum)
    }

    /// Words of all documents that git has, as `wc -w` counts them.
    fn words(&self) -> Result<usize> {
        let documents = self.files.iter().filter(|file| file.extension().is_some_and(|end| end == "md"));
        documents.map(|file| Ok(self.read(file)?.split_whitespace().count())).sum()
    }

    /// The product code of a package.
    fn sources(&self, package: &Package) -> Result<Sources> {
        let root = fs::canonicalize(self.root)?;
        let folder = package.folder.strip_prefix(&root).unwrap_or(&package.folder);
        let mut sources = Sources::new();
        let mut of_tests = Vec::new();
        for file in self.sources_under(folder) {
            let inside = file.strip_prefix(folder)?;
            if NOT_PRODUCT.iter().any(|folder| inside.starts_with(folder)) {
                continue;
            }
            let code = Code::of(&self.read(file)?, package.is_program())?;
            let module = module(inside);
            of_tests.extend(
                code.test_modules.iter().map(|name| [&module[..], std::slice::from_ref(name)].concat()),
            );
            sources.0.insert(module, code);
        }
        sources.0.retain(|module, _| !of_tests.iter().any(|tests| module.starts_with(tests)));
        Ok(sources)
    }
}
