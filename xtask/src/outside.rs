//! Programs outside of the workspace, as a user has them: what they lock, that they build, what building them takes, and that the oldest
//! versions that our packages accept are enough.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::ci;
use crate::packages::{self, Package};
use crate::shell::{self, command};

/// A program that depends on one of our packages, with its default features.
pub(crate) struct Program {
    pub(crate) package: String,
    /// How many packages its lock file may have, without itself: `package.metadata.bufworks.locks-at-most`.
    pub(crate) most: u64,
}

/// One for each package whose manifest says what it may lock.
fn programs() -> Result<Vec<Program>> {
    let all = packages::all()?.into_iter();
    let limited = all.filter_map(|one| Some(Program { most: one.locks_at_most?, package: one.name }));
    Ok(limited.collect())
}

/// Only our own tests use them.
const CHECKERS: [&str; 2] = ["loom", "shuttle"];
/// Times are relative to what this one takes: people know it, and it depends on nothing.
const SCALE: &str = "bytes";
/// How often each build is measured; the median counts.
const BUILDS: usize = 3;

/// A program's folder, made anew, with the lock file of the workspace in `root`.
fn make(root: &Path, name: &str, dependencies: &str) -> Result<PathBuf> {
    let folder = shell::target_folder().join("outside").join(name);
    let source = "//! A program outside of the workspace.\n\nfn main() {}\n";
    fs::create_dir_all(folder.join("src")).with_context(|| format!("cannot make {}", folder.display()))?;
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), source)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("the workspace has a lock file")?;
    Ok(folder)
}

/// The line of a manifest for one of our packages.
fn ours(root: &Path, package: &str, more: &str) -> Result<String> {
    let path =
        fs::canonicalize(root.join("crates").join(package)).with_context(|| format!("no {package}"))?;
    Ok(format!("{package} = {{ path = {path:?}{more} }}\n"))
}

/// What each program's lock file names beside the program, with the packages of `root`.
pub(crate) fn locked(root: &Path) -> Result<Vec<(Program, Vec<String>)>> {
    let each = programs()?.into_iter().map(|program| {
        let folder = make(root, &program.package, &ours(root, &program.package, "")?)?;
        shell::run(command!("cargo update --quiet --workspace --offline").current_dir(&folder))?;
        let lock = fs::read_to_string(folder.join("Cargo.lock"))?;
        let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        anyhow::Ok((program, names.filter(|name| *name != "outside").map(str::to_owned).collect()))
    });
    each.collect()
}

/// Builds each program, and looks at what it locks.
pub(crate) fn check() -> Result<()> {
    for (Program { package, most }, locked) in locked(Path::new("."))? {
        let names = locked.join(", ");
        ensure!(
            locked.len() as u64 <= most,
            "a program with {package} locks more than {most} packages: {names}"
        );
        ensure!(
            !locked.iter().any(|name| CHECKERS.contains(&name.as_str())),
            "a program with {package} locks a model checker: {names}"
        );
        let folder = shell::target_folder().join("outside").join(&package);
        shell::run(command!("cargo check --quiet --locked --offline").current_dir(folder))?;
        println!("outside: a program with {package} locks {} packages: {names}", locked.len());
    }
    Ok(())
}

/// The processor time to build each strategy's program cold, relative to [`SCALE`], each the median of several.
pub(crate) fn build_times(root: &Path) -> Result<Vec<(String, f64)>> {
    let scale = packages::all_of(root)?.into_iter().flat_map(|package| package.dependencies);
    let scale = scale.into_iter().find(|one| one.name == SCALE).context("no package depends on bytes")?;
    let of = |name: &str, dependencies: &str| -> Result<f64> {
        let folder = make(root, &format!("timed-{name}"), dependencies)?;
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
    let libraries = programs()?.into_iter().map(|program| program.package).filter(|name| name != "bufworks");
    libraries.map(|name| Ok((name.clone(), of(&name, &ours(root, &name, "")?)? / unit))).collect()
}

/// Checks each library with the oldest version of each of its dependencies that it accepts.
pub(crate) fn check_oldest() -> Result<()> {
    for package in packages::published()?.iter().filter(|package| !package.is_program()) {
        let features: Vec<_> = package.features.keys().collect();
        let mut dependencies = ours(Path::new("."), &package.name, &format!(", features = {features:?}"))?;
        dependencies += &oldest(package);
        let folder = make(Path::new("."), &format!("oldest-{}", package.name), &dependencies)?;
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
            features: Default::default(),
        };
        let dependencies = vec![dependency("a", "^1"), dependency("b", "^0.2.4"), dependency("loom", "^0.7")];
        let lines = oldest(&Package { dependencies, ..Package::default() });
        let expected = [("0", "a", "1.0.0"), ("1", "b", "0.2.4")].map(|(at, name, version)| {
            format!("oldest-{at} = {{ package = \"{name}\", version = \"={version}\", default-features = false }}\n")
        });
        assert_eq!(lines, expected.concat());
    }
}
