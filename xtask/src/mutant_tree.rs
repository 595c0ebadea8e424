//! A copy of the workspace's sources in which known defects are built: what is built of it stays, since only files that differ are
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that hold no sources: what was built, and what is kept in the root beside them.
const BUILT: &str = "target";
const BESIDE: [&str; 2] = ["./.git", "./shared"];

/// The copy.
#[derive(Debug)]
pub(crate) struct MutantTree {
    root: PathBuf,
    /// The files that have a defect, by their paths from the root.
    changed: BTreeSet<PathBuf>,
}

impl MutantTree {
    /// Makes the copy in `root`, or brings it up to date.
    pub(crate) fn at(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        let root = fs::canonicalize(root)?;
        follow(Path::new("."), &root)?;
        Ok(Self { root, changed: BTreeSet::new() })
    }

    /// Where it is.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Puts in `files`, by their paths from the root, instead of those that were put in before.
    ///
    /// Every file that changes is new for cargo: it gets the time of now, also when it gets back what was in it.
    pub(crate) fn put(&mut self, files: Vec<(PathBuf, String)>) -> Result<()> {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        let mut files: BTreeMap<PathBuf, String> = files.into_iter().collect();
        let now = files.keys().cloned().collect();
        for path in &self.changed {
            if !files.contains_key(path) {
                files.insert(path.clone(), read(path)?);
            }
        }
        for (path, text) in files {
            let path = self.root.join(path);
            if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        self.changed = now;
        Ok(())
    }
}

/// Makes the folder `to` like `from`: writes what differs, and removes what is not there any more.
fn follow(from: &Path, to: &Path) -> Result<()> {
    let mut names = BTreeSet::new();
    for entry in list(from)? {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let target = to.join(&name);
        if kind.is_dir() && name != BUILT && !BESIDE.iter().any(|beside| entry.path() == Path::new(beside)) {
            if !target.is_dir() {
                fs::create_dir(&target).with_context(|| format!("cannot make {}", target.display()))?;
            }
            follow(&entry.path(), &target)?;
        } else if kind.is_file() {
            let text = fs::read(entry.path())?;
            if fs::read(&target).ok().as_ref() != Some(&text) {
                fs::copy(entry.path(), &target)
                    .with_context(|| format!("cannot write {}", target.display()))?;
            }
        }
        names.insert(name);
    }
    for entry in list(to)?.into_iter().filter(|entry| !names.contains(&entry.file_name())) {
        // Outputs of builds in the copy stay.
        if entry.file_name() == BUILT {
            continue;
        }
        let path = entry.path();
        let removed =
            if entry.file_type()?.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    fs::read_dir(folder)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot list {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_differs_is_copied_and_nothing_else() {
        let folder = env::temp_dir().join(format!("xtask-copied-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("src/target")).unwrap();
        fs::create_dir_all(to.join("gone")).unwrap();
        let write = |path: &str, text: &str| fs::write(from.join(path), text).unwrap();
        let read = |path: &str| fs::read_to_string(to.join(path)).ok();
        write("src/a", "a");
        write("src/target/b", "built");
        follow(&from, &to).unwrap();
        assert_eq!((read("src/a").as_deref(), read("src/target/b")), (Some("a"), None));
        assert!(!to.join("gone").exists());

        let old = SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(to.join("src/a")).unwrap().set_modified(old).unwrap();
        let modified = || fs::metadata(to.join("src/a")).unwrap().modified().unwrap();
        follow(&from, &to).unwrap();
        assert_eq!(modified(), old, "written again, though nothing had changed");
        write("src/a", "b");
        follow(&from, &to).unwrap();
        assert_eq!(read("src/a").as_deref(), Some("b"));
        assert_ne!(modified(), old);
        fs::remove_dir_all(&folder).unwrap();
    }
}
