//! The options of a recording: set by a program, or by two environment variables.

use core::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::output::Stop;
use super::recorder;
use crate::profile::format::MAX_FRAMES;

/// From this size on, an allocation is worth a buffer of a pool.
pub(super) const DEFAULT_MIN_BYTES: usize = 512;
/// One sample for this number of requested bytes: the cost of a sample is shared by some thousand
/// requests.
pub(super) const DEFAULT_RATE_BYTES: u64 = 1 << 20;
/// The number of frames of a call stack.
pub(super) const DEFAULT_DEPTH: usize = 24;
/// The longest file.
pub(super) const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

/// What is recorded, without where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) min_bytes: usize,
    pub(super) rate_bytes: u64,
    pub(super) depth: usize,
    pub(super) limit_bytes: u64,
}

impl Settings {
    pub(super) const DEFAULT: Self = Self {
        min_bytes: DEFAULT_MIN_BYTES,
        rate_bytes: DEFAULT_RATE_BYTES,
        depth: DEFAULT_DEPTH,
        limit_bytes: DEFAULT_LIMIT_BYTES,
    };

    /// Reads settings such as `min=4KiB,exact`, and returns the one that is wrong.
    pub(super) fn parse(mut self, text: &[u8]) -> Result<Self, Wrong<'_>> {
        for setting in text.split(|byte| *byte == b',').filter(|setting| !setting.is_empty()) {
            let mut parts = setting.splitn(2, |byte| *byte == b'=');
            let (name, value) = (parts.next().unwrap_or_default(), parts.next());
            let bytes = value.and_then(bytes).ok_or(Wrong { setting });
            match (name, value) {
                (b"exact", None) => self.rate_bytes = 0,
                (b"min", _) => self.min_bytes = to_size(bytes?).max(1),
                (b"rate", _) => self.rate_bytes = bytes?,
                (b"depth", _) => self.depth = to_size(bytes?).min(MAX_FRAMES),
                (b"limit", _) => self.limit_bytes = bytes?,
                _ => return Err(Wrong { setting }),
            }
        }
        Ok(self)
    }
}

fn to_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A setting that is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong<'a> {
    pub(super) setting: &'a [u8],
}

/// Reads a number of bytes, such as `512`, `64KiB`, `64K` or `1MiB`.
fn bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits)?;
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    let shift = match unit {
        b"" | b"B" => 0,
        b"K" | b"KiB" => 10,
        b"M" | b"MiB" => 20,
        b"G" | b"GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// The settings of a recording of the program's heap.
///
/// [`start`](Self::start) is for programs that choose the moment. For others the environment
/// variable `BUFTRACE` names the file, and recording begins with the first allocation.
/// `BUFTRACE_OPTIONS` may have settings, such as `min=4KiB,rate=128KiB`:
///
/// | setting | as a method |
/// | --- | --- |
/// | `min=512` | [`min_bytes`](Self::min_bytes) |
/// | `rate=1MiB` | [`rate_bytes`](Self::rate_bytes) |
/// | `exact` | [`exact`](Self::exact) |
/// | `depth=24` | [`depth`](Self::depth) |
/// | `limit=1GiB` | [`limit_bytes`](Self::limit_bytes) |
///
/// One process is recorded. It takes both variables out of its environment, so that the programs
/// that it starts are not recorded. A forked child is not recorded either.
///
/// While the recording runs, its file has `.part` behind its name. At the end it is renamed and
/// replaces an older recording. A file that is no recording is not replaced. After a kill,
/// or an `exec`, the file keeps the `.part`, and can be read; it may lack the last second.
///
/// ```
/// use std::alloc::System;
/// use buftrace::{HeapOptions, Profile, RecordingAlloc};
///
/// #[global_allocator]
/// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
///
/// # let path = std::env::temp_dir().join(format!("options-{}.heap", std::process::id()));
/// HeapOptions::new(&path).min_bytes(4096).exact().start()?;
/// let body = Vec::<u8>::with_capacity(64 << 10);
/// drop(body);
/// buftrace::stop_heap_recording();
///
/// let profile = Profile::load(&path)?;
/// assert!(profile.objects().iter().any(|object| object.bytes == 64 << 10));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapOptions {
    path: PathBuf,
    settings: Settings,
}

impl HeapOptions {
    /// Makes the default settings for a recording to the file `path`.
    ///
    /// ```
    /// let options = buftrace::HeapOptions::new("app.heap").rate_bytes(1 << 20);
    /// ```
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), settings: Settings::DEFAULT }
    }

    /// Sets the smallest request that is recorded: 512 bytes by default.
    #[must_use]
    pub fn min_bytes(mut self, bytes: usize) -> Self {
        self.settings.min_bytes = bytes.max(1);
        self
    }

    /// Sets the mean number of requested bytes between two samples: 1 MiB by default. The cost
    /// falls with it, and so does what is known of rare requests. 0 is the same as
    /// [`exact`](Self::exact).
    #[must_use]
    pub fn rate_bytes(mut self, bytes: u64) -> Self {
        self.settings.rate_bytes = bytes;
        self
    }

    /// Records all requests, for tests and short programs.
    #[must_use]
    pub fn exact(self) -> Self {
        self.rate_bytes(0)
    }

    /// Sets how many frames of a call stack are recorded: 24 by default, at most 128. With 0 there
    /// are no stacks.
    #[must_use]
    pub fn depth(mut self, frames: usize) -> Self {
        self.settings.depth = frames.min(MAX_FRAMES);
        self
    }

    /// Sets the longest file: 1 GiB by default. The recording stops there, and the program
    /// continues.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.settings.limit_bytes = bytes;
        self
    }

    /// Starts to record the requests of this process that go through a
    /// [`RecordingAlloc`](crate::RecordingAlloc). An older recording of that name is replaced at the end.
    ///
    /// # Errors
    ///
    /// When a recording is already running, the file cannot be written, or what is there is no
    /// recording.
    ///
    /// ```
    /// let error = buftrace::HeapOptions::new("no-such-folder/app.heap").start().unwrap_err();
    /// assert!(error.to_string().contains("no such folder"), "{error}");
    /// ```
    pub fn start(&self) -> Result<(), HeapError> {
        recorder::start(self.path.as_os_str().as_bytes(), self.settings)
    }
}

/// The reason why a heap recording does not start.
///
/// ```
/// let error = buftrace::HeapOptions::new("no-such-folder/app.heap").start().unwrap_err();
/// println!("{error}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapError(pub(super) Cause);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Running,
    NoMemory,
    Stopped(Stop),
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Running => write!(f, "a heap recording is already running"),
            Cause::NoMemory => write!(f, "no memory for a heap recording"),
            Cause::Stopped(reason) => write!(f, "cannot record the heap: {reason}"),
        }
    }
}

impl core::error::Error for HeapError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_text() {
        let parse = |text: &'static str| Settings::DEFAULT.parse(text.as_bytes());
        assert_eq!(parse(""), Ok(Settings::DEFAULT));
        let all = parse("min=4KiB,rate=64K,depth=7,limit=3GiB").unwrap();
        let expected = Settings { min_bytes: 4096, rate_bytes: 65536, depth: 7, limit_bytes: 3 << 30 };
        assert_eq!(all, expected);
        assert_eq!(parse("exact").unwrap().rate_bytes, 0);
        assert_eq!(parse("min=0,depth=1000").unwrap().depth, MAX_FRAMES);
        for wrong in [
            "min",
            "min=",
            "min=x",
            "min=5KB",
            "min=99999999999999999999",
            "max=1",
            "often=1",
            "exact=1",
            "rate=-1",
        ] {
            let setting = wrong.as_bytes();
            assert_eq!(parse(wrong), Err(Wrong { setting }), "{wrong}");
        }
    }
}
