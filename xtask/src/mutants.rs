//! Known defects of the libraries: `testing/mutants/PACKAGE/NAME.patch`, each with a header that says which tests must find it.
//!
//! A header has one line for each thing, `key: value`, and an empty line in front of each case:
//!
//! ```text
//! what: every slot counts as free
//!
//! trial: T1
//! target: bufslot/it
//! test: conformance::heap::t01_traffic
//! test: conformance::heap::model
//!
//! trial: T4
//! target: bufslot/races
//! tool: thread-sanitizer
//! test: handover
//! ```
//!
//! Behind it follows a unified diff of files of the one package, as `git diff` makes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use diffy::Patch;
use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};

use crate::mutant_build::{Tool, read};
use crate::packages::Package;

/// Where the patches are.
pub(crate) const FOLDER: &str = "testing/mutants";
/// The test target that is the unit tests of a package.
const UNIT_TESTS: &str = "lib";
/// The test target that has the usual test harness.
const SUITE: &str = "it";

/// What the first line of a diff begins with.
const DIFF: [&str; 2] = ["diff --git ", "--- "];

/// One known defect.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// The package that has the defect, and its name there, as `bufslot/nolock`.
    pub(crate) name: String,
    /// What the defect does.
    pub(crate) what: String,
    pub(crate) cases: Vec<Case>,
    /// The whole file.
    text: String,
}

/// A trial, and its tests that must find the defect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) trial: String,
    /// The package whose tests these are.
    pub(crate) package: String,
    /// Its test target, or `lib` for its unit tests.
    pub(crate) target: String,
    pub(crate) tool: Tool,
    /// The tests that have to fail, each by itself; none for the whole of a target without test harness.
    pub(crate) tests: Vec<String>,
}

impl Case {
    /// Whether the target has the usual test harness.
    pub(crate) fn has_harness(&self) -> bool {
        self.target == SUITE || self.is_unit_tests()
    }

    /// Whether the tests are in the library.
    pub(crate) fn is_unit_tests(&self) -> bool {
        self.target == UNIT_TESTS
    }
}

impl Mutant {
    /// Reads the patch `name`, as `bufslot/nolock`, of which the file says `text`.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut what = None;
        let mut cases: Vec<Case> = Vec::new();
        let is_diff = |line: &str| DIFF.iter().any(|start| line.starts_with(start));
        ensure!(text.lines().any(is_diff), "no diff behind the header");
        for line in text.lines().take_while(|line| !is_diff(line)).filter(|line| !line.is_empty()) {
            let (key, value) =
                line.split_once(": ").with_context(|| format!("`{line}` is no `key: value`"))?;
            if key == "what" {
                ensure!(what.replace(value.to_owned()).is_none(), "two lines `what`");
                continue;
            }
            if key == "trial" {
                cases.push(Case { trial: value.to_owned(), ..Case::default() });
                continue;
            }
            let case = cases.last_mut().with_context(|| format!("`{line}` in front of the first `trial`"))?;
            match key {
                "target" => {
                    let (package, target) =
                        value.split_once('/').with_context(|| format!("`{value}` is no `package/target`"))?;
                    (case.package, case.target) = (package.to_owned(), target.to_owned());
                }
                "tool" => {
                    case.tool = Tool::named(value).with_context(|| format!("no tool `{value}`"))?;
                }
                "test" => case.tests.push(value.to_owned()),
                _ => bail!("no key `{key}` is known"),
            }
        }
        for case in &cases {
            ensure!(!case.target.is_empty(), "{} has no `target`", case.trial);
            ensure!(!case.has_harness() || !case.tests.is_empty(), "{} has no `test`", case.trial);
        }
        ensure!(!cases.is_empty(), "no line `trial`: at least one trial must find the defect");
        let what = what.context("no `what`")?;
        Ok(Self { name: name.to_owned(), what, cases, text: text.to_owned() })
    }

    /// The package that has the defect.
    pub(crate) fn package(&self) -> &str {
        self.name.split_once('/').map_or("", |(package, _)| package)
    }

    /// The defect's name within its package.
    pub(crate) fn defect(&self) -> &str {
        self.name.split_once('/').map_or(&*self.name, |(_, defect)| defect)
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        path(&self.name)
    }

    /// The files with the defect, by their paths from the root, as `read` says that they are without.
    pub(crate) fn apply(&self, read: impl Fn(&Path) -> Result<String>) -> Result<Vec<(PathBuf, String)>> {
        let mut changed = Vec::new();
        for patch in PatchSet::parse(&self.text, ParseOptions::unidiff()) {
            let patch = patch.context("no unified diff")?;
            let operation = patch.operation().strip_prefix(1);
            let FileOperation::Modify { original, modified } = operation else {
                bail!("it does not only modify files");
            };
            ensure!(original == modified, "it renames {original}");
            let path = PathBuf::from(original.as_ref());
            let own = Path::new("crates").join(self.package());
            ensure!(path.starts_with(own), "{} is not of {}", path.display(), self.package());
            let diff: &Patch<'_, str> = patch.patch().as_text().context("a binary diff")?;
            let text = read(&path)?;
            let with_defect =
                diffy::apply(&text, diff).with_context(|| format!("not as {} reads now", path.display()))?;
            ensure!(with_defect != text, "it leaves {} as it is", path.display());
            changed.push((path, with_defect));
        }
        ensure!(!changed.is_empty(), "it changes nothing");
        Ok(changed)
    }

    /// What is wrong with the cases, by the tests that the packages have.
    fn check(&self, packages: &[Package]) -> Vec<String> {
        let mut messages = Vec::new();
        for case in &self.cases {
            let Some(package) = packages.iter().find(|package| package.name == case.package) else {
                messages.push(format!("there is no package {}", case.package));
                continue;
            };
            if !case.is_unit_tests() && package.test(&case.target).is_none() {
                messages.push(format!("{} has no test target {}", case.package, case.target));
                continue;
            }
            let folder = match () {
                () if case.is_unit_tests() => package.folder.join("src"),
                () => package.folder.join("tests").join(&case.target),
            };
            for test in case.tests.iter().filter(|_| case.has_harness()) {
                let Some((module, _)) = test.split_once("::") else { continue };
                let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
                if !files.iter().any(|file| folder.join(file).is_file()) {
                    messages.push(format!("{test}: no module {module} in {}", folder.display()));
                }
            }
        }
        messages
    }
}

/// The file of the patch `name`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.patch"))
}

/// The names of all patches, in order.
pub(crate) fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    let list = |folder: &Path| {
        fs::read_dir(folder)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .with_context(|| format!("cannot list {}", folder.display()))
    };
    // The lines about orders are a file beside the packages.
    let folders = list(Path::new(FOLDER))?.into_iter().filter(|entry| entry.path().is_dir());
    for package in folders {
        for patch in list(&package.path())? {
            let (package, patch) = (package.file_name(), patch.file_name());
            let (package, patch) = (package.to_string_lossy(), patch.to_string_lossy());
            let defect = patch.strip_suffix(".patch");
            let defect = defect.with_context(|| format!("{FOLDER}/{package}/{patch} is no patch"))?;
            names.push(format!("{package}/{defect}"));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads the patch `name`.
pub(crate) fn named(name: &str) -> Result<Mutant> {
    let path = path(name);
    Mutant::parse(name, &read(&path)?).with_context(|| path.display().to_string())
}

/// Reads all patches.
pub(crate) fn all() -> Result<Vec<Mutant>> {
    names()?.iter().map(|name| named(name)).collect()
}

/// What is wrong with the patch `name`: it fits the sources as they are, and the tests that its header names are there.
pub(crate) fn faults(name: &str, packages: &[Package]) -> Result<Vec<String>> {
    let mutant = match Mutant::parse(name, &read(&path(name))?) {
        Ok(mutant) => mutant,
        Err(error) => return Ok(vec![format!("{error:#}")]),
    };
    let mut messages = mutant.check(packages);
    messages.extend(mutant.apply(read).err().map(|error| format!("does not apply: {error:#}")));
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::Target;

    const FINE: &str = "what: it counts wrong\n\ntrial: T1\ntarget: bufslot/it\ntest: a::b\ntest: c\n\n\
                        trial: T4\ntarget: bufring/races\ntool: thread-sanitizer\n\n\
                        --- a/crates/bufslot/src/a.rs\n+++ b/crates/bufslot/src/a.rs\n\
                        @@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

    fn applied(text: &str, source: &str) -> Result<Vec<(PathBuf, String)>> {
        Mutant::parse("bufslot/count", text)?.apply(|_| Ok(source.to_owned()))
    }

    #[test]
    fn a_header_is_read() {
        let mutant = Mutant::parse("bufslot/count", FINE).unwrap();
        assert_eq!(
            (mutant.package(), mutant.defect(), &*mutant.what),
            ("bufslot", "count", "it counts wrong")
        );
        assert_eq!(mutant.cases.len(), 2);
        assert_eq!(mutant.cases[0].tests, ["a::b", "c"]);
        assert_eq!((&*mutant.cases[1].package, &*mutant.cases[1].target), ("bufring", "races"));
        assert_eq!(mutant.cases[1].tool, Tool::ThreadSanitizer);
    }

    #[test]
    fn what_a_header_lacks_is_said() {
        let says = |from: &str, to: &str, what: &str| {
            let error = Mutant::parse("bufslot/count", &FINE.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        };
        says("what: it counts wrong\n", "", "no `what`");
        says("target: bufslot/it\n", "", "T1 has no `target`");
        says("test: a::b\ntest: c\n", "", "T1 has no `test`");
        says("tool: thread-sanitizer", "tool: hammer", "no tool `hammer`");
        says("tool: ", "tools: ", "no key `tools`");
        says("trial: T1\n", "", "in front of the first `trial`");
        says("--- a", "++ a", "no diff");
    }

    #[test]
    fn a_diff_is_applied_where_its_lines_are() {
        let path = PathBuf::from("crates/bufslot/src/a.rs");
        assert_eq!(
            applied(FINE, "one\ntwo\nthree\n").unwrap(),
            [(path.clone(), "one\n2\nthree\n".to_owned())]
        );
        // As git writes it.
        let git = FINE.replace("--- a", "diff --git a/crates/bufslot/src/a.rs b/crates/bufslot/src/a.rs\nindex 0123456..789abcd 100644\n--- a");
        assert_eq!(
            applied(&git, "one\ntwo\nthree\n").unwrap(),
            [(path.clone(), "one\n2\nthree\n".to_owned())]
        );
        // Lines may have come in front of them.
        let moved = applied(FINE, "zero\nnought\none\ntwo\nthree\n").unwrap();
        assert_eq!(moved, [(path, "zero\nnought\none\n2\nthree\n".to_owned())]);
    }

    #[test]
    fn a_diff_that_does_not_fit_is_refused() {
        assert!(applied(FINE, "one\nzwei\nthree\n").is_err());
        assert!(applied(FINE, "one\ntwo\nfour\n").is_err());
        assert!(applied(FINE, "").is_err());
        assert!(applied(&FINE.replace("crates/bufslot", "crates/bufring"), "one\ntwo\nthree\n").is_err());
        assert!(
            applied(&FINE.replace("+++ b/crates/bufslot/src/a", "+++ b/crates/bufslot/src/b"), "").is_err()
        );
    }

    #[test]
    fn tests_that_are_not_there_are_named() {
        let target = Target { name: "it".to_owned(), kind: "test".to_owned(), required_features: Vec::new() };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates").join("bufslot");
        let slot =
            Package { name: "bufslot".to_owned(), folder, targets: vec![target], ..Package::default() };
        let says = |from: &str, to: &str| {
            let text = FINE.replace("bufring/races", "bufslot/it\ntest: d").replace("a::b", "main::b");
            let mutant = Mutant::parse("bufslot/count", &text.replace(from, to)).unwrap();
            mutant.check(std::slice::from_ref(&slot)).join("; ")
        };
        assert_eq!(says("", ""), "");
        assert_eq!(says("T1\ntarget: bufslot", "T1\ntarget: bufslit"), "there is no package bufslit");
        assert_eq!(says("bufslot/it\ntest: d", "bufslot/at"), "bufslot has no test target at");
        assert!(says("main::b", "absent::b").contains("no module absent"));
    }
}
