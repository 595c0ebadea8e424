//! The pools of a proxy: of any strategy, chosen by its name.

extern crate alloc;

use alloc::format;
use core::fmt::Write;
use std::sync::{Mutex, PoisonError};

use bufcore::ConfigError;
use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, SettingError};

use super::Direction;

/// Of a pool that is divided beforehand, one part for this number of bytes.
const BYTES_A_BUFFER: usize = 4096;

/// Makes the pools of all workers, of one strategy.
#[derive(Debug)]
pub struct Pools {
    builder: AnyBuilder,
    /// The pool of each direction, where the workers share it; others are made for each worker.
    shared: Option<[Mutex<AnyPool>; 2]>,
}

impl Pools {
    /// Reads the settings of pools from `text`, as [`AnyBuilder`] does: `ring`, or
    /// `ring:buffers=64`. A setting that limits a pool's memory is `bytes` unless the text has it.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when the text is no strategy with settings.
    pub fn parse(text: &str, bytes: usize) -> Result<AnyBuilder, SettingError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let has = AnyBuilder::named(name)?.settings();
        let is_given = |setting: &str| {
            settings
                .split(',')
                .any(|given| given.split('=').next().is_some_and(|name| name.trim() == setting))
        };
        let buffers = (bytes / BYTES_A_BUFFER).max(1);
        let mut whole = format!("{name}:{settings}");
        let limits = [("capacity", bytes), ("max_bytes", bytes), ("slots", buffers), ("buffers", buffers)];
        for (setting, value) in limits {
            if has.contains(&setting) && !is_given(setting) {
                // Writing to a string does not fail.
                let _ = write!(whole, ",{setting}={value}");
            }
        }
        whole.parse()
    }

    /// Pools with these settings. What the workers share is made here.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the settings make no pool.
    pub fn new(builder: AnyBuilder) -> Result<Self, ConfigError> {
        let up = builder.build()?;
        let shared =
            if up.share().is_some() { Some([Mutex::new(up), Mutex::new(builder.build()?)]) } else { None };
        Ok(Self { builder, shared })
    }

    /// Whether the workers share them.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The pool of a worker for one direction.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the settings make no pool.
    pub fn make(&self, direction: Direction) -> Result<AnyPool, ConfigError> {
        let shared = self.shared.as_ref().and_then(|pools| {
            pools[direction as usize].lock().unwrap_or_else(PoisonError::into_inner).share()
        });
        shared.map_or_else(|| self.builder.build(), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory that the program is given for a pool reaches whichever strategy; a setting in the
    /// text counts more.
    #[test]
    fn limits_are_settings() {
        let read = |text: &str| Pools::parse(text, 1 << 20).map(|builder| builder.to_string());
        assert_eq!(read("slot").as_deref(), Ok("slot:capacity=1MiB,slots=256"));
        assert_eq!(read("ring:buffers=8,capacity=64K").as_deref(), Ok("ring:capacity=64KiB,buffers=8"));
        assert_eq!(read("bump").as_deref(), Ok("bump"));
        assert_eq!(read("shard:max_bytes=2M").as_deref(), Ok("shard:max_bytes=2MiB"));
        assert!(read("mirror").is_err() && read("ring:slots=1").is_err());
    }

    #[test]
    fn handles_are_of_one_pool() {
        for name in AnyBuilder::NAMES {
            let pools = Pools::new(Pools::parse(name, 1 << 16).unwrap()).unwrap();
            let [mut one, two, other] = [Direction::Up, Direction::Up, Direction::Down]
                .map(|direction| pools.make(direction).unwrap());
            let held = one.acquire(1000).unwrap();
            assert_eq!(two.stats().in_use, usize::from(pools.are_shared()), "{name}");
            assert_eq!(other.stats().in_use, 0, "{name}");
            drop(held);
        }
    }
}
