//! `cargo xtask features`: combinations of features build, and those that behave differently pass the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use anyhow::{Context, Result, bail, ensure};

use crate::packages::{self, Package};
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};
use crate::test::{default_env, skip_long};

/// More features than this would make the powerset a matter of hours; a package can keep some apart (`combinations`).
const MAX_FEATURES: usize = 14;

/// Features that only add items: nothing else behaves differently with them. They are tested with all
/// others, and not each with and without.
const ADDING: [&str; 15] = [
    "allocator-api2-0_2",
    "allocator-api2-0_4",
    "bytes",
    "compio-buf-0_8",
    "embedded-io-0_7",
    "embedded-io-async-0_7",
    "metrics",
    "mmap",
    "monoio-0_2",
    "pages",
    "prometheus",
    "serde",
    "tokio",
    "tokio-uring-0_5",
    "tracing",
];

/// A test build is one of some fifty, and has less traffic and fewer programs than the others. Not less than this: a trial that saw
/// no memory used twice says that it showed nothing.
pub(crate) const SHORT: [(&str, &str); 4] = [
    ("BUFTEST_COUNT", "5000"),
    ("BUFTEST_CASES", "8"),
    ("BUFTEST_SOAK_SECONDS", "0"),
    ("PROPTEST_CASES", "8"),
];

/// The package that all others depend on.
const CORE: &str = "bufcore";
/// The package that all strategies depend on, beside that.
const KIT: &str = "bufkit";

type Features = BTreeMap<String, Vec<String>>;
type Set = BTreeSet<String>;

/// Options of `features`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List the combinations, and build none.
    #[arg(long)]
    list: bool,
    /// Check every combination. Without this, the checked combinations have each two features in every
    /// way.
    #[arg(long)]
    every: bool,
}

/// How much of the combinations is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Each two features in every way: together, apart, absent.
    Twos,
    /// The powerset.
    Every,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let reach = if self.every { Reach::Every } else { Reach::Twos };
        if !self.list {
            return check(reach);
        }
        for package in packages::published()? {
            let tested: BTreeSet<_> = tested(&package).into_iter().collect();
            let checked = combinations(&package, reach)?;
            for set in checked.union(&tested) {
                let mark = if tested.contains(set) { "test " } else { "check" };
                println!("{mark}  {} {}", package.name, join(set));
            }
        }
        Ok(())
    }
}

/// Builds and tests all published packages.
pub(crate) fn check(reach: Reach) -> Result<()> {
    let packages = packages::published()?;
    let groups = groups(&packages, reach)?;
    let mut steps = Steps::new("features", 1 + packages.len());
    let all: usize = groups.values().map(Vec::len).sum();
    steps.step(&format!("check {all} combinations, by {} commands", groups.len()), || {
        groups.iter().try_for_each(|((set, _), packages)| check_one(packages, set))?;
        Ok(Outcome::Passed)
    });
    for package in &packages {
        let sets = tested(package);
        steps.step(&format!("test {}, {} combinations", package.name, sets.len()), || {
            sets.iter().try_for_each(|set| test_one(package, set))?;
            Ok(Outcome::Passed)
        });
    }
    steps.finish()
}

/// What is checked with one command: a set of features, the same for all of these packages, which turns on the same features of `bufcore`
/// in each. So none of them is checked with a `bufcore` that has more than it asks for.
fn groups(packages: &[Package], reach: Reach) -> Result<BTreeMap<(Set, Set), Vec<&Package>>> {
    let core =
        packages.iter().find(|package| package.name == CORE).context("there is a package `bufcore`")?;
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for package in packages {
        for set in combinations(package, reach)? {
            let of_core = of_core(package, &set, core);
            groups.entry((set, of_core)).or_default().push(package);
        }
    }
    Ok(groups)
}

/// The features of `bufcore` that a package has with these of its own. For a package that depends on our other packages, which add some,
/// with its name.
fn of_core(package: &Package, set: &Set, core: &Package) -> Set {
    if package.name == CORE {
        return set.clone();
    }
    let ours = package.dependencies.iter().filter(|one| !one.is_dev && one.has_path);
    let others = ours.clone().filter(|one| one.name != CORE && one.name != KIT).map(|_| package.name.clone());
    let always = ours.filter(|one| one.name == CORE).flat_map(|one| one.features.iter().cloned());
    let prefix = [CORE, "/"].concat();
    let turned_on = set.iter().filter_map(|name| package.features.get(name)).flatten();
    let turned_on = turned_on.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned()));
    let mut features = closure(&core.features, always.chain(turned_on));
    let prefix = [KIT, "/"].concat();
    let of_kit = set.iter().filter_map(|name| package.features.get(name)).flatten();
    features.extend(of_kit.filter(|name| name.starts_with(&prefix)).cloned());
    features.extend(others);
    features
}

/// Only the libraries: dev-dependencies would turn features on that this set leaves off.
fn check_one(packages: &[&Package], set: &Set) -> Result<()> {
    let args = ["check", "--quiet", "--lib", "--no-default-features", "--target-dir", "target/features"];
    let mut command = cargo();
    command.args(args).args(packages.iter().flat_map(|package| ["--package", &package.name]));
    let features =
        |package: &&Package| set.iter().map(|name| format!("{}/{name}", package.name)).collect::<Vec<_>>();
    command.args(["--features", &packages.iter().flat_map(features).collect::<Vec<_>>().join(",")]);
    shell::run(command.env("RUSTFLAGS", "-D warnings"))
}

/// The tests of a package whose outcome, or whose being there, depends on features: the suite, and refused allocations, which the
/// bookkeeping of some features does not survive, so that with all features there is no such test.
const SUITES: [&str; 2] = ["it", "oom"];

/// The unit tests, the suites, and, with no feature, the documentation. What else has a program of its own (what must not compile) does not depend on
/// features so much that `cargo xtask test` with all of them would not do.
fn test_one(package: &Package, set: &Set) -> Result<()> {
    let suites = SUITES.into_iter().filter(|name| {
        let needs = package.test(name).map(|suite| &suite.required_features);
        needs.is_some_and(|needs| needs.iter().all(|feature| set.contains(feature)))
    });
    let programs: Vec<_> = iter::once("--lib").chain(suites.flat_map(|name| ["--test", name])).collect();
    for chosen in [&programs[..], &["--doc"]].into_iter().take(1 + usize::from(set.is_empty())) {
        let args = ["test", "--quiet", "--no-default-features", "--target-dir", "target/features"];
        let mut command = cargo();
        command.args(args).args(["--package", &package.name, "--features", &join(set)]).args(chosen);
        for (name, value) in SHORT {
            default_env(&mut command, name, value);
        }
        default_env(&mut command, "BUFTEST_STEADY_SECONDS", "1");
        skip_long(command.arg("--"));
        // Built some sixty times, and read by nobody.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        shell::run_tests(command.env("RUSTFLAGS", "-D warnings").env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

fn join(set: &Set) -> String {
    set.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// `set` with all that it turns on in its own package.
fn closure(features: &Features, set: impl IntoIterator<Item = String>) -> Set {
    let mut closed = Set::new();
    let mut open: Vec<String> = set.into_iter().collect();
    while let Some(name) = open.pop() {
        // A name that is not a feature of this package is one of a dependency, which follows from ours.
        if let Some(turns_on) = features.get(&name).filter(|_| !closed.contains(&name)) {
            open.extend(turns_on.iter().cloned());
            closed.insert(name);
        }
    }
    closed
}

/// The combinations of features that a package is built with. Those that its manifest keeps apart meet
/// few others: each is built alone, and all of them with each of the rest and with all. Every combination includes
/// each with all the rest.
fn combinations(package: &Package, reach: Reach) -> Result<BTreeSet<Set>> {
    let Package { features, apart, .. } = package;
    if let Some(unknown) = apart.iter().find(|name| !features.contains_key(*name)) {
        bail!("{} keeps {unknown} apart, which is no feature of it", package.name);
    }
    let names = features.keys().filter(|name| *name != "default" && !apart.contains(*name));
    let rest: Vec<_> = names.cloned().collect();
    let mut sets = powerset(features, &rest)?;
    if reach == Reach::Twos {
        sets = cover(&sets, Vec::new(), |set| twos_in(set, &rest)).into_iter().collect();
    }
    let mut add = |set: Vec<String>| sets.insert(closure(features, set));
    for name in apart {
        add(vec![name.clone()]);
        if reach == Reach::Every {
            add(rest.iter().chain([name]).cloned().collect());
        }
    }
    for name in &rest {
        add(apart.iter().chain([name]).cloned().collect());
    }
    add(rest.iter().chain(apart).cloned().collect());
    Ok(sets)
}

/// Every combination of `names`, of those that turn on the same only one. `default` is a set of others, so not one itself.
fn powerset(features: &Features, names: &[String]) -> Result<BTreeSet<Set>> {
    ensure!(names.len() <= MAX_FEATURES, "{} features are too many for a powerset", names.len());
    let pick = |bits: usize| {
        let chosen = names.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
        chosen.map(|(_, name)| name.clone()).collect::<Vec<_>>()
    };
    Ok((0..1usize << names.len()).map(|bits| closure(features, pick(bits))).collect())
}

/// The combinations that are tested here: those that cover, without that of all features, which `cargo xtask test` tests.
fn tested(package: &Package) -> Vec<Set> {
    let everything = everything(package);
    covering(package).into_iter().filter(|set| *set != everything).collect()
}

/// All of a package's features.
fn everything(package: &Package) -> Set {
    closure(&package.features, package.features.keys().filter(|name| *name != "default").cloned())
}

/// None, all, each feature alone that brings another of our packages in, and of each two features that
/// change how the package behaves, either without the other.
fn covering(package: &Package) -> Vec<Set> {
    let Package { features, apart, .. } = package;
    let changing: Vec<_> = features
        .keys()
        .filter(|name| *name != "default" && !apart.contains(*name) && !ADDING.contains(&name.as_str()))
        .cloned()
        .collect();
    let brings_ours = |name: &&String| {
        let turns_on = features.get(*name).into_iter().flatten();
        turns_on
            .filter_map(|one| one.strip_prefix("dep:"))
            .any(|one| one != CORE && one != KIT && one != "bufkeeper" && one.starts_with("buf"))
    };
    let alone = changing.iter().filter(brings_ours).map(|name| closure(features, [name.clone()]));
    let sets: Vec<_> = [Set::new(), everything(package)].into_iter().chain(alone).collect();
    let choices = powerset(features, &changing).unwrap_or_default();
    let mut sets = cover(&choices, sets, |set| apart_in(set, &changing));
    let mut seen = BTreeSet::new();
    sets.retain(|set| seen.insert(set.clone()));
    sets
}

/// `chosen`, and as few of `choices` as greedy picking finds, so that they show all that `choices` show.
fn cover<T: Ord>(
    choices: &BTreeSet<Set>,
    mut chosen: Vec<Set>,
    shows: impl Fn(&Set) -> BTreeSet<T>,
) -> Vec<Set> {
    let mut open: BTreeSet<T> = choices.iter().flat_map(&shows).collect();
    for set in &chosen {
        shows(set).iter().for_each(|shown| _ = open.remove(shown));
    }
    let new_in = |set: &Set, open: &BTreeSet<T>| shows(set).intersection(open).count();
    while !open.is_empty() {
        // Of two that show as much, the one that is built sooner.
        let best = choices.iter().max_by_key(|set| (new_in(set, &open), usize::MAX - set.len()));
        let Some(best) = best else { break };
        shows(best).iter().for_each(|shown| _ = open.remove(shown));
        chosen.push(best.clone());
    }
    chosen
}

/// Each two of `names`, with which of them are in `set`.
fn twos_in(set: &Set, names: &[String]) -> BTreeSet<[(usize, bool); 2]> {
    let at = |at: usize| (at, set.contains(&names[at]));
    let end = names.len();
    // A single name is a pair with itself.
    (0..end).flat_map(|a| (a..end).map(move |b| [a, b])).map(|two| two.map(at)).collect()
}

/// The pairs of which `set` has the first and not the second.
fn apart_in(set: &Set, names: &[String]) -> BTreeSet<(String, String)> {
    let with = names.iter().filter(|name| set.contains(*name));
    let without = || names.iter().filter(|name| !set.contains(*name));
    with.flat_map(|with| without().map(move |without| (with.clone(), without.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::Dependency;

    fn features() -> Features {
        let list = [
            ("default", vec!["std"]),
            ("std", vec!["alloc", "other?/std"]),
            ("alloc", vec![]),
            ("other", vec!["dep:other"]),
        ];
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        list.into_iter().map(|(name, turns_on)| (name.to_owned(), owned(turns_on))).collect()
    }

    fn package(apart: &[&str]) -> Package {
        Package {
            name: "some".into(),
            published: true,
            folder: "/no/such/folder".into(),
            features: features(),
            apart: apart.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn packages_are_checked_together_with_no_more_than_each_asks_for() {
        let depends = |name: &str, features: &[&str]| Dependency {
            name: name.into(),
            version: "1".into(),
            is_dev: false,
            has_path: true,
            features: features.iter().map(|&name| name.to_owned()).collect(),
        };
        let features = |std: &str| {
            let list =
                [("std", vec!["alloc".to_owned(), std.to_owned()]), ("alloc", vec!["bufcore/alloc".into()])];
            list.map(|(name, turns_on)| (name.to_owned(), turns_on)).into()
        };
        let of = |name: &str, std: &str, dependencies| Package {
            name: name.into(),
            folder: "/no/such/folder".into(),
            features: features(std),
            dependencies,
            ..Package::default()
        };
        let packages = [
            of("bump", "bufcore/std", vec![depends(CORE, &["std"])]),
            of(CORE, "alloc", vec![]),
            of("mirror", "bufcore/pages", vec![depends(CORE, &[])]),
            of("ring", "bufcore/std", vec![depends(CORE, &[])]),
            of("works", "bufcore/std", vec![depends(CORE, &[]), depends("ring", &[])]),
        ];
        let groups = groups(&packages, Reach::Every).unwrap();
        let names =
            |group: &Vec<&Package>| group.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(" ");
        let mut lines: Vec<_> =
            groups.iter().map(|((set, _), group)| format!("{}: {}", join(set), names(group))).collect();
        lines.sort();
        let expected = [
            ": bufcore mirror ring",
            ": bump",
            ": works",
            "alloc,std: bump bufcore ring",
            "alloc,std: mirror",
            "alloc,std: works",
            "alloc: bufcore mirror ring",
            "alloc: bump",
            "alloc: works",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn combinations_that_turn_on_the_same_are_one() {
        let sets: Vec<_> = combinations(&package(&[]), Reach::Every).unwrap().iter().map(join).collect();
        assert_eq!(sets, ["", "alloc", "alloc,other", "alloc,other,std", "alloc,std", "other"]);
    }

    #[test]
    fn what_is_kept_apart_is_not_combined_with_everything() {
        let sets: Vec<_> =
            combinations(&package(&["other"]), Reach::Every).unwrap().iter().map(join).collect();
        assert_eq!(sets, ["", "alloc", "alloc,other", "alloc,other,std", "alloc,std", "other"]);
        let sets: Vec<_> =
            combinations(&package(&["other", "std"]), Reach::Every).unwrap().iter().map(join).collect();
        assert_eq!(sets, ["", "alloc", "alloc,other", "alloc,other,std", "alloc,std", "other"]);
        let sets: Vec<_> = combinations(&package(&["alloc", "other", "std"]), Reach::Every)
            .unwrap()
            .iter()
            .map(join)
            .collect();
        assert_eq!(sets, ["", "alloc", "alloc,other,std", "alloc,std", "other"]);
        assert!(combinations(&package(&["none"]), Reach::Every).is_err());
    }

    #[test]
    fn each_two_features_are_checked_in_every_way() {
        let names = ["a", "b", "c", "d", "e", "f"].map(str::to_owned);
        let mut many = package(&[]);
        many.features = names.clone().map(|name| (name, Vec::new())).into();
        let sets = combinations(&many, Reach::Twos).unwrap();
        assert!(sets.len() < 16, "{} of 64", sets.len());
        let shown: BTreeSet<_> = sets.iter().flat_map(|set| twos_in(set, &names)).collect();
        let all: BTreeSet<_> =
            combinations(&many, Reach::Every).unwrap().iter().flat_map(|set| twos_in(set, &names)).collect();
        assert!(shown == all && all.len() >= 15 * 4, "{} of {}", shown.len(), all.len());
    }

    #[test]
    fn all_features_are_tested_elsewhere() {
        let sets: Vec<_> = tested(&package(&[])).iter().map(join).collect();
        assert_eq!(sets, ["", "other", "alloc", "alloc,std"]);
    }

    #[test]
    fn the_covering_has_each_feature_without_each_other() {
        let sets: Vec<_> = covering(&package(&[])).iter().map(join).collect();
        assert_eq!(sets, ["", "alloc,other,std", "other", "alloc", "alloc,std"]);
        let sets: Vec<_> = covering(&package(&["other"])).iter().map(join).collect();
        assert_eq!(sets, ["", "alloc,other,std", "alloc"]);
        let mut adding = package(&[]);
        let turns_on = adding.features.remove("other").unwrap();
        adding.features.insert("serde".into(), turns_on);
        let sets: Vec<_> = covering(&adding).iter().map(join).collect();
        assert_eq!(sets, ["", "alloc,serde,std", "alloc"]);
        let mut many = package(&[]);
        many.features = ["a", "b", "c", "d"].map(|name| (name.to_owned(), Vec::new())).into();
        let sets: Vec<_> = covering(&many).iter().map(join).collect();
        assert!(sets.len() <= 2 + 4, "{sets:?}");
        for with in ["a", "b", "c", "d"] {
            for without in ["a", "b", "c", "d"].iter().filter(|name| **name != with) {
                assert!(sets.iter().any(|set| set.contains(with) && !set.contains(without)), "{sets:?}");
            }
        }
    }
}
