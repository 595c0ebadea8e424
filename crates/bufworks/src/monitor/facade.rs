//! The recorder of the crate `metrics`.

use super::Monitor;
use super::series::{self, Kind, Unit};

impl Monitor {
    /// Reads the pools, and gives the numbers to the recorder of the crate `metrics`: gauges, and
    /// counters that are set to what they are.
    ///
    /// A program calls it before its exporter is scraped, or from time to time. The gauges of a
    /// name whose pools have ended are 0 then, since a recorder forgets nothing by itself.
    ///
    /// Cost: that of [`read`](Self::read), and for each name and series what the recorder does to
    /// find the number by its name.
    ///
    /// # Panics
    ///
    /// Panics when the recorder does. The monitor and the pools are as they were.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::monitor::Monitor;
    ///
    /// let monitor = Monitor::new(); // beside a recorder, such as that of `metrics-exporter-prometheus`
    /// let published = monitor.publish("packets");
    /// published.set(HeapPool::new().stats());
    /// monitor.record();
    /// ```
    pub fn record(&self) {
        let all = self.read_all(false);
        for series in series::known() {
            let name = series.name;
            let unit = match series.unit {
                Unit::Bytes => metrics::Unit::Bytes,
                Unit::Count => metrics::Unit::Count,
            };
            // Each time: the recorder may be another one now.
            match series.kind {
                Kind::Gauge => metrics::describe_gauge!(name, unit, series.help),
                Kind::Counter => metrics::describe_counter!(name, unit, series.help),
            }
            for read in &all {
                let (pool, number) = (read.reading.name.clone(), (series.get)(&read.reading.stats));
                match series.kind {
                    // As exact as the recorder's numbers are.
                    Kind::Gauge => metrics::gauge!(name, "pool" => pool).set(number as f64),
                    Kind::Counter => metrics::counter!(name, "pool" => pool).absolute(number),
                }
            }
        }
    }
}
