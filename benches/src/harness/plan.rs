//! What a workload will ask of an engine, and why one may decline.

use crate::harness::case::size;

/// Why an engine does not serve a case: a sentence for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl<S: Into<String>> From<S> for Unsupported {
    fn from(reason: S) -> Self {
        Self(reason.into())
    }
}

/// How much more memory a pool gets than what the workload has out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// Nothing: requests are of one size.
    None,
    /// A quarter: requests are of different sizes, and memory is short.
    Quarter,
    /// As much again: buffers of different sizes leave holes.
    Twice,
}

/// Whether a pool is made for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// With the settings that suit the plan.
    Planned,
    /// As a program makes it that sets nothing.
    Unset,
    /// The same, but for huge pages.
    HugePages,
}

/// What a workload will ask of a pool, for its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Whether the pool gets settings for it.
    pub settings: Settings,
    /// Most buffers that the workload holds at once.
    pub live: usize,
    /// Buffers that the pool should have room for: `live`, and a few at least, so that a check can
    /// hold several.
    pub room: usize,
    /// The largest request in bytes.
    pub largest: usize,
    /// Most bytes that are out at once, with `room` buffers.
    pub peak_bytes: usize,
    /// How much more than that the pool gets.
    pub spare: Spare,
    /// Bytes that a frame starts with, for those that let it grow from there by reallocating; the
    /// largest size where one may know it.
    pub first_bytes: usize,
}

impl Plan {
    /// Fewest buffers that a pool has room for.
    const LEAST_ROOM: usize = 4;

    /// Up to `live` buffers of `bytes` each.
    #[must_use]
    pub fn equal(live: usize, bytes: usize) -> Self {
        let room = live.max(Self::LEAST_ROOM);
        Self {
            settings: Settings::Planned,
            live,
            room,
            largest: bytes,
            peak_bytes: room * bytes,
            spare: Spare::None,
            first_bytes: bytes,
        }
    }

    /// Up to `live` buffers of up to `largest` bytes, at most `peak_bytes` together.
    #[must_use]
    pub fn mixed(live: usize, largest: usize, peak_bytes: usize) -> Self {
        let room = live.max(Self::LEAST_ROOM);
        Self {
            settings: Settings::Planned,
            live,
            room,
            largest,
            peak_bytes: peak_bytes.max(largest * Self::LEAST_ROOM),
            spare: Spare::Twice,
            first_bytes: largest,
        }
    }

    /// The same with a quarter more than what is out at once, and not with twice as much.
    #[must_use]
    pub fn tight(mut self) -> Self {
        self.spare = Spare::Quarter;
        self
    }

    /// A number of bytes or buffers that are out at once, with what the pool gets beyond it.
    #[must_use]
    pub fn with_spare(&self, out: usize) -> usize {
        match self.spare {
            Spare::None => out,
            Spare::Quarter => out.saturating_add(out.div_ceil(4)),
            Spare::Twice => out.saturating_mul(2),
        }
    }

    /// The same for a pool that is made so.
    #[must_use]
    pub fn with(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The same for frames of which nobody knows beforehand how long they become.
    #[must_use]
    pub fn growing_from(mut self, bytes: usize) -> Self {
        self.first_bytes = bytes;
        self
    }

    /// Bytes that `room` buffers of the largest size take.
    ///
    /// # Errors
    ///
    /// When that is more than a pool of equal buffers may take here.
    pub fn bytes_of_equals(&self) -> Result<usize, Unsupported> {
        const LIMIT_BYTES: usize = 512 << 20;
        let bytes = self.room.saturating_mul(self.largest);
        if bytes > LIMIT_BYTES {
            return Err(format!(
                "pools buffers of one size: {} of {} would take {} MiB",
                self.room,
                size(self.largest),
                bytes >> 20
            )
            .into());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_room_for_a_check() {
        assert_eq!(Plan::equal(1, 10).room, Plan::LEAST_ROOM);
        assert_eq!(Plan::equal(100, 10).peak_bytes, 1000);
        assert_eq!(Plan::equal(100, 10).with_spare(1000), 1000);
        assert_eq!(Plan::mixed(100, 10, 1000).with_spare(1000), 2000);
        assert_eq!(Plan::mixed(100, 10, 1000).tight().with_spare(1001), 1252);
        assert!(Plan::equal(1 << 20, 1 << 20).bytes_of_equals().is_err());
    }
}
