//! The library that records: it is inside of this program, and in memory while a program starts.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process;

use anyhow::{Context, Result, ensure};
use rustix::fs::{MemfdFlags, memfd_create};

/// Built by `build.rs`; empty where it could not be.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libbufpreload.so"));

/// The library, as a file without a name in a folder.
#[derive(Debug)]
pub(super) struct Library(File);

impl Library {
    pub(super) fn new() -> Result<Self> {
        ensure!(
            !LIBRARY.is_empty(),
            "this program was built without the library that records: cargo's warning said why"
        );
        let memory = memfd_create("libbufpreload.so", MemfdFlags::CLOEXEC);
        let mut file = File::from(memory.context("no memory for the library that records")?);
        file.write_all(LIBRARY).context("no memory for the library that records")?;
        Ok(Self(file))
    }

    /// Returns what `LD_PRELOAD` is to be: this library, then those that are there already.
    pub(super) fn preload(&self) -> OsString {
        let mut all = OsString::from(format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd()));
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            all.push(":");
            all.push(others);
        }
        all
    }
}
