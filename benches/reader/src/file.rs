//! The file: shaped as those of safetensors, with a checksum of each tensor.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

/// Where tensors start, so that direct reads can.
const DATA: u64 = 4096;
const TENSORS: u64 = 16;

/// The file, and what it has.
#[derive(Debug, Clone)]
pub struct Tensors {
    /// Where it is.
    pub path: PathBuf,
    /// Where the bytes of the first tensor are.
    pub start: u64,
    /// The bytes of all tensors.
    pub bytes: u64,
    /// The end of each tensor, from `start` on, and its checksum.
    pub sums: Vec<(u64, u64)>,
}

/// What the file has at an offset of its tensors, a multiple of 8.
#[must_use]
pub fn word(offset: u64) -> u64 {
    (offset / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The sum of the words in `bytes`, a multiple of 8.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    words.fold(0, u64::wrapping_add)
}

impl Tensors {
    /// The file at `path` of about `mib` MiB of tensors, which is written if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be written or read.
    pub fn at(path: &Path, mib: u64) -> Result<Self> {
        if let Ok(found) = Self::open(path)
            && found.bytes == mib << 20
        {
            return Ok(found);
        }
        Self::write(path, mib << 20).with_context(|| format!("cannot write {}", path.display()))?;
        Self::open(path)
    }

    /// Reads the header.
    ///
    /// # Errors
    ///
    /// When it is not such a file.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut len = [0; 8];
        file.read_exact(&mut len)?;
        let len = u64::from_le_bytes(len);
        ensure!(len <= 1 << 20, "a header of {len} bytes");
        let mut header = vec![0; len as usize];
        file.read_exact(&mut header)?;
        let header: Map<String, Value> = serde_json::from_slice(&header)?;
        let mut sums = Vec::new();
        for (name, tensor) in header.iter().filter(|(name, _)| *name != "__metadata__") {
            let end = tensor["data_offsets"][1].as_u64().context("a tensor has an end")?;
            let sum = header["__metadata__"][name].as_str().context("a tensor has a checksum")?;
            sums.push((end, sum.parse()?));
        }
        sums.sort_unstable();
        let bytes = sums.last().context("there is a tensor")?.0;
        ensure!(file.metadata()?.len() == 8 + len + bytes, "the file is cut off");
        Ok(Self { path: path.to_owned(), start: 8 + len, bytes, sums })
    }

    fn write(path: &Path, bytes: u64) -> Result<()> {
        let each = bytes / TENSORS;
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        file.seek(SeekFrom::Start(DATA))?;
        let mut header = Map::new();
        let mut sums = Map::new();
        for at in 0..TENSORS {
            let (from, to) = (at * each, (at + 1) * each);
            let mut sum = 0_u64;
            for offset in (from..to).step_by(8) {
                sum = sum.wrapping_add(word(offset));
                file.write_all(&word(offset).to_le_bytes())?;
            }
            let name = format!("layer.{at}.weight");
            header.insert(name.clone(), json!({"dtype": "U8", "shape": [each], "data_offsets": [from, to]}));
            sums.insert(name, json!(sum.to_string()));
        }
        header.insert("__metadata__".to_owned(), Value::Object(sums));
        let mut header = serde_json::to_vec(&header)?;
        ensure!(header.len() as u64 <= DATA - 8, "the header has {} bytes", header.len());
        header.resize((DATA - 8) as usize, b' ');
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        file.into_inner()?.sync_all()?;
        Ok(())
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
        let mut file = self.file(false)?;
        let mut bytes = vec![0; 1 << 20];
        while file.read(&mut bytes)? > 0 {}
        Ok(())
    }
}
