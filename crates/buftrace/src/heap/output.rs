//! The file that a recording is written to.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write as _};

use super::system::{self, File, Identity, Maybe};

/// The longest path, with the zero at its end.
pub(super) const PATH_BYTES: usize = 4096;

/// The reason why a recording could not begin or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The system refused it, with this number.
    System(c_int),
    /// The file is a pipe or a socket.
    Pipe,
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
            Self::Pipe => f.write_str("a pipe or a socket, where a file was expected"),
            Self::Path => f.write_str("the path is too long"),
            Self::Limit => f.write_str("the file has reached its limit"),
        }
    }
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
    /// As it was asked for, made absolute; `%p` in it stands for the process.
    template: [u8; PATH_BYTES],
    template_bytes: usize,
    path: [u8; PATH_BYTES],
    file: Maybe<(File, Identity)>,
    errors: Maybe<Identity>,
    /// Bytes that were written. All are whole blocks.
    written: u64,
    limit: u64,
}

impl Output {
    /// Sets where to write, and opens it later.
    pub(super) fn set(&mut self, path: &[u8], limit: u64) -> Result<(), Stop> {
        let mut template = Line::<PATH_BYTES>::new();
        let mut fits = true;
        if !path.starts_with(b"/") {
            let mut folder = [0; PATH_BYTES];
            let length = system::working_directory(&mut folder).ok_or(Stop::Path)?;
            fits &= template.push(folder.get(..length).unwrap_or_default()) && template.push(b"/");
        }
        fits &= template.push(path);
        if !fits || path.is_empty() || path.contains(&0) {
            return Err(Stop::Path);
        }
        (self.template, self.template_bytes) = (template.bytes, template.used);
        self.limit = limit;
        if let Some(errors) = system::errors() {
            self.errors.set(errors);
        }
        Ok(())
    }

    /// Opens the file, emptied. A process that was forked has a name of its own, and so has one
    /// whose file another process writes at the moment: the process' number is put behind the
    /// path.
    pub(super) fn open(&mut self, is_child: bool) -> Result<(), Stop> {
        self.written = 0;
        let process = system::process();
        let named = self.name(process, is_child)?;
        let mut file = self.create()?;
        if !file.lock() {
            file.close();
            if named {
                return Err(Stop::System(libc::EBUSY));
            }
            self.name(process, true)?;
            file = self.create()?;
            file.lock();
        }
        let Some((identity, is_pipe)) = file.identity() else { return Err(Stop::System(libc::EBADF)) };
        if is_pipe {
            file.close();
            return Err(Stop::Pipe);
        }
        file.truncate(0);
        self.file.set((file, identity));
        Ok(())
    }

    fn create(&self) -> Result<File, Stop> {
        let path = CStr::from_bytes_until_nul(&self.path).map_err(|_| Stop::Path)?;
        File::create(path).map_err(Stop::System)
    }

    /// Makes the path, and returns whether the process is in it.
    fn name(&mut self, process: u64, must: bool) -> Result<bool, Stop> {
        let mut path = Line::<PATH_BYTES>::new();
        let template = self.template.get(..self.template_bytes).unwrap_or_default();
        let (mut rest, mut named) = (template, false);
        while let Some((byte, behind)) = rest.split_first() {
            if let Some(behind) = rest.strip_prefix(b"%p") {
                let _ = write!(path, "{process}");
                (rest, named) = (behind, true);
            } else {
                path.push(&[*byte]);
                rest = behind;
            }
        }
        if must && !named {
            let _ = write!(path, ".{process}");
            named = true;
        }
        // The zero at its end.
        if !path.push(&[0]) {
            return Err(Stop::Path);
        }
        self.path = path.bytes;
        Ok(named)
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
        if file.identity().is_none_or(|(now, _)| now != identity) {
            // The program has closed all files, and perhaps opened others.
            file = self.again(identity)?;
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

    fn again(&mut self, identity: Identity) -> Result<File, Stop> {
        self.file.take();
        let file = self.create()?;
        if file.identity().is_none_or(|(now, _)| now != identity) {
            file.close();
            return Err(Stop::System(libc::EBADF));
        }
        self.file.set((file, identity));
        Ok(file)
    }

    /// Closes the file, if its number is still its own.
    pub(super) fn close(&mut self) {
        if let Some((file, identity)) = self.file.take()
            && file.identity().is_some_and(|(now, _)| now == identity)
        {
            file.close();
        }
    }

    /// Says that the recording ended, and why.
    pub(super) fn say(&self, reason: Stop) {
        let path = CStr::from_bytes_until_nul(&self.path).map(CStr::to_bytes).unwrap_or_default();
        let mut line = Line::<512>::new();
        let _ = line.write_str("buftrace: the recording stops, the program continues: ");
        line.push(path.get(..path.len().min(300)).unwrap_or_default());
        let _ = writeln!(line, ": {reason}");
        system::say(line.bytes(), self.errors.get());
    }
}
