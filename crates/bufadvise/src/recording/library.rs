//! The library that records: found, or built once from the sources that are in this program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anyhow::{Context, Result, ensure};

use crate::print;

/// Its file name.
const NAME: &str = "libbufpreload.so";
/// Names the folder of `buftrace`, where that is not to come from the registry.
const BUFTRACE: &str = "BUFADVISE_BUFTRACE";

/// The sources, by file name.
const SOURCES: [(&str, &str); 4] = [
    ("lib.rs", include_str!("../../preload/lib.rs")),
    ("early.rs", include_str!("../../preload/early.rs")),
    ("process.rs", include_str!("../../preload/process.rs")),
    ("real.rs", include_str!("../../preload/real.rs")),
];
const MANIFEST: &str = include_str!("../../preload/manifest.toml");
/// What stands there for the version of `buftrace`.
const PLACEHOLDER: &str = "version = \"0\"";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A library, by a path that has neither spaces nor colons: these part the paths in `LD_PRELOAD`.
#[derive(Debug)]
pub(super) struct Library {
    path: PathBuf,
    /// A folder of this process alone, where the path is a link.
    folder: Option<PathBuf>,
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What cannot be deleted stays in the folder for such files.
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Library {
    /// Takes the one that is `given`, or that is beside this program, or that was built before, or
    /// builds it.
    pub(super) fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(path) = given {
            return Self::open(path);
        }
        let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join(NAME)));
        let built = folder()?.join(NAME);
        match beside.into_iter().chain([built.clone()]).find(|path| path.is_file()) {
            Some(path) => Self::open(&path),
            None => {
                build(&folder()?)?;
                Self::open(&built)
            }
        }
    }

    fn open(path: &Path) -> Result<Self> {
        let found = fs::canonicalize(path).and_then(|path| File::open(&path).map(|_| path));
        let path = found.with_context(|| format!("cannot open the library {}", path.display()))?;
        let is_plain = |path: &Path| !path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte));
        if is_plain(&path) {
            return Ok(Self { path, folder: None });
        }
        let shared = Some(env::temp_dir()).filter(|folder| is_plain(folder)).unwrap_or_else(|| "/tmp".into());
        let folder = shared.join(format!("bufadvise-{}", process::id()));
        let make = || {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let library = Self { path: folder.join(NAME), folder: Some(folder.clone()) };
            symlink(&path, &library.path)?;
            Ok::<_, std::io::Error>(library)
        };
        make().with_context(|| format!("cannot make {}", folder.display()))
    }

    /// Returns what `LD_PRELOAD` is to be: this library, then those that are there already.
    pub(super) fn preload(&self) -> OsString {
        let mut all = OsString::from(&self.path);
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            all.push(":");
            all.push(others);
        }
        all
    }
}

/// Returns where the library is kept.
fn folder() -> Result<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME says where to keep files")?;
    Ok(cache.join("bufadvise").join(VERSION))
}

/// Builds the library, and puts it into `folder` when it is complete.
fn build(folder: &Path) -> Result<()> {
    print::note(format_args!("The library that records is built once, with cargo, in {}.", folder.display()));
    let sources = folder.join("source");
    fs::create_dir_all(&sources).with_context(|| format!("cannot make {}", sources.display()))?;
    let manifest = manifest(env::var_os(BUFTRACE).as_deref())?;
    for (name, text) in SOURCES.into_iter().chain([("Cargo.toml", &*manifest)]) {
        let path = sources.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = folder.join("target");
    let status = Command::new(&cargo)
        .args(["build", "--release", "--manifest-path"])
        .arg(sources.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .with_context(|| format!("cannot run {}, which builds the library", cargo.display()))?;
    ensure!(
        status.success(),
        "cargo could not build the library that records. Build it elsewhere, and name it by --library"
    );
    // Others may build it at this moment, and one may have been killed while it did.
    let (built, own) = (target.join("release").join(NAME), folder.join(format!("{NAME}.{}", process::id())));
    fs::copy(&built, &own).with_context(|| format!("cannot copy {}", built.display()))?;
    fs::rename(&own, folder.join(NAME)).with_context(|| format!("cannot rename {}", own.display()))?;
    // What is left is of no use.
    let _ = fs::remove_dir_all(&target);
    Ok(())
}

/// Returns the manifest, with `buftrace` from the registry, or from a folder.
fn manifest(buftrace: Option<&OsStr>) -> Result<String> {
    let mut recorder = format!("version = \"{VERSION}\"");
    if let Some(folder) = buftrace {
        let folder = folder.to_str().context("the path of buftrace is not UTF-8")?;
        // A text of JSON is one of TOML too.
        recorder += &format!(", path = {}", serde_json::to_string(folder)?);
    }
    Ok(MANIFEST.replacen(PLACEHOLDER, &recorder, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests() {
        let line = |from: Option<&str>| {
            let text = manifest(from.map(OsStr::new)).unwrap();
            text.lines().find(|line| line.starts_with("buftrace = ")).expect("a dependency").to_owned()
        };
        assert_eq!(line(None), format!("buftrace = {{ version = \"{VERSION}\", features = [\"heap\"] }}"));
        assert!(line(Some("/a \"b")).contains(r#", path = "/a \"b", features"#), "{}", line(Some("/a \"b")));
    }

    #[test]
    fn libraries_that_are_not_there() {
        let error = Library::find(Some(Path::new("/nowhere/lib.so"))).unwrap_err();
        assert_eq!(error.to_string(), "cannot open the library /nowhere/lib.so");
    }
}
