//! The file of tensors.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use buftrials::words;

/// The number of tensors, all of the same size.
pub const TENSORS: usize = 16;

/// The file, and what it has.
#[derive(Debug, Clone)]
pub struct Tensors {
    /// Where it is.
    pub path: PathBuf,
    /// The bytes of all tensors.
    pub bytes: u64,
}

impl Tensors {
    /// The file at `path` of so many bytes, which is written if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn at(path: &Path, bytes: u64) -> Result<Self> {
        words::prepare(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Where a tensor begins, and the one before ends.
    #[must_use]
    pub fn start(&self, tensor: usize) -> u64 {
        self.bytes / TENSORS as u64 * tensor as u64
    }

    /// What the words of a tensor sum up to.
    #[must_use]
    pub fn sum(&self, tensor: usize) -> u64 {
        words::sum_of(self.start(tensor)..self.start(tensor + 1))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// When it cannot be opened so: some file systems know no direct reads.
    pub fn file(&self, direct: bool) -> Result<File> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
        file.with_context(|| format!("cannot open {} (direct: {direct})", self.path.display()))
    }

    /// Brings it into the page cache.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn warm(&self) -> Result<()> {
        std::io::copy(&mut self.file(false)?, &mut std::io::sink())?;
        Ok(())
    }
}
