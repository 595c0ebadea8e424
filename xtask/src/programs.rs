//! `cargo xtask programs`: the programs of `examples/outside`, as a user has them, each beside one that does the same without bufworks.
//!
//! Their manifests ask for the repository. Here the packages of this checkout take its place, and nothing is fetched.

mod checks;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::rust_code::Code;
use crate::shell::{self, command};

const FOLDER: &str = "examples/outside";
/// The one for a processor without an operating system: `nostd` builds and runs it.
pub(crate) const FIRMWARE: &str = "firmware";
/// It shows what each of them depends on.
const DOCUMENT: &str = "crates/bufworks/docs/guide.md";
const REPOSITORY: &str = "https://github.com/bufworks/bufworks";

/// The program, and what people write today, in a package's folder.
const SOURCES: [&str; 2] = ["src/main.rs", "examples/today.rs"];

/// The names of the programs, which are those of their folders.
pub(crate) fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER).with_context(|| format!("cannot list {FOLDER}"))? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            names.push(path.file_name().context("it has a name")?.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The manifest of a program.
pub(crate) fn manifest(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).join("Cargo.toml")
}

/// Builds and runs them, and prints how long they are.
pub(crate) fn check() -> Result<()> {
    let names = names()?;
    for name in &names {
        documented(name)?;
        if name != FIRMWARE {
            run(name).with_context(|| format!("the program {name}"))?;
        }
    }
    let mut longer = Vec::new();
    println!("| program | lines | without bufworks |\n| --- | ---: | ---: |");
    for name in names {
        let count = |file| {
            let text = fs::read_to_string(Path::new(FOLDER).join(&name).join(file))?;
            Ok::<_, anyhow::Error>(Code::of(&text, true)?.lines())
        };
        let [lines, today] = SOURCES.map(count);
        let (lines, today) = (lines?, today?);
        println!("| {name} | {lines} | {today} |");
        longer.extend((lines > today).then_some(name));
    }
    ensure!(longer.is_empty(), "longer than what people write today: {}", longer.join(", "));
    Ok(())
}

/// Whether the document shows what a program depends on, of ours.
fn documented(name: &str) -> Result<()> {
    let (manifest, document) = (fs::read_to_string(manifest(name))?, fs::read_to_string(DOCUMENT)?);
    let mut ours = ours(&manifest).map(|(_, line)| line).peekable();
    ensure!(ours.peek().is_some(), "{name} depends on none of our packages");
    for line in ours {
        ensure!(document.contains(line), "{DOCUMENT} does not show `{line}`, which {name} has");
    }
    Ok(())
}

/// The packages of the repository in a manifest, each with its line.
fn ours(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_ours = |line: &&str| line.contains(&format!("git = {REPOSITORY:?}"));
    manifest.lines().filter(is_ours).filter_map(|line| Some((line.split_once(" = ")?.0, line)))
}

/// Builds a program and its counterpart, and lets both do their work. All of them share what is built.
fn run(name: &str) -> Result<()> {
    let check = checks::of(name).context("nothing says how it is checked")?;
    let folder = copy(name, Path::new("Cargo.lock"))?;
    for (target, program) in [(["--bin", name], name), (["--example", "today"], "examples/today")] {
        let mut build = command!("cargo build --quiet --offline --target-dir ../built {target...}");
        build.current_dir(&folder).env("RUSTFLAGS", "-D warnings");
        // A tenth of the time, and nothing is debugged or built a second time.
        build.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        shell::run(&mut build)?;
        let program = folder.with_file_name("built").join("debug").join(program);
        check(&program).with_context(|| format!("{}", program.display()))?;
    }
    Ok(())
}

/// Copies a program to a folder of its own, where the packages of this checkout take the place of the repository's, and others have the
/// versions of a lock file.
pub(crate) fn copy(name: &str, lock: &Path) -> Result<PathBuf> {
    let (from, to) = (Path::new(FOLDER).join(name), shell::target_folder().join("outside").join(name));
    for file in shell::files(&from)? {
        let copied = to.join(&file);
        fs::create_dir_all(copied.parent().context("a file is in a folder")?)?;
        fs::copy(from.join(&file), copied).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    let manifest = fs::read_to_string(from.join("Cargo.toml"))?;
    let repository = format!("git = {REPOSITORY:?}");
    let mut paths = manifest.clone();
    let mut patch = format!("{manifest}\n[patch.{REPOSITORY:?}]\n");
    for (package, line) in ours(&manifest) {
        let path = format!("path = {:?}", fs::canonicalize(Path::new("crates").join(package))?);
        patch += &format!("{package} = {{ {path} }}\n");
        paths = paths.replace(line, &line.replace(&repository, &path));
    }
    // Cargo would fetch the repository to learn what can be locked. What is locked, it takes as it is.
    fs::copy(lock, to.join("Cargo.lock")).with_context(|| format!("no {}", lock.display()))?;
    fs::write(to.join("Cargo.toml"), paths)?;
    shell::run(command!("cargo update --quiet --workspace --offline").current_dir(&to))?;
    fs::write(to.join("Cargo.toml"), patch)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_packages_are_those_of_the_repository() {
        let line = format!("a = {{ git = {REPOSITORY:?}, features = [\"b\"] }}");
        let manifest =
            format!("[dependencies]\n{line}\nc = {{ git = \"https://example.org\" }}\nd = \"1\"\n");
        assert_eq!(ours(&manifest).collect::<Vec<_>>(), [("a", &line[..])]);
    }
}
