//! The file that a recording is written to.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write as _};

use super::system::{self, File, Identity, Maybe};
use crate::profile::format::MAGIC;

/// The longest path, with the zero at its end.
pub(super) const PATH_BYTES: usize = 4096;

/// The reason why a recording could not begin or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The system refused it, with this number.
    System(c_int),
    /// What is at the path is no recording, and is not replaced.
    Other,
    /// The file beside the path is there already.
    Taken,
    /// The program is about to restrict its system calls (seccomp).
    Restricted,
    /// The path is too long, or the working directory is not known.
    Path,
    /// The file would be longer than its limit.
    Limit,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::System(libc::ENOSPC) => f.write_str("no space left on the device"),
            Self::System(libc::EDQUOT) => f.write_str("the quota of the disk is used up"),
            Self::System(libc::EFBIG) => f.write_str("this process may write no longer file"),
            Self::System(libc::ENOENT) => f.write_str("no such folder"),
            Self::System(libc::EACCES) => f.write_str("permission denied"),
            Self::System(number) => write!(f, "error {number} of the system"),
            Self::Other => f.write_str("what is there is no recording, and is not replaced"),
            Self::Taken => f.write_str(
                "the file of that name and `.part` is there: another process writes it, or was killed while it did",
            ),
            Self::Restricted => f.write_str("it is about to restrict its system calls"),
            Self::Path => f.write_str("the path is too long"),
            Self::Limit => f.write_str("the file has reached its limit, which `limit=1GiB` sets"),
        }
    }
}

/// Returns a path up to its zero.
fn text(path: &[u8; PATH_BYTES]) -> Result<&CStr, Stop> {
    CStr::from_bytes_until_nul(path).map_err(|_| Stop::Path)
}

/// A text in place, cut off where it would be too long.
pub(super) struct Line<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Line<N> {
    pub(super) fn new() -> Self {
        Self { bytes: [0; N], used: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Returns whether all of it fitted.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let fitting = bytes.len().min(room.len());
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.used += fitting;
        fitting == bytes.len()
    }
}

impl<const N: usize> fmt::Write for Line<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// The file, and how to get it back. All fields begin as zeros.
pub(super) struct Output {
    /// As it was asked for, made absolute.
    path: [u8; PATH_BYTES],
    /// The same with `.part` behind it, as long as the recording runs.
    part: [u8; PATH_BYTES],
    file: Maybe<(File, Identity)>,
    errors: Maybe<Identity>,
    /// Bytes that were written. All are whole blocks.
    written: u64,
    limit: u64,
}

impl Output {
    /// Makes the file beside its path. What is at the path stays there until the recording ends.
    #[inline(never)]
    pub(super) fn open(&mut self, path: &[u8], limit: u64) -> Result<(), Stop> {
        (self.written, self.limit) = (0, limit);
        if let Some(errors) = system::errors() {
            self.errors.set(errors);
        }
        let mut line = Line::<PATH_BYTES>::new();
        let mut fits = true;
        if !path.starts_with(b"/") {
            let mut folder = [0; PATH_BYTES];
            let length = system::working_directory(&mut folder).ok_or(Stop::Path)?;
            fits &= line.push(folder.get(..length).unwrap_or_default()) && line.push(b"/");
        }
        fits &= line.push(path);
        self.path = line.bytes;
        fits &= line.push(b".part");
        self.part = line.bytes;
        // The zero at its end.
        if !fits || !line.push(&[0]) || path.is_empty() || path.contains(&0) {
            return Err(Stop::Path);
        }
        self.replaces()?;
        let file = File::create(text(&self.part)?).map_err(|number| match number {
            libc::EEXIST => Stop::Taken,
            number => Stop::System(number),
        })?;
        let identity = file.identity().ok_or(Stop::System(libc::EBADF))?;
        self.file.set((file, identity));
        Ok(())
    }

    /// Returns whether a recording or trace is at the path. What else is there is not replaced.
    fn replaces(&self) -> Result<bool, Stop> {
        let path = text(&self.path)?;
        let Some(is_file) = system::is_file(path) else { return Ok(false) };
        let file = File::open(path).filter(|_| is_file).ok_or(Stop::Other)?;
        let mut magic = [0; MAGIC.len()];
        file.read_at(&mut magic, 0);
        file.close();
        if magic == MAGIC { Ok(true) } else { Err(Stop::Other) }
    }

    /// Returns whether one block more may follow after one of `bytes`, so that the end of the
    /// recording has its place.
    pub(super) fn has_room(&self, bytes: usize, reserve: usize) -> bool {
        self.written + (bytes + reserve) as u64 <= self.limit
    }

    /// Writes a whole block. When that fails, the file is as it was before.
    pub(super) fn write(&mut self, block: &[u8]) -> Result<(), Stop> {
        let Some((file, identity)) = self.file.get() else { return Err(Stop::System(libc::EBADF)) };
        let mut file = file;
        if file.identity() != Some(identity) {
            // The program has closed all files, and perhaps opened others.
            self.file.take();
            file = File::reopen(text(&self.part)?).map_err(Stop::System)?;
            if file.identity() != Some(identity) {
                file.close();
                return Err(Stop::System(libc::EBADF));
            }
            self.file.set((file, identity));
        }
        if self.written + block.len() as u64 > system::longest_file() {
            return Err(Stop::System(libc::EFBIG));
        }
        if let Err(number) = file.write(block) {
            file.truncate(self.written);
            return Err(Stop::System(number));
        }
        self.written += block.len() as u64;
        Ok(())
    }

    /// Closes the file, if its number is still its own.
    pub(super) fn close(&mut self) {
        if let Some((file, identity)) = self.file.take()
            && file.identity() == Some(identity)
        {
            file.close();
        }
    }

    /// Closes the file, and gives it its name, if it is still the recording's.
    pub(super) fn finish(&mut self) {
        let identity = self.file.get().map(|(_, identity)| identity);
        self.close();
        let (Ok(part), Ok(path)) = (text(&self.part), text(&self.path)) else { return };
        let renamed = self.replaces().and_then(|replaces| {
            system::rename(part, identity, path, replaces).map_err(|number| match number {
                libc::EEXIST => Stop::Other,
                number => Stop::System(number),
            })
        });
        if let Err(reason) = renamed {
            self.say("the recording keeps `.part` behind its name", reason);
        }
    }

    /// Closes and deletes the file: the recording did not begin.
    pub(super) fn delete(&mut self) {
        self.close();
        if let Ok(part) = text(&self.part) {
            system::delete(part);
        }
    }

    /// Says what became of the recording, and why.
    pub(super) fn say(&self, what: &str, reason: Stop) {
        let path = text(&self.path).map(CStr::to_bytes).unwrap_or_default();
        let mut line = Line::<512>::new();
        let _ = write!(line, "buftrace: {what}: ");
        line.push(path.get(..path.len().min(300)).unwrap_or_default());
        let _ = writeln!(line, ": {reason}");
        system::say(line.bytes(), self.errors.get());
    }
}
