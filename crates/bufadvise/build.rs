//! Builds the library that records, which `bufadvise` has inside, from `preload` and the package
//! `buftrace` beside this one: in a checkout, or in the sources of a registry.
//!
//! Where that fails, `bufadvise` is built without: it says so when it is asked to record.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const NAME: &str = "libbufpreload.so";
/// What cargo tells this script, and is not to hold for the library.
const NOT_INHERITED: [&str; 4] =
    ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"];

fn main() -> Result<(), Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let built = PathBuf::from(env::var("OUT_DIR")?).join(NAME);
    println!("cargo::rerun-if-changed=preload");
    fs::write(&built, [])?;
    let is_wanted = env::var("CARGO_CFG_TARGET_OS")? == "linux"
        && ["DOCS_RS", "CARGO_CFG_MIRI"].iter().all(|name| env::var_os(name).is_none());
    if is_wanted && let Err(error) = build(&own, &built) {
        println!("cargo::warning=built without the recorder of `bufadvise record`: {error}");
    }
    Ok(())
}

/// Returns the folder of a package of this version: beside this one it has its name, and in a
/// registry its version too.
fn sibling(own: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = own.parent().ok_or("this package is in no folder")?;
    let names = [name.to_owned(), format!("{name}-{}", env::var("CARGO_PKG_VERSION")?)];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.join("Cargo.toml").is_file());
    found.ok_or_else(|| format!("no {name} beside {}", own.display()).into())
}

fn build(own: &Path, built: &Path) -> Result<(), Box<dyn Error>> {
    let (buftrace, bufcore) = (sibling(own, "buftrace")?, sibling(own, "bufcore")?);
    println!("cargo::rerun-if-changed={}", buftrace.join("src").display());
    let folder = built.with_extension("build");
    fs::create_dir_all(&folder)?;
    let manifest = format!(
        "[package]\nname = \"bufpreload\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = {:?}\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\nbuftrace = {{ path = {buftrace:?}, features = [\"heap\"] }}\nlibc = \"0.2\"\n\
         [patch.crates-io]\nbufcore = {{ path = {bufcore:?} }}\n\
         [profile.release]\nstrip = \"debuginfo\"\n[workspace]\n",
        own.join("preload/lib.rs"),
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let (host, target) = (env::var("HOST")?, env::var("TARGET")?);
    let mut command = Command::new(env::var("CARGO")?);
    // What this package needs was fetched for it, and is all that the library needs.
    command.args(["build", "--quiet", "--release", "--offline", "--target-dir"]).arg(folder.join("target"));
    command.arg("--manifest-path").arg(folder.join("Cargo.toml")).current_dir(own);
    NOT_INHERITED.iter().for_each(|name| {
        command.env_remove(name);
    });
    let mut release = folder.join("target");
    if target != host {
        command.args(["--target", &target]);
        release.push(&target);
    }
    let output = command.output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(errors.split_whitespace().collect::<Vec<_>>().join(" ").into());
    }
    fs::copy(release.join("release").join(NAME), built)?;
    Ok(())
}
