//! The first example of each README, as a reader takes it over: a new package with the `cargo add` line above it, and nothing else.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::packages;
use crate::shell::{self, command};

/// A README's first example.
#[derive(Debug, PartialEq, Eq)]
struct First<'a> {
    /// What `cargo add` is told.
    added: &'a str,
    code: String,
}

/// Builds the first example of the workspace's README and of each published package's, each in a package of its own. Nothing is fetched.
pub(crate) fn check() -> Result<()> {
    let packages = packages::published()?;
    let folder = std::env::current_dir()?.join(shell::target_folder()).join("first-examples");
    // A program is installed, and not added.
    let libraries = packages.iter().filter(|package| !package.is_program());
    let readmes = libraries.map(|package| (package.name.as_str(), package.folder.join("README.md")));
    let readmes: Vec<_> = [("workspace", "README.md".into())].into_iter().chain(readmes).collect();
    let mut members = Vec::new();
    for (name, readme) in &readmes {
        let text = fs::read_to_string(readme).with_context(|| format!("cannot read {}", readme.display()))?;
        let first = First::of(&text).with_context(|| format!("{}", readme.display()))?;
        let dependencies = dependencies(first.added, |dependency| {
            let package = packages.iter().find(|package| package.name == dependency);
            Some(package?.folder.as_path())
        })
        .with_context(|| format!("{}: `cargo add {}`", readme.display(), first.added))?;
        let member = folder.join(name);
        fs::create_dir_all(member.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"first-example-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}"
        );
        fs::write(member.join("Cargo.toml"), manifest)?;
        let program = format!(
            "fn main() {{\n    fn example() -> Result<(), impl core::fmt::Debug> {{\n{}    }}\n    example().unwrap();\n}}\n",
            first.code
        );
        fs::write(member.join("src/main.rs"), program)?;
        members.push(format!("{name:?}"));
    }
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", "));
    fs::write(folder.join("Cargo.toml"), workspace)?;
    // The same versions of what they depend on.
    fs::copy("Cargo.lock", folder.join("Cargo.lock"))?;
    // One at a time: built together, one would have the features that another asks for.
    let manifest = folder.join("Cargo.toml");
    for (name, _) in &readmes {
        let mut command = command!(
            "cargo check --quiet --offline --package first-example-{name} --manifest-path {manifest}"
        );
        shell::run(command.env("CARGO_TARGET_DIR", folder.join("target")).env("RUSTFLAGS", "-D warnings"))?;
    }
    println!("first examples: {} build with the `cargo add` lines above them", readmes.len());
    Ok(())
}

impl<'a> First<'a> {
    /// The first Rust example of a text, and the `cargo add` line right above it.
    fn of(text: &'a str) -> Result<Self> {
        let (above, rest) = text.split_once("```rust").context("has no example")?;
        // Behind what rustdoc is told of it.
        let (_, rest) = rest.split_once('\n').context("the first example has no end")?;
        let (code, _) = rest.split_once("\n```\n").context("the first example has no end")?;
        let added = above.trim_end().strip_suffix("```").and_then(|above| above.trim_end().lines().last());
        let added = added.and_then(|line| line.strip_prefix("cargo add "));
        let added = added.context("no `cargo add` line right above the first example")?;
        let shown = code.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
        Ok(Self { added: added.trim(), code: shown.flat_map(|line| [line, "\n"]).collect() })
    }
}

/// The lines of a manifest that `cargo add` would write, with a folder in place of a version.
fn dependencies<'p>(added: &str, folder: impl Fn(&str) -> Option<&'p Path>) -> Result<String> {
    let mut words = added.split_whitespace();
    let (mut names, mut default, mut features) = (Vec::new(), true, Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--no-default-features" => default = false,
            // The folder takes the place of the repository, as it does that of the registry.
            "--git" => drop(words.next().context("which repository?")?),
            "--features" | "-F" => features.extend(words.next().context("which features?")?.split(',')),
            name => {
                ensure!(
                    !name.starts_with('-'),
                    "`{name}` is not an option of `cargo add` that this command reads"
                );
                names.push(name);
            }
        }
    }
    let mut lines = String::new();
    for name in names {
        let folder = folder(name).with_context(|| format!("`{name}` is no package of this workspace"))?;
        writeln!(
            lines,
            "{name} = {{ path = {folder:?}, default-features = {default}, features = {features:?} }}"
        )?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_and_the_line_above_it() {
        let text = "# a\n\n```sh\ncargo add a b\n```\n\n```rust\nuse a::B;\n# Ok::<(), ()>(())\n```\n\n```rust\nno\n```\n";
        let first = First::of(text).expect("it is there");
        assert_eq!(first, First { added: "a b", code: "use a::B;\nOk::<(), ()>(())\n".into() });
        First::of("```sh\ncargo add a\n```\n\nA text.\n\n```rust\nuse a::B;\n```\n")
            .expect_err("a text between");
        First::of("```rust\nuse a::B;\n```\n").expect_err("no line");
    }

    #[test]
    fn what_would_be_added() {
        let known = |name: &str| (name == "a").then_some(Path::new("/x"));
        let lines = dependencies("a --features b,c --no-default-features", known).expect("it is known");
        assert_eq!(lines, "a = { path = \"/x\", default-features = false, features = [\"b\", \"c\"] }\n");
        let lines = dependencies("--git https://example.org/x a", known).expect("it is known");
        assert!(lines.starts_with("a = { path"), "{lines}");
        dependencies("d", known).expect_err("no such package");
        dependencies("a --git", known).expect_err("no repository");
        dependencies("a --path /x", known).expect_err("no such option");
    }
}
