//! Where the pressure is read.

use alloc::vec::Vec;
use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::{self, Group};
use super::{MemoryUse, Pressure, Stall};

/// The files from which the memory pressure is read.
///
/// The files are located when it is made, and read on each call. After a move to another control
/// group, a process must make a new one.
///
/// ```
/// use bufkeeper::{Pressure, PressureSource};
///
/// let source = PressureSource::system();
/// for _ in 0..2 {
///     println!("{:?}", source.read().level());
/// }
/// assert_eq!(PressureSource::none().read(), Pressure::default());
/// ```
#[derive(Clone, Default)]
pub struct PressureSource {
    /// Of the whole system, and of the process's control group.
    stalls: Vec<PathBuf>,
    /// The process's control group, and those that contain it.
    groups: Vec<Group>,
}

impl PressureSource {
    /// Locates the system's files. On systems other than Linux and Android there are none.
    ///
    /// Both versions of control groups are supported. So is a container that shows only its own
    /// group.
    #[inline]
    #[must_use]
    pub fn system() -> Self {
        if cfg!(any(target_os = "linux", target_os = "android")) { Self::under("/") } else { Self::none() }
    }

    /// Makes a source without files: the pressure is unknown.
    #[inline]
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Locates the files below `root`, as if that were the root of the file system: for tests, and
    /// for programs that see another system's files.
    ///
    /// It reads `proc/self/cgroup` and `proc/self/mountinfo` there. Later it reads
    /// `proc/pressure/memory`, and the files of the control groups that these two name.
    ///
    /// ```
    /// use std::fs;
    /// use bufkeeper::{PressureLevel, PressureSource};
    ///
    /// let root = std::env::temp_dir().join(format!("bufcore-pressure-{}", std::process::id()));
    /// fs::create_dir_all(root.join("proc/pressure"))?;
    /// let stalls = "some avg10=60.00 avg60=0.00 avg300=0.00 total=0\n\
    ///               full avg10=40.00 avg60=0.00 avg300=0.00 total=0\n";
    /// fs::write(root.join("proc/pressure/memory"), stalls)?;
    /// assert_eq!(PressureSource::under(&root).read().level(), PressureLevel::High);
    /// # fs::remove_dir_all(root)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn under<P: AsRef<Path>>(root: P) -> Self {
        let root = root.as_ref();
        let groups = cgroup::groups(root);
        let own = groups.iter().filter_map(Group::stalls);
        let stalls = own.chain([root.join("proc/pressure/memory")]).collect();
        Self { stalls, groups }
    }

    /// Reads the current memory pressure. A part that cannot be read is `None`.
    ///
    /// Cost: three system calls for each file: one or two files of stall times, and up to four for
    /// each control group with a limit.
    #[inline]
    #[must_use]
    pub fn read(&self) -> Pressure {
        let stalls = self.stalls.iter().filter_map(|path| stall(&fs::read_to_string(path).ok()?));
        let memory = self.groups.iter().filter_map(Group::memory);
        Pressure { stall: stalls.reduce(Stall::or), memory: memory.max_by_key(MemoryUse::percent) }
    }
}

impl fmt::Debug for PressureSource {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PressureSource").field("stalls", &self.stalls).finish_non_exhaustive()
    }
}

/// Reads the averages over ten seconds in a file of stalls.
#[inline]
fn stall(text: &str) -> Option<Stall> {
    let average = |kind| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        let average = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="))?;
        average.parse::<f32>().ok().filter(|percent| percent.is_finite())
    };
    // The whole system's files have no second line on some kernels.
    Some(Stall { some_percent: average("some ")?, full_percent: average("full ").unwrap_or(0.0) })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn stalls() {
        let both = "some avg10=1.25 avg60=9.00 avg300=9.00 total=1\nfull avg10=0.50 avg60=9.00 total=1\n";
        assert_eq!(stall(both), Some(Stall { some_percent: 1.25, full_percent: 0.5 }));
        assert_eq!(stall("some avg10=3.00\n"), Some(Stall { some_percent: 3.0, full_percent: 0.0 }));
        for wrong in ["", "some", "some avg60=1.00", "some avg10=x", "some avg10=nan", "full avg10=1.00"] {
            assert_eq!(stall(wrong), None, "{wrong}");
        }
    }
}
