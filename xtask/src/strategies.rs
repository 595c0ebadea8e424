//! The strategies, as the umbrella's manifest has them, and `cargo xtask strategy NAME`: what a
//! strategy needs, and which of it exists.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::packages::{self, Package};

/// The package with a feature for each strategy.
const UMBRELLA: &str = "bufworks";
/// What a feature of it brings that is no strategy.
const KEEPER: &str = "bufkeeper";
/// Where files are looked for. Tests run in another folder than commands.
const ROOT: &str = if cfg!(test) { concat!(env!("CARGO_MANIFEST_DIR"), "/..") } else { "." };
/// Where the umbrella names them for its code and its tests.
const TABLE: &str = "crates/bufworks/src/strategies.rs";
/// Texts that list them.
const LISTS: [&str; 2] = ["README.md", "crates/bufworks/README.md"];
/// Where the workspace has its versions.
const WORKSPACE: &str = "Cargo.toml";
const MANIFEST: &str = "crates/bufworks/Cargo.toml";
/// Features of the umbrella that turn others on, which are no strategy's.
const OF_MANY: [&str; 2] = ["default", "full"];

/// A strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// The feature of the umbrella, which is its name.
    pub(crate) name: String,
    /// Its package.
    pub(crate) package: String,
}

/// The strategies among the packages of the workspace, in the order in which the umbrella turns them
/// on: features of it that bring a package of the workspace.
pub(crate) fn all(packages: &[Package]) -> Result<Vec<Strategy>> {
    let umbrella = find(packages, UMBRELLA).with_context(|| format!("no package {UMBRELLA}"))?;
    let brought = |name: &String| {
        let brings = umbrella.features.get(name)?.iter();
        let ours = brings.filter_map(|feature| find(packages, feature.strip_prefix("dep:")?));
        let mut ours = ours.filter(|package| package.name != KEEPER);
        Some(Strategy { name: name.clone(), package: ours.next()?.name.clone() })
    };
    let default = umbrella.features.get("default").context("strategies are on by default")?;
    Ok(default.iter().filter_map(brought).collect())
}

fn find<'a>(packages: &'a [Package], name: &str) -> Option<&'a Package> {
    packages.iter().find(|package| package.name == name)
}

/// Options of `strategy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The strategy's feature in `bufworks`, such as slot for the package bufslot. It need not exist yet.
    name: String,
}

impl Args {
    /// Prints all that a strategy needs, and marks what of it exists.
    pub(crate) fn run(self) -> Result<()> {
        let packages = packages::all()?;
        let strategy = Strategy { package: format!("buf{}", self.name), name: self.name };
        let mut missing = 0;
        for (title, items) in checklist(&strategy, &packages) {
            println!("{title}");
            for Item { place, what, is_there } in items {
                missing += usize::from(!is_there);
                println!("  [{}] {place}: {what}", if is_there { 'x' } else { ' ' });
            }
            println!();
        }
        ensure!(missing == 0, "{missing} of this is missing for {}", strategy.name);
        Ok(())
    }
}

/// Something that a strategy needs, in a file.
#[derive(Debug)]
struct Item {
    place: String,
    what: String,
    is_there: bool,
}

impl Item {
    /// A file or folder.
    fn file(place: impl Into<String>, what: &str) -> Self {
        let place = place.into();
        let is_there = Path::new(ROOT).join(&place).exists();
        Self { place, what: what.into(), is_there }
    }

    /// A text in a file.
    fn text(place: impl Into<String>, text: &str, what: impl Into<String>) -> Self {
        let place = place.into();
        let read = fs::read_to_string(Path::new(ROOT).join(&place)).unwrap_or_default();
        let is_there = read.contains(text);
        Self { place, what: what.into(), is_there }
    }
}

/// What a strategy needs, in the order in which one makes it.
fn checklist(strategy: &Strategy, packages: &[Package]) -> Vec<(&'static str, Vec<Item>)> {
    let Strategy { name, package } = strategy;
    let at = |path: &str| format!("crates/{package}/{path}");
    vec![
        (
            "Its crate. Each part of it is found by its place, and is in every job then.",
            vec![
                Item::text(
                    at("Cargo.toml"),
                    "bufcore",
                    "a package that depends on `bufcore` and on no other strategy",
                ),
                Item::text(
                    at("src/lib.rs"),
                    "Builder",
                    "a pool, its lease and its `Builder`; the vocabulary at its root",
                ),
                Item::file(at("README.md"), "its front page, with an example"),
                Item::file(at("CHANGELOG.md"), "what a user sees change"),
                Item::file(at("docs/guide.md"), "its guide"),
                Item::file(
                    at("tests/it"),
                    "the conformance suite, `buftest::conformance!` (docs/testing.md)",
                ),
                Item::file(at("tests/oom.rs"), "the n-th allocation fails"),
                Item::file(at("tests/ledger.rs"), "every block goes back once"),
                Item::file(at("tests/races.rs"), "the trials for ThreadSanitizer"),
                Item::file(at("tests/stress.rs"), "long programs under load"),
                Item::file(at("tests/compile_fail"), "what must not compile"),
                Item::file(at("src/tests/loom.rs"), "models of each pair that an `ORDER` comment names"),
                Item::file(format!("mutants/{package}"), "known defects, each with the trial that finds it"),
            ],
        ),
        ("By hand, beside its crate.", by_hand(strategy, packages)),
        (
            "Written by commands.",
            vec![Item::file(format!("docs/api/{package}.txt"), "its public interface: `cargo xtask api`")],
        ),
        (
            "When it has come to stay. Until then the matrix, the adviser and the fuzz target `any` have it by its name.",
            vec![
                Item::file(
                    format!("benches/src/adapters/{name}.rs"),
                    "its contestant in the matrix, with settings for each workload (and a line in mod.rs)",
                ),
                Item::text(
                    "benches/instructions/src/lib.rs",
                    &format!("\"{name}\""),
                    "its instructions per operation",
                ),
                Item::text(
                    "crates/bufadvise/src/advise/strategies.rs",
                    &format!("\"{name}"),
                    "its settings for a traffic, its words and its colour",
                ),
                Item::file(format!("fuzz/fuzz_targets/{name}.rs"), "a fuzz target for what only it does"),
                Item::text("crates/bufworks/docs/guide.md", package, "when to take it, in the guide to all"),
                Item::text("docs/architecture.md", &format!("crates/{package}"), "its place in the map"),
            ],
        ),
    ]
}

/// What has to be written outside of a strategy's crate for all that finds strategies to find it.
fn by_hand(strategy: &Strategy, packages: &[Package]) -> Vec<Item> {
    let Strategy { name, package } = strategy;
    let mut items = vec![
        Item::text(WORKSPACE, &format!("\n{package} = "), "in [workspace.dependencies]"),
        Item::text(
            MANIFEST,
            &format!("\n{name} = [\"dep:{package}\""),
            format!("the feature `{name}`, which brings the optional dependency {package}"),
        ),
    ];
    let umbrella = find(packages, UMBRELLA);
    let turns_on = |feature: &str, what: &str| {
        let list = umbrella.and_then(|umbrella| umbrella.features.get(feature));
        list.is_some_and(|list| list.iter().any(|one| one == what))
    };
    let mut forwarded = |feature: &str, what: String| {
        let is_there = turns_on(feature, &what);
        let what = format!("`{what}` in the feature `{feature}`");
        items.push(Item { place: MANIFEST.into(), what, is_there });
    };
    for feature in OF_MANY {
        forwarded(feature, name.clone());
    }
    // A part that needs no feature of the package's is always there.
    let has = |package: &Package, feature: &str| package.features.contains_key(feature);
    if let (Some(package), Some(umbrella)) = (find(packages, package), umbrella) {
        for feature in umbrella.features.keys().filter(|feature| !OF_MANY.contains(&feature.as_str())) {
            if has(package, feature) {
                forwarded(feature, format!("{}?/{feature}", package.name));
            }
        }
    }
    items.push(Item::text(TABLE, &format!("\"{name}\" {package};"), "a line in the table of crates"));
    // A type that hands out no buffers counts none, and is no pool.
    if find(packages, package).is_none_or(|package| has(package, "stats")) {
        items.push(Item::text(
            TABLE,
            &format!("if \"{name}\"]"),
            "a row in the table of pools, from which `AnyPool`, `AnyBuilder`, the proxy and the tests have it",
        ));
    }
    items.extend(
        LISTS.map(|list| Item::text(list, package_or_feature(list, strategy), "in the list of strategies")),
    );
    items
}

/// How a text names a strategy: the umbrella's by its feature.
fn package_or_feature<'a>(list: &str, strategy: &'a Strategy) -> &'a str {
    if list.contains(UMBRELLA) { &strategy.name } else { &strategy.package }
}

/// What is missing outside of the strategies' crates, with the place where it should be.
pub(crate) fn missing(packages: &[Package]) -> Result<Vec<(String, String)>> {
    let mut missing = Vec::new();
    for strategy in all(packages)? {
        let items = by_hand(&strategy, packages).into_iter().filter(|item| !item.is_there);
        missing.extend(items.map(|item| (item.place, format!("lacks {}: {}", strategy.name, item.what))));
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, features: &[(&str, &[&str])]) -> Package {
        let of = |(name, list): &(&str, &[&str])| {
            ((*name).to_owned(), list.iter().map(|one| (*one).to_owned()).collect())
        };
        Package { name: name.to_owned(), features: features.iter().map(of).collect(), ..Package::default() }
    }

    #[test]
    fn strategies_are_features_that_bring_a_package() {
        let features: &[(&str, &[&str])] = &[
            ("default", &["std", "slot", "toy"]),
            ("slot", &["dep:bufslot"]),
            ("std", &["alloc"]),
            ("toy", &["std", "dep:buftoy"]),
            ("serde", &["dep:serde"]),
        ];
        let packages =
            [package(UMBRELLA, features), package("bufslot", &[]), package("buftoy", &[("stats", &[])])];
        let names: Vec<_> = all(&packages).unwrap().into_iter().map(|one| (one.name, one.package)).collect();
        let expected = [("slot", "bufslot"), ("toy", "buftoy")];
        assert_eq!(names, expected.map(|(name, package)| (name.to_owned(), package.to_owned())));
        // Of a strategy that nobody has, all is missing that is written by hand.
        let toy = Strategy { name: "toy".into(), package: "buftoy".into() };
        let there: Vec<_> = by_hand(&toy, &packages).into_iter().filter(|item| item.is_there).collect();
        assert_eq!(there.len(), 1, "it is on by default: {there:?}");
    }

    /// No job names a strategy: all find them by the manifests. `size` alone has marks for some packages.
    #[test]
    fn no_command_names_a_strategy() {
        let packages = packages::all_of(Path::new(ROOT)).unwrap();
        let names: Vec<_> = all(&packages).unwrap().into_iter().map(|strategy| strategy.package).collect();
        let xtask = packages.iter().find(|package| package.name == "xtask").unwrap();
        let sources = crate::orderings::sources(xtask).unwrap().into_iter();
        for (path, text) in sources.filter(|(path, _)| !path.ends_with("xtask/src/size.rs")) {
            let code = text.split("#[cfg(test)]").next().unwrap();
            for line in code.lines().filter_map(|line| line.split("//").next()) {
                assert!(!names.iter().any(|name| line.contains(name)), "{}: {line}", path.display());
            }
        }
    }

    /// So the paths in the list are those of the workspace.
    #[test]
    fn nothing_is_missing_of_those_that_are_there() {
        let packages = packages::all_of(Path::new(ROOT)).unwrap();
        for strategy in all(&packages).unwrap().iter().filter(|strategy| strategy.name != "mirror") {
            for item in checklist(strategy, &packages).into_iter().flat_map(|(_, items)| items) {
                assert!(item.is_there, "{}: {item:?}", strategy.name);
            }
        }
        assert_eq!(missing(&packages).unwrap(), []);
    }
}
