//! Events for the subscriber of the crate `tracing`: what happened between two readings.

use bufkeeper::{Pressure, PressureLevel};
use tracing::{Level, event, info, warn};

use super::Monitor;
use super::pools::Read;

/// The target of the events, for filters.
pub(super) const TARGET: &str = "bufworks::pool";

impl Monitor {
    /// Reads the pools, and reports to the subscriber of the crate `tracing` the changes since the
    /// last call. If nothing changed, there is no event.
    ///
    /// | event | level | fields | needs `stats` |
    /// | --- | --- | --- | --- |
    /// | requests were refused | warn | `pool`, `requests`, `in_use_bytes`, `reserved_bytes` | yes |
    /// | the fallback served | info | `pool`, `buffers`, `in_use_bytes`, `reserved_bytes` | yes |
    /// | memory was taken | debug | `pool`, `bytes`, `reserved_bytes` | no |
    /// | memory was given back | debug | `pool`, `bytes`, `reserved_bytes` | no |
    ///
    /// Their target is `bufworks::pool`. A program calls it periodically: each second, or at each
    /// scrape. Failures and growth of pools are not instrumented, so changes between two calls are
    /// visible only in the counters.
    ///
    /// Cost: that of [`read`](Self::read), and the subscriber's.
    ///
    /// # Panics
    ///
    /// Panics if the subscriber does. The monitor and the pools are then unchanged, and the
    /// remaining events of this call are lost.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::monitor::Monitor;
    ///
    /// let monitor = Monitor::new();
    /// let published = monitor.publish("packets");
    /// for _second in 0..2 {
    ///     published.set(HeapPool::new().stats());
    ///     monitor.trace();
    /// }
    /// ```
    pub fn trace(&self) {
        for read in self.read_all(true) {
            tell(&read);
        }
    }

    /// Reports the memory pressure of the system to the subscriber, if the level has changed since
    /// the last call. `Medium` and `High` are warnings, and the other levels are information.
    ///
    /// Its fields are `level` and, if they are known, `some_percent` and `full_percent` of the
    /// time, and `memory_percent` of the limit.
    ///
    /// # Panics
    ///
    /// Panics if the subscriber does; the change is then not reported again.
    ///
    /// ```
    /// use bufworks::PressureSource;
    /// use bufworks::monitor::Monitor;
    ///
    /// let (monitor, source) = (Monitor::new(), PressureSource::system());
    /// for _second in 0..2 {
    ///     monitor.trace();
    ///     monitor.trace_pressure(&source.read());
    /// }
    /// ```
    pub fn trace_pressure(&self, pressure: &Pressure) {
        let level = pressure.level();
        if self.replace_level(level) == level {
            return;
        }
        let some_percent = pressure.stall.map(|stall| f64::from(stall.some_percent));
        let full_percent = pressure.stall.map(|stall| f64::from(stall.full_percent));
        let memory_percent = pressure.memory.map(|memory| memory.percent());
        let word = match level {
            PressureLevel::Low => "low",
            PressureLevel::Medium => "medium",
            PressureLevel::High => "high",
            _ => "unknown",
        };
        if level >= PressureLevel::Medium {
            warn!(target: TARGET, level = word, some_percent, full_percent, memory_percent, "memory is short");
        } else {
            info!(
                target: TARGET,
                level = word, some_percent, full_percent, memory_percent, "memory is not short"
            );
        }
    }
}

/// Tells what happened to the pools of a name.
fn tell(read: &Read) {
    let (name, stats, told) = (&*read.reading.name, &read.reading.stats, &read.told);
    let (in_use_bytes, reserved_bytes) = (stats.in_use_bytes, stats.reserved_bytes);
    let lately = stats.since(told);
    if lately.exhausted > 0 {
        let requests = lately.exhausted;
        warn!(target: TARGET, pool = name, requests, in_use_bytes, reserved_bytes, "requests were refused");
    }
    if lately.fallbacks > 0 {
        let buffers = lately.fallbacks;
        info!(target: TARGET, pool = name, buffers, in_use_bytes, reserved_bytes, "the fallback served");
    }
    let bytes = reserved_bytes.abs_diff(told.reserved_bytes);
    if reserved_bytes > told.reserved_bytes {
        event!(target: TARGET, Level::DEBUG, pool = name, bytes, reserved_bytes, "memory was taken");
    } else if bytes > 0 {
        event!(target: TARGET, Level::DEBUG, pool = name, bytes, reserved_bytes, "memory was given back");
    }
}
