//! The strategies, as the umbrella's manifest has them, and what each needs outside of its crate.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::packages::Package;

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

/// What is missing outside of the strategies' crates, with the place where it should be.
pub(crate) fn missing(packages: &[Package]) -> Result<Vec<(&'static str, String)>> {
    let mut missing = Vec::new();
    for strategy in all(packages)? {
        let lacking = of_strategy(&strategy, packages).into_iter().filter(|item| !item.2);
        missing.extend(lacking.map(|(place, what, _)| (place, format!("lacks {}: {what}", strategy.name))));
    }
    Ok(missing)
}

/// What has to be written outside of a strategy's crate for all that finds strategies to find it: where, what, whether it is there.
fn of_strategy(strategy: &Strategy, packages: &[Package]) -> Vec<(&'static str, String, bool)> {
    let Strategy { name, package } = strategy;
    let text = |place: &'static str, text: &str, what: String| {
        let read = fs::read_to_string(Path::new(ROOT).join(place)).unwrap_or_default();
        (place, what, read.contains(text))
    };
    let mut items = vec![
        text(WORKSPACE, &format!("\n{package} = "), "a line in [workspace.dependencies]".to_owned()),
        text(TABLE, &format!("\"{name}\" {package};"), "a line in the table of crates".to_owned()),
    ];
    items.extend(LISTS.map(|list| {
        let named = if list.contains(UMBRELLA) { name } else { package };
        text(list, named, "a line in the list of strategies".to_owned())
    }));
    let umbrella = find(packages, UMBRELLA);
    let forwarded = |feature: &str, what: String| {
        let is_there = umbrella
            .is_some_and(|umbrella| umbrella.features.get(feature).is_some_and(|list| list.contains(&what)));
        (MANIFEST, format!("`{what}` in the feature `{feature}`"), is_there)
    };
    items.extend(OF_MANY.map(|feature| forwarded(feature, name.clone())));
    if let (Some(package), Some(umbrella)) = (find(packages, package), umbrella) {
        let both = umbrella.features.keys().filter(|feature| package.features.contains_key(*feature));
        let both = both.filter(|feature| !OF_MANY.contains(&feature.as_str()));
        items.extend(both.map(|feature| forwarded(feature, format!("{}?/{feature}", package.name))));
        // A type that hands out no buffers counts none, and is no pool.
        if package.features.contains_key("stats") {
            let what = "a row in the table of pools, from which `AnyPool`, `AnyBuilder`, the proxy and the tests have it";
            items.push(text(TABLE, &format!("if \"{name}\"]"), what.to_owned()));
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages;

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
        let there: Vec<_> = of_strategy(&toy, &packages).into_iter().filter(|item| item.2).collect();
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

    /// So the paths are those of the workspace.
    #[test]
    fn nothing_is_missing_of_those_that_are_there() {
        assert_eq!(missing(&packages::all_of(Path::new(ROOT)).unwrap()).unwrap(), []);
    }
}
