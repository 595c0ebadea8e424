//! The recorder of the crate `metrics`.

use super::Monitor;
use super::series::{self, Kind, Series, Unit};

impl Monitor {
    /// Reads the pools, and sends the numbers to the recorder of the crate `metrics`: gauges, and
    /// counters with absolute values.
    ///
    /// A program calls it before its exporter is scraped, or periodically. The gauges of a name
    /// whose pools were all dropped are set to 0, since a recorder keeps every value.
    ///
    /// Cost: that of [`read`](Self::read), and a look-up by name in the recorder for each name and
    /// series.
    ///
    /// # Panics
    ///
    /// Panics if the recorder does. The monitor and the pools are then unchanged.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::monitor::Monitor;
    ///
    /// let monitor = Monitor::new(); // with a recorder, such as that of `metrics-exporter-prometheus`
    /// let published = monitor.publish("packets");
    /// published.set(HeapPool::new().stats());
    /// monitor.record();
    /// ```
    pub fn record(&self) {
        let all = self.read_all(false);
        #[cfg(feature = "alloc-large")]
        if let Some((rows, stats)) = series::large() {
            for series in rows {
                describe(series);
                let number = (series.get)(&stats);
                match series.kind {
                    Kind::Gauge => metrics::gauge!(series.name).set(number as f64),
                    Kind::Counter => metrics::counter!(series.name).absolute(number),
                }
            }
        }
        for series in series::known() {
            describe(series);
            let name = series.name;
            for read in &all {
                let (pool, number) = (read.reading.name.clone(), (series.get)(&read.reading));
                match series.kind {
                    // As exact as the recorder's numbers are.
                    Kind::Gauge => metrics::gauge!(name, "pool" => pool).set(number as f64),
                    Kind::Counter => metrics::counter!(name, "pool" => pool).absolute(number),
                }
            }
        }
    }
}

/// Tells the recorder what a series is: each time, as the recorder may be another one now.
fn describe<T>(series: &Series<T>) {
    let unit = match series.unit {
        Unit::Bytes => metrics::Unit::Bytes,
        Unit::Count => metrics::Unit::Count,
        Unit::Seconds => metrics::Unit::Seconds,
    };
    match series.kind {
        Kind::Gauge => metrics::describe_gauge!(series.name, unit, series.help),
        Kind::Counter => metrics::describe_counter!(series.name, unit, series.help),
    }
}
