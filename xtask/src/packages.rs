//! What `cargo metadata` says about this workspace's packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Whether it goes to a registry.
    pub(crate) published: bool,
    /// Its folder.
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
    /// Whether docs.rs is told to show all features.
    pub(crate) documents_all: bool,
    /// Each feature with what it turns on, without those for this workspace alone, whose names begin with `_`.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// Features that bring many crates of others along, as `package.metadata.bufworks.heavy`: left out where minutes count.
    pub(crate) heavy: BTreeSet<String>,
    /// What else the manifest says of the package to these commands: keys that are true in `package.metadata.bufworks`.
    pub(crate) traits: BTreeSet<String>,
    /// The mutant that the package's program has to find, as `package.metadata.bufworks.defect`.
    pub(crate) defect: Option<String>,
    /// How many packages the lock file of a program with this one may have, without the program.
    pub(crate) locks_at_most: Option<u64>,
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
    /// Whether the manifest says so of the package.
    pub(crate) fn is(&self, what: &str) -> bool {
        self.traits.contains(what)
    }

    /// Whether the file, by its path from the root of the workspace, is a source of the package.
    pub(crate) fn has_source(&self, file: &Path) -> bool {
        let is_rust = file.extension().is_some_and(|ending| ending == "rs");
        is_rust && absolute(file).is_ok_and(|file| file.starts_with(self.folder.join("src")))
    }

    /// The integration test of this name.
    pub(crate) fn test(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.kind == "test" && target.name == name)
    }

    /// Whether people install it: it has a program, and its library is that program's.
    pub(crate) fn is_program(&self) -> bool {
        self.targets.iter().any(|target| target.kind == "bin")
    }
}

/// All packages of the workspace, by name.
pub(crate) fn all() -> Result<Vec<Package>> {
    all_of(Path::new("."))
}

/// All packages of the workspace in `folder`, by name.
pub(crate) fn all_of(folder: &Path) -> Result<Vec<Package>> {
    let metadata = MetadataCommand::new().no_deps().current_dir(folder).exec();
    let metadata = metadata.with_context(|| format!("cannot list the packages in {}", folder.display()))?;
    let mut packages: Vec<_> = metadata.packages.into_iter().map(package).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// The packages that go to a registry.
pub(crate) fn published() -> Result<Vec<Package>> {
    let mut packages = all()?;
    packages.retain(|package| package.published);
    Ok(packages)
}

/// What the commands need to know of a package.
fn package(package: cargo_metadata::Package) -> Package {
    let said = &package.metadata["bufworks"];
    let ours = |list: &str| {
        let words = said[list].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str()).map(str::to_owned).collect()
    };
    let is_said = said.as_object().into_iter().flatten().filter(|(_, value)| value.as_bool() == Some(true));
    Package {
        name: package.name.to_string(),
        // `None` is any registry, an empty list is none.
        published: package.publish.is_none_or(|registries| !registries.is_empty()),
        folder: package.manifest_path.parent().map(Into::into).unwrap_or_default(),
        version: package.version.to_string(),
        documents_all: package.metadata["docs"]["rs"]["all-features"] == true,
        heavy: ours("heavy"),
        traits: is_said.map(|(key, _)| key.clone()).collect(),
        defect: said["defect"].as_str().map(str::to_owned),
        locks_at_most: said["locks-at-most"].as_u64(),
        features: package.features.into_iter().filter(|(name, _)| !name.starts_with('_')).collect(),
        dependencies: package.dependencies.into_iter().map(dependency).collect(),
        targets: package.targets.into_iter().map(target).collect(),
    }
}

fn dependency(dependency: cargo_metadata::Dependency) -> Dependency {
    Dependency {
        name: dependency.name,
        version: dependency.req.to_string(),
        is_dev: dependency.kind == DependencyKind::Development,
        has_path: dependency.path.is_some(),
    }
}

fn target(target: cargo_metadata::Target) -> Target {
    let kind = target.kind.first().map(ToString::to_string).unwrap_or_default();
    Target { name: target.name, kind, required_features: target.required_features }
}
