//! The memory pressure of the system.

mod cgroup;
mod source;

pub use self::source::PressureSource;

/// The share of time, in percent, for which some task waited for memory, from which the pressure is
/// medium: that of Android's low-memory daemon, 100 ms of a second.
const SOME_PERCENT: f32 = 10.0;
/// The share of time for which all tasks waited, from which it is high: likewise, 70 ms of a
/// second.
const FULL_PERCENT: f32 = 7.0;
/// The share of a limit, in percent, from which the pressure is medium: that of .NET's pool.
const MEDIUM_PERCENT: u64 = 70;
/// From which it is high: likewise.
const HIGH_PERCENT: u64 = 90;

/// The memory pressure of the system, for the calling process.
///
/// A part that the system does not report is `None`. On systems other than Linux and Android both
/// parts are.
///
/// A program can act on it too: it can reject work, or shrink its own caches.
///
/// ```
/// use bufkeeper::{Pressure, PressureLevel};
///
/// let pressure = Pressure::read();
/// if let Some(memory) = pressure.memory {
///     println!("{} of {} bytes are used", memory.used_bytes, memory.limit_bytes);
/// }
/// let accepts_more = pressure.level() < PressureLevel::High;
/// # let _ = accepts_more;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Pressure {
    /// The time that was lost to memory stalls: the larger values of the process's control group
    /// and of the whole system (pressure stall information, PSI).
    pub stall: Option<Stall>,
    /// Use and limit of the control group of the process that is nearest to its limit: its own, or
    /// an ancestor.
    pub memory: Option<MemoryUse>,
}

/// The time that was lost to memory stalls, in percent of the last ten seconds.
///
/// ```
/// use bufkeeper::Stall;
///
/// let mut stall = Stall::default();
/// stall.some_percent = 12.5; // some task waited for an eighth of the time
/// assert!(stall.full_percent < stall.some_percent);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Stall {
    /// The time in which at least one task waited for memory, from 0 to 100.
    pub some_percent: f32,
    /// The time in which all runnable tasks waited for memory, from 0 to 100.
    pub full_percent: f32,
}

/// The memory that a control group uses, and its limit, in bytes.
///
/// ```
/// use bufkeeper::MemoryUse;
///
/// let mut memory = MemoryUse::default();
/// (memory.used_bytes, memory.limit_bytes) = (96 << 20, 128 << 20);
/// assert_eq!(memory.percent(), 75);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes in use, without those of files that were not read recently: the system reclaims those
    /// first.
    pub used_bytes: u64,
    /// The lowest of the limits: `memory.high`, from which the system slows the group down, and
    /// `memory.max`.
    pub limit_bytes: u64,
}

/// The memory pressure of the system, as one level.
///
/// The levels are ordered.
///
/// ```
/// use bufkeeper::PressureLevel;
///
/// assert!(PressureLevel::Low < PressureLevel::High);
/// assert!(PressureLevel::Unknown < PressureLevel::Medium); // nothing is done about either
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum PressureLevel {
    /// The system does not report it.
    #[default]
    Unknown,
    /// There is enough.
    Low,
    /// Some tasks waited for memory for a tenth of the time, or 70 % of a limit are used.
    Medium,
    /// All tasks waited for memory for 7 % of the time, or 90 % of a limit are used.
    High,
}

impl Pressure {
    /// Reads the memory pressure on the calling process.
    ///
    /// Cost: about twenty system calls. Reusing a [`PressureSource`] saves half of them.
    #[inline]
    #[must_use]
    pub fn read() -> Self {
        PressureSource::system().read()
    }

    /// Returns the higher of the levels of the two parts.
    ///
    /// ```
    /// use bufkeeper::{MemoryUse, Pressure, PressureLevel};
    ///
    /// let mut pressure = Pressure::default();
    /// assert_eq!(pressure.level(), PressureLevel::Unknown);
    /// let mut memory = MemoryUse::default();
    /// (memory.used_bytes, memory.limit_bytes) = (120 << 20, 128 << 20);
    /// pressure.memory = Some(memory);
    /// assert_eq!(pressure.level(), PressureLevel::High);
    /// ```
    ///
    /// # Source
    ///
    /// - The shares of a limit: `Utilities.GetMemoryPressure` of .NET.
    /// - The shares of time: `psi_thresholds` of Android's `lmkd`.
    #[inline]
    #[must_use]
    pub fn level(&self) -> PressureLevel {
        let stall = self.stall.map_or(PressureLevel::Unknown, |stall| stall.level());
        let memory = self.memory.map_or(PressureLevel::Unknown, |memory| memory.level());
        stall.max(memory)
    }
}

impl Stall {
    #[inline]
    fn level(self) -> PressureLevel {
        if self.full_percent >= FULL_PERCENT {
            PressureLevel::High
        } else if self.some_percent >= SOME_PERCENT {
            PressureLevel::Medium
        } else {
            PressureLevel::Low
        }
    }

    /// Returns the larger numbers of both.
    #[inline]
    fn or(self, other: Self) -> Self {
        Self {
            some_percent: self.some_percent.max(other.some_percent),
            full_percent: self.full_percent.max(other.full_percent),
        }
    }
}

impl MemoryUse {
    /// Returns the used share of the limit, in percent. It is over 100 while the system lets the
    /// group exceed its limit, and 100 for a limit of 0 bytes.
    #[inline]
    #[must_use]
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.used_bytes) * 100;
        let percent = percent.checked_div(u128::from(self.limit_bytes)).unwrap_or(100);
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    #[inline]
    fn level(self) -> PressureLevel {
        match self.percent() {
            HIGH_PERCENT.. => PressureLevel::High,
            MEDIUM_PERCENT.. => PressureLevel::Medium,
            _ => PressureLevel::Low,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        let stalled = |some_percent, full_percent| Stall { some_percent, full_percent }.level();
        assert_eq!(stalled(9.99, 6.99), PressureLevel::Low);
        assert_eq!(stalled(10.0, 0.0), PressureLevel::Medium);
        assert_eq!(stalled(10.0, 7.0), PressureLevel::High);
        let used = |used_bytes, limit_bytes| MemoryUse { used_bytes, limit_bytes };
        assert_eq!(used(69, 100).level(), PressureLevel::Low);
        assert_eq!(used(70, 100).level(), PressureLevel::Medium);
        assert_eq!(used(90, 100).level(), PressureLevel::High);
        assert_eq!(used(0, 0).level(), PressureLevel::High);
        assert_eq!(used(u64::MAX, 1).percent(), u64::MAX);
        let both = Pressure { stall: Some(Stall::default()), memory: Some(used(95, 100)) };
        assert_eq!(both.level(), PressureLevel::High);
        assert_eq!(Pressure { memory: None, ..both }.level(), PressureLevel::Low);
    }
}
