//! The file of tensors: words that tell their place, so that whoever reads them knows what they have
//! to be.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

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

/// What the file has at an offset, a multiple of 8.
#[must_use]
pub fn word(offset: u64) -> u64 {
    (offset / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The sum of the words in `bytes`, a multiple of 8.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.fold(0, u64::wrapping_add)
}

impl Tensors {
    /// The file at `path` of about `mib` MiB, which is written if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn at(path: &Path, mib: u64) -> Result<Self> {
        let bytes = mib << 20;
        if !path.metadata().is_ok_and(|file| file.len() == bytes) {
            Self::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Self::open(path)
    }

    /// The file as it is.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { path: path.to_owned(), bytes: file.len() })
    }

    fn write(path: &Path, bytes: u64) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for offset in (0..bytes).step_by(8) {
            file.write_all(&word(offset).to_le_bytes())?;
        }
        file.into_inner()?.sync_all()?;
        Ok(())
    }

    /// Where a tensor begins, and the one before ends.
    #[must_use]
    pub fn start(&self, tensor: usize) -> u64 {
        self.bytes / TENSORS as u64 * tensor as u64
    }

    /// What the words of a tensor sum up to.
    #[must_use]
    pub fn sum(&self, tensor: usize) -> u64 {
        let offsets = (self.start(tensor)..self.start(tensor + 1)).step_by(8);
        offsets.map(word).fold(0, u64::wrapping_add)
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
