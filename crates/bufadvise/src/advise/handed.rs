//! Traffic on its way to child processes: flat numbers in a file.
//!
//! A child that decoded the trace itself would measure its candidate's memory in a heap that has
//! megabytes of free and resident memory left over. So it reads numbers into vectors of the right
//! size, and frees none of them.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::traffic::{Act, Buffer, Traffic};

/// The first number of such a file.
const MAGIC: u32 = 0x6275_6661;

/// A file with traffic, which is deleted in the end. On Linux it has no name from the start: a
/// process that is killed leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Handed {
    path: PathBuf,
    /// Keeps the file there.
    file: File,
}

impl Handed {
    /// Writes the traffic to a file of this process.
    ///
    /// # Errors
    ///
    /// When that file cannot be written.
    pub(crate) fn write(traffic: &Traffic, name: &str) -> Result<Self> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        // ORDER: Relaxed: it only makes names that differ.
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("bufadvise-{}-{count}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let write = || -> io::Result<Self> {
            let handed = Self { file: File::create_new(&path)?, path: path.clone() };
            let handed = handed.without_name()?;
            let mut file = BufWriter::new(&handed.file);
            let mut put = |number: u32| file.write_all(&number.to_le_bytes());
            put(MAGIC)?;
            for count in [traffic.threads, traffic.buffers.len(), traffic.acts.len()] {
                put(count as u32)?;
            }
            for buffer in &traffic.buffers {
                [buffer.bytes, buffer.from, buffer.to].into_iter().try_for_each(&mut put)?;
            }
            for (thread, act) in &traffic.acts {
                let (Act::Acquire(number) | Act::Release(number)) = act;
                put(*thread)?;
                put((number << 1) | u32::from(matches!(act, Act::Release(_))))?;
            }
            file.flush()?;
            drop(file);
            Ok(handed)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Deletes its name.
    #[cfg(target_os = "linux")]
    fn without_name(mut self) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        fs::remove_file(&self.path)?;
        self.path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into();
        Ok(self)
    }

    #[cfg(not(target_os = "linux"))]
    fn without_name(self) -> io::Result<Self> {
        Ok(self)
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for Handed {
    fn drop(&mut self) {
        // A file that cannot be deleted stays in the folder for such files.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads traffic that [`Handed::write`] wrote.
///
/// # Errors
///
/// When there is no such file, or it ends too early.
pub(crate) fn read(path: &Path) -> Result<Traffic> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file = BufReader::new(file);
    let mut next = || -> io::Result<u32> {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    ensure!(next()? == MAGIC, "{} has no traffic", path.display());
    let threads = next()? as usize;
    let (buffers, acts) = (next()? as usize, next()? as usize);
    let mut traffic = Traffic {
        acts: Vec::with_capacity(acts),
        at_ns: Vec::new(),
        buffers: Vec::with_capacity(buffers),
        threads,
        left_out: 0,
    };
    for _ in 0..buffers {
        traffic.buffers.push(Buffer { bytes: next()?, from: next()?, to: next()? });
    }
    for _ in 0..acts {
        let (thread, what) = (next()?, next()?);
        let act = if what & 1 == 0 { Act::Acquire(what >> 1) } else { Act::Release(what >> 1) };
        traffic.acts.push((thread, act));
    }
    Ok(traffic)
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::random;
    use super::*;

    #[test]
    fn what_is_read_was_written() {
        let traffic = Traffic::new(&random(3, 500, 5000));
        let handed = Handed::write(&traffic, "test").expect("a file");
        let read_again = read(handed.path()).expect("the same");
        assert_eq!((read_again.acts, read_again.buffers), (traffic.acts, traffic.buffers));
        let path = handed.path().to_owned();
        drop(handed);
        assert!(!path.exists(), "the file is deleted");
        assert!(read(&path).is_err());
    }
}
