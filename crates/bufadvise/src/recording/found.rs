//! The recordings that a program left: one of each of its processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use buftrace::{Ending, Profile};

/// The recording of one process.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) path: PathBuf,
    objects: usize,
    /// Requested, by the estimate of the samples.
    pub(super) bytes: u64,
    lost: u64,
    ending: Ending,
}

impl std::fmt::Display for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, objects, lost, .. } = self;
        write!(f, "{}: {objects} objects", path.display())?;
        if *lost > 0 {
            write!(f, ", {lost} lost")?;
        }
        f.write_str(match self.ending {
            Ending::Stopped => "",
            Ending::Limit => "; the file reached its limit while the program continued",
            Ending::Open => "; it has no end: the process was killed, or left without its exit handlers",
            // Torn.
            _ => "; the end of the file is damaged",
        })
    }
}

/// Lists the recordings that were written since `started`: to the path, and of other processes to
/// the path with their numbers behind it.
///
/// # Errors
///
/// When the folder cannot be listed, or one of the files is no recording.
pub(super) fn recordings(output: &Path, started: SystemTime) -> Result<Vec<Recording>> {
    let (folder, name) = (output.parent(), output.file_name());
    let (folder, name) = folder.zip(name).context("the recording has no file name")?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        let other = entry.file_name();
        let rest = other.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let is_one = rest.is_some_and(|rest| match rest {
            [] => true,
            [b'.', number @ ..] => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
            _ => false,
        });
        // Clocks of files are coarse.
        let is_new = |time: SystemTime| time + Duration::from_secs(2) >= started;
        if is_one && entry.metadata().and_then(|of| of.modified()).is_ok_and(is_new) {
            let path = entry.path();
            let profile = Profile::load(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let bytes = profile.objects().iter().map(|object| object.bytes).sum();
            found.push(Recording {
                path,
                objects: profile.objects().len(),
                bytes,
                lost: profile.lost(),
                ending: profile.ending(),
            });
        }
    }
    Ok(found)
}
