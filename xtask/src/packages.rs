//! What `cargo metadata` says about this workspace's packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Whether it goes to a registry.
    pub(crate) published: bool,
    /// Its folder.
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// Whether docs.rs is told to show all features.
    pub(crate) documents_all: bool,
    /// Each feature with what it turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// Features that the manifest keeps out of the powerset, as `package.metadata.bufworks.apart`.
    pub(crate) apart: BTreeSet<String>,
    /// Features that bring many crates of others along, as `package.metadata.bufworks.heavy`: left out where minutes count.
    pub(crate) heavy: BTreeSet<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A line of `[dependencies]` and its siblings.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The version asked for, `*` for none.
    pub(crate) version: String,
    pub(crate) is_dev: bool,
    /// Whether a folder is given for it.
    pub(crate) has_path: bool,
    /// The features of it that are always asked for, its default ones among them as `default`.
    pub(crate) features: BTreeSet<String>,
}

/// A library, program, test or example.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// As in the manifest: `lib`, `bin`, `test`, `example`, `bench`.
    pub(crate) kind: String,
    /// Without all of these it is not built.
    pub(crate) required_features: Vec<String>,
}

impl Package {
    /// The integration test of this name.
    pub(crate) fn test(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.kind == "test" && target.name == name)
    }

    /// The examples' names.
    pub(crate) fn examples(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().filter(|target| target.kind == "example").map(|target| target.name.as_str())
    }
}

/// All packages of the workspace, by name.
pub(crate) fn all() -> Result<Vec<Package>> {
    all_of(Path::new("."))
}

/// All packages of the workspace in `folder`, by name.
pub(crate) fn all_of(folder: &Path) -> Result<Vec<Package>> {
    let mut command = shell::cargo();
    command.args(["metadata", "--format-version=1", "--no-deps"]).current_dir(folder);
    let text = shell::output(&mut command)?;
    parse(&text).context("cannot understand `cargo metadata`")
}

/// The packages that go to a registry.
pub(crate) fn published() -> Result<Vec<Package>> {
    let mut packages = all()?;
    packages.retain(|package| package.published);
    Ok(packages)
}

fn parse(text: &str) -> Result<Vec<Package>> {
    let root: Value = serde_json::from_str(text)?;
    let mut packages = list(&root, "packages")?.iter().map(package).collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn package(value: &Value) -> Result<Package> {
    let manifest = PathBuf::from(word(value, "manifest_path")?);
    let features = value["features"].as_object().context("no `features`")?;
    Ok(Package {
        name: word(value, "name")?,
        // `null` is any registry, an empty list is none.
        published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        folder: manifest.parent().context("a manifest has a folder")?.to_owned(),
        version: word(value, "version")?,
        keywords: words(&value["keywords"]),
        categories: words(&value["categories"]),
        documents_all: value["metadata"]["docs"]["rs"]["all-features"] == true,
        features: features.iter().map(|(name, turns_on)| (name.clone(), words(turns_on))).collect(),
        apart: words(&value["metadata"]["bufworks"]["apart"]).into_iter().collect(),
        heavy: words(&value["metadata"]["bufworks"]["heavy"]).into_iter().collect(),
        dependencies: list(value, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
        targets: list(value, "targets")?.iter().map(target).collect::<Result<_>>()?,
    })
}

fn dependency(value: &Value) -> Result<Dependency> {
    let default = (value["uses_default_features"] == true).then(|| "default".to_owned());
    Ok(Dependency {
        name: word(value, "name")?,
        version: word(value, "req")?,
        is_dev: value["kind"] == "dev",
        has_path: value["path"].is_string(),
        features: words(&value["features"]).into_iter().chain(default).collect(),
    })
}

fn target(value: &Value) -> Result<Target> {
    let kind = words(&value["kind"]).into_iter().next().context("a target has a kind")?;
    let required_features = words(&value["required-features"]);
    Ok(Target { name: word(value, "name")?, kind, required_features })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("no list `{key}`"))
}

fn word(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().with_context(|| format!("no text `{key}`"))?.to_owned())
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
