//! The rules for one package.

use std::fs;

use super::{Finding, lex};
use crate::packages::Package;

/// What every strategy may depend on. The first is for what two of them need.
const SHARED: [&str; 3] = ["bufkit", "bufcore", "bufkeeper"];
/// The library that may depend on every strategy; programs may, too.
const UMBRELLA: &str = "bufworks";
/// The registry takes no more keywords, and no longer ones.
const MAX_KEYWORDS: usize = 5;
const MAX_KEYWORD: usize = 20;
/// Of the registry's categories, those that we use. It ignores what it does not know.
const CATEGORIES: [&str; 7] = [
    "asynchronous",
    "concurrency",
    "data-structures",
    "development-tools::profiling",
    "embedded",
    "memory-management",
    "no-std",
];

/// Checks `package`, one of `all`.
pub(super) fn check(package: &Package, all: &[Package]) -> Vec<Finding> {
    let mut messages = Vec::new();
    if package.published {
        dependencies(package, all, &mut messages);
        let readme = fs::read_to_string(package.folder.join("README.md")).unwrap_or_default();
        for example in package.examples().filter(|example| !tells(&readme, example)) {
            messages.push(format!("README.md does not tell of the example {example}"));
        }
        registry(package, &mut messages);
    }
    messages.into_iter().map(|message| Finding::at(0, message)).collect()
}

fn dependencies(package: &Package, all: &[Package], messages: &mut Vec<String>) {
    let ours = |name: &str| all.iter().find(|package| package.name == name);
    for dependency in &package.dependencies {
        let Some(other) = ours(&dependency.name) else { continue };
        let name = &other.name;
        if dependency.is_dev && dependency.has_path && dependency.version != "*" {
            messages.push(format!("dev-dependency {name} has a version: publishing would need {name} first"));
        }
        // In tests any pool will do, and some need one.
        let is_free = package.name == UMBRELLA || package.is_program();
        if !dependency.is_dev && other.published && !SHARED.contains(&name.as_str()) && !is_free {
            messages.push(format!(
                "strategy depends on strategy {name}; what both need belongs into {}",
                SHARED[0]
            ));
        }
    }
}

/// Whether the text has the command that runs the example.
fn tells(text: &str, example: &str) -> bool {
    text.split("--example ")
        .skip(1)
        .any(|rest| rest.split(|c: char| !lex::is_word(c)).next() == Some(example))
}

/// What the registry and docs.rs would refuse, or leave out, and nothing here would notice.
fn registry(package: &Package, messages: &mut Vec<String>) {
    if package.keywords.len() > MAX_KEYWORDS || package.keywords.iter().any(|word| word.len() > MAX_KEYWORD) {
        messages
            .push(format!("more than {MAX_KEYWORDS} keywords, or one of more than {MAX_KEYWORD} characters"));
    }
    for category in package.categories.iter().filter(|category| !CATEGORIES.contains(&category.as_str())) {
        messages.push(format!("category {category}: if the registry has it, add it to those that we use"));
    }
    if !package.features.is_empty() && !package.documents_all {
        messages.push("has features, but docs.rs is not told to show all".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::packages::Dependency;

    fn package(name: &str, published: bool, dependencies: Vec<Dependency>) -> Package {
        Package {
            name: name.to_owned(),
            published,
            folder: "/no/such/folder".into(),
            keywords: vec!["buffer".to_owned()],
            categories: vec!["no-std".to_owned()],
            documents_all: true,
            dependencies,
            ..Package::default()
        }
    }

    fn on(name: &str, version: &str, is_dev: bool) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: version.to_owned(),
            is_dev,
            has_path: true,
            features: BTreeSet::new(),
        }
    }

    /// What is said about a strategy with this one dependency.
    fn said(dependency: Dependency) -> Vec<String> {
        let all = [
            package("bufcore", true, Vec::new()),
            package("bufring", true, Vec::new()),
            package("buftest", false, Vec::new()),
        ];
        let mut messages = Vec::new();
        dependencies(&package("bufslot", true, vec![dependency]), &all, &mut messages);
        messages
    }

    #[test]
    fn dependencies_point_one_way() {
        assert_eq!(said(on("bufcore", "^0.1.0", false)), [""; 0]);
        assert_eq!(said(on("libc", "^0.2", false)), [""; 0]);
        assert_eq!(said(on("bufring", "^0.1.0", false)).len(), 1);
        assert_eq!(said(on("bufring", "*", true)), [""; 0]);
    }

    #[test]
    fn dev_dependencies_have_no_version() {
        assert_eq!(said(on("buftest", "*", true)), [""; 0]);
        assert_eq!(said(on("buftest", "^0.1.0", true)).len(), 1);
    }

    #[test]
    fn readmes_tell_of_all_examples() {
        let text = "cargo run -p a --example basic   # one\n`cargo run --example two_processes`\n";
        assert!(tells(text, "basic") && tells(text, "two_processes"));
        assert!(!tells(text, "two") && !tells(text, "basics"));
    }

    #[test]
    fn the_registry_gets_what_it_takes() {
        let said = |change: fn(&mut Package)| {
            let mut package = package("bufcore", true, Vec::new());
            change(&mut package);
            let mut messages = Vec::new();
            registry(&package, &mut messages);
            messages.len()
        };
        assert_eq!(said(|_| {}), 0);
        assert_eq!(said(|package| package.keywords = vec!["a".to_owned(); MAX_KEYWORDS + 1]), 1);
        assert_eq!(said(|package| package.keywords = vec!["a".repeat(MAX_KEYWORD + 1)]), 1);
        assert_eq!(said(|package| package.categories.push("buffers".to_owned())), 1);
        assert_eq!(
            said(|package| {
                package.features = [("std".to_owned(), Vec::new())].into();
                package.documents_all = false;
            }),
            1
        );
    }
}
