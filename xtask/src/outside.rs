//! Programs outside of the workspace, as a user has them: the first example of each README, what a program locks, what building it
//! takes, and that the oldest versions that our packages accept are enough. Nothing is fetched, except old versions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::ci;
use crate::packages::{self, Package};
use crate::shell::{self, command};

/// Only our own tests use them.
const CHECKERS: [&str; 2] = ["loom", "shuttle"];
/// Times are relative to what this one takes: people know it, and it depends on nothing.
const SCALE: &str = "bytes";
/// How often each build is measured; the median counts.
const BUILDS: usize = 3;
const EMPTY: &str = "fn main() {}\n";

/// A program's folder, made anew, with the lock file of the workspace in `root`.
fn make(root: &Path, name: &str, dependencies: &str, main: &str) -> Result<PathBuf> {
    let folder = shell::target_folder().join("outside").join(name);
    fs::create_dir_all(folder.join("src")).with_context(|| format!("cannot make {}", folder.display()))?;
    let package = "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
    fs::write(
        folder.join("Cargo.toml"),
        format!("{package}\n[dependencies]\n{dependencies}\n[workspace]\n"),
    )?;
    fs::write(folder.join("src/main.rs"), main)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("the workspace has a lock file")?;
    Ok(folder)
}

/// Checks the program in `folder`. All of them share what is built.
fn check_program(folder: &Path) -> Result<()> {
    let mut check = command!("cargo check --quiet --offline --target-dir ../built");
    shell::run(check.current_dir(folder).env("RUSTFLAGS", "-D warnings"))
}

/// The line of a manifest for one of our packages.
fn ours(root: &Path, package: &str, more: &str) -> Result<String> {
    let path =
        fs::canonicalize(root.join("crates").join(package)).with_context(|| format!("no {package}"))?;
    Ok(format!("{package} = {{ path = {path:?}{more} }}\n"))
}

/// What the lock file of a program with one of our packages names.
pub(crate) struct Locked {
    pub(crate) package: String,
    /// How many packages it may name without the program: `package.metadata.bufworks.locks-at-most`.
    pub(crate) most: u64,
    pub(crate) names: Vec<String>,
}

/// A program for each package whose manifest says what it may lock, with the packages of `root` and their default features.
pub(crate) fn locked(root: &Path) -> Result<Vec<Locked>> {
    let limited = packages::all()?.into_iter().filter_map(|one| Some((one.locks_at_most?, one.name)));
    let each = limited.map(|(most, package)| {
        let folder = make(root, &package, &ours(root, &package, "")?, EMPTY)?;
        shell::run(command!("cargo update --quiet --workspace --offline").current_dir(&folder))?;
        let lock = fs::read_to_string(folder.join("Cargo.lock"))?;
        let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let names = names.filter(|name| *name != "outside").map(str::to_owned).collect();
        Ok(Locked { package, most, names })
    });
    each.collect()
}

/// Builds programs, and looks at what they lock.
pub(crate) fn check() -> Result<()> {
    for Locked { package, most, names } in locked(Path::new("."))? {
        let list = names.join(", ");
        ensure!(
            names.len() as u64 <= most,
            "a program with {package} locks more than {most} packages: {list}"
        );
        let has_checker = names.iter().any(|name| CHECKERS.contains(&name.as_str()));
        ensure!(!has_checker, "a program with {package} locks a model checker: {list}");
        check_program(&shell::target_folder().join("outside").join(&package))?;
        println!("outside: a program with {package} locks {} packages: {list}", names.len());
    }
    // A program is installed, and not added.
    let libraries = packages::published()?.into_iter().filter(|package| !package.is_program());
    let readmes = libraries.map(|package| (package.name, package.folder.join("README.md")));
    for (name, readme) in [("workspace".to_owned(), "README.md".into())].into_iter().chain(readmes) {
        check_readme(&name, &readme).with_context(|| format!("the first example of {}", readme.display()))?;
    }
    Ok(())
}

/// Builds a README's first example as a reader takes it over: with the `cargo add` line above it, and nothing else.
fn check_readme(name: &str, readme: &Path) -> Result<()> {
    let text = fs::read_to_string(readme)?;
    let (added, code) = first_example(&text)?;
    let mut dependencies = String::new();
    let (names, more) = added_packages(added)?;
    for package in names {
        dependencies += &ours(Path::new("."), package, &more)?;
    }
    let main = if code.contains("fn main()") { code } else { format!("fn main() {{\n{code}}}\n") };
    check_program(&make(Path::new("."), &format!("readme-{name}"), &dependencies, &main)?)
}

/// The `cargo add` line right above the first Rust example of a text, and the example.
fn first_example(text: &str) -> Result<(&str, String)> {
    let (above, rest) = text.split_once("```rust").context("there is none")?;
    // Behind what rustdoc is told of it.
    let code = rest.split_once('\n').and_then(|(_, rest)| rest.split_once("\n```\n"));
    let (code, _) = code.context("it has no end")?;
    let added = above.trim_end().strip_suffix("```").and_then(|above| above.trim_end().lines().last());
    let added =
        added.and_then(|line| line.strip_prefix("cargo add ")).context("no `cargo add` right above it")?;
    Ok((added, format!("{code}\n")))
}

/// The packages that `cargo add` is told of, and what it would write behind each. A folder takes the place of a repository.
fn added_packages(added: &str) -> Result<(Vec<&str>, String)> {
    let mut words = added.split_whitespace();
    let (mut names, mut default, mut features) = (Vec::new(), true, Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--no-default-features" => default = false,
            "--git" => drop(words.next().context("which repository?")?),
            "--features" | "-F" => features.extend(words.next().context("which features?")?.split(',')),
            name => {
                ensure!(
                    !name.starts_with('-'),
                    "`{name}` is an option of `cargo add` that is not known here"
                );
                names.push(name);
            }
        }
    }
    Ok((names, format!(", default-features = {default}, features = {features:?}")))
}

/// The processor time to build a program with each strategy cold, relative to [`SCALE`], each the median of several.
pub(crate) fn build_times(root: &Path) -> Result<Vec<(String, f64)>> {
    let scale = packages::all_of(root)?.into_iter().flat_map(|package| package.dependencies);
    let scale = scale.into_iter().find(|one| one.name == SCALE).context("no package depends on bytes")?;
    let of = |name: &str, dependencies: &str| -> Result<f64> {
        let folder = make(root, &format!("timed-{name}"), dependencies, EMPTY)?;
        let mut times = Vec::new();
        for _ in 0..BUILDS {
            let _ = fs::remove_dir_all(folder.join("target"));
            let mut build = command!("cargo build --quiet --offline --jobs 1 --target-dir target");
            let before = ci::processor_seconds().context("the system tells no processor time")?;
            shell::run(build.current_dir(&folder).env_remove("RUSTFLAGS"))?;
            times.push(ci::processor_seconds().unwrap_or_default() - before);
        }
        times.sort_by(f64::total_cmp);
        println!("outside: a program with {name} builds in {times:.2?} seconds of the processor");
        Ok(times[BUILDS / 2])
    };
    let unit = of(SCALE, &format!("{SCALE} = \"{}\"\n", scale.version))?;
    let limited = packages::all()?.into_iter().filter(|one| one.locks_at_most.is_some());
    let libraries = limited.map(|one| one.name).filter(|name| name != "bufworks");
    libraries.map(|name| Ok((name.clone(), of(&name, &ours(root, &name, "")?)? / unit))).collect()
}

/// Checks each library with the oldest version of each of its dependencies that it accepts.
pub(crate) fn check_oldest() -> Result<()> {
    for package in packages::published()?.iter().filter(|package| !package.is_program()) {
        let features: Vec<_> = package.features.keys().collect();
        let mut dependencies = ours(Path::new("."), &package.name, &format!(", features = {features:?}"))?;
        dependencies += &oldest(package);
        let folder = make(Path::new("."), &format!("oldest-{}", package.name), &dependencies, EMPTY)?;
        // What the workspace locks is too new.
        fs::remove_file(folder.join("Cargo.lock"))?;
        let mut check = command!("cargo check --quiet --target-dir ../oldest");
        shell::run(check.current_dir(&folder))
            .with_context(|| format!("{} needs later versions than it says", package.name))?;
    }
    Ok(())
}

/// Lines of a manifest that ask for exactly the versions that a package's ranges begin with.
fn oldest(package: &Package) -> String {
    let others = package.dependencies.iter().filter(|one| !one.is_dev && !one.has_path);
    let others = others.filter(|one| !CHECKERS.contains(&one.name.as_str()));
    let lines = others.enumerate().map(|(at, one)| {
        let numbers = one.version.trim_start_matches(['^', '=']);
        let zeros = ".0".repeat(2_usize.saturating_sub(numbers.matches('.').count()));
        // Under a name of its own, as some come in two versions.
        format!(
            "oldest-{at} = {{ package = {:?}, version = \"={numbers}{zeros}\", default-features = false }}\n",
            one.name
        )
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_with_a_version() {
        let dependency = |name: &str, version: &str| packages::Dependency {
            name: name.into(),
            version: version.into(),
            is_dev: false,
            has_path: false,
        };
        let dependencies = vec![dependency("a", "^1"), dependency("b", "^0.2.4"), dependency("loom", "^0.7")];
        let lines = oldest(&Package { dependencies, ..Package::default() });
        let expected = [("0", "a", "1.0.0"), ("1", "b", "0.2.4")].map(|(at, name, version)| {
            format!("oldest-{at} = {{ package = \"{name}\", version = \"={version}\", default-features = false }}\n")
        });
        assert_eq!(lines, expected.concat());
    }

    #[test]
    fn the_first_example_and_the_line_above_it() {
        let text = "# a\n\n```sh\ncargo add a b\n```\n\n```rust\nuse a::B;\n```\n\n```rust\nno\n```\n";
        assert_eq!(first_example(text).unwrap(), ("a b", "use a::B;\n".to_owned()));
        first_example("```sh\ncargo add a\n```\n\nA text.\n\n```rust\nuse a::B;\n```\n").unwrap_err();
        first_example("```rust\nuse a::B;\n```\n").unwrap_err();
    }

    #[test]
    fn what_would_be_added() {
        let (names, more) =
            added_packages("a --git https://x b --features b,c --no-default-features").unwrap();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(more, ", default-features = false, features = [\"b\", \"c\"]");
        added_packages("a --git").unwrap_err();
        added_packages("a --path /x").unwrap_err();
    }
}
