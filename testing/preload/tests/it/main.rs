//! The library in front of real programs: what they print is as without it, and their requests are
//! in the recording. A program that this machine does not have is left out.
#![cfg(all(target_os = "linux", not(miri)))]

mod process;
mod programs;
mod threads;

use std::env;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use buftrace::Profile;

/// The library, which cargo builds in front of this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("this binary");
    let mut folders = test.ancestors().skip(1).take(2).map(|folder| folder.join("libbufpreload.so"));
    folders.find(|path| path.exists()).expect("the library is built")
}

/// A folder for the files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("bufpreload-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// All recordings in it.
    fn profiles(&self) -> Vec<Profile> {
        let files = fs::read_dir(&self.0).expect("the folder").map(|entry| entry.expect("a file").path());
        let recordings = files.filter(|path| path.to_str().is_some_and(|path| path.contains(".heap")));
        recordings.map(|path| Profile::load(path).expect("a recording")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    let there = env::split_paths(&paths).any(|folder| folder.join(program).exists());
    if !there {
        eprintln!("skipped: no {program} here");
    }
    there
}

/// A path of the library without spaces and colons, which part the paths in `LD_PRELOAD`: that of
/// this workspace may have some, and so may that of temporary files.
fn preloaded() -> String {
    static OPEN: OnceLock<fs::File> = OnceLock::new();
    let open = OPEN.get_or_init(|| fs::File::open(library()).expect("the library is built"));
    format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd())
}

/// The call of a program with the library in front of it.
fn recorded(program: &str, file: &Path, options: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", preloaded()).env("BUFTRACE", file).env("BUFTRACE_OPTIONS", options);
    command
}
