//! The text format of Prometheus, version 0.0.4.

use alloc::string::String;
use core::fmt::{self, Write};

use super::Monitor;
use super::series::{self, Kind, Series};

/// The value of the header `Content-Type` of a response with [`Monitor::prometheus`].
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Room for a line of a pool whose name is not long.
const LINE_BYTES: usize = 80;

impl Monitor {
    /// Reads the pools, and returns the numbers as text in the format of Prometheus, version 0.0.4.
    /// It is empty if there are neither pools nor a heap of large blocks.
    ///
    /// Cost: that of [`read`](Self::read), and about a line of text for each name and series.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::monitor::Monitor;
    ///
    /// let monitor = Monitor::new();
    /// let published = monitor.publish("say \"hello\"");
    /// published.set(HeapPool::new().stats());
    /// let text = monitor.prometheus();
    /// let lines: Vec<_> = text.lines().take(3).collect();
    /// assert!(lines[0].starts_with("# HELP memory_pool_committed_bytes Bytes of memory "));
    /// assert_eq!(lines[1], "# TYPE memory_pool_committed_bytes gauge");
    /// assert_eq!(lines[2], "memory_pool_committed_bytes{pool=\"say \\\"hello\\\"\"} 0");
    /// ```
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        // Strings are always written.
        let _written = self.write_prometheus(&mut text);
        text
    }

    /// Reads the pools, and writes the numbers as [`prometheus`](Self::prometheus) does.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write_prometheus<W: Write>(&self, text: &mut W) -> fmt::Result {
        #[cfg(feature = "alloc-large")]
        if let Some((rows, stats)) = series::large() {
            for series in rows {
                write_head(text, series)?;
                writeln!(text, "{} {}", series.name, (series.get)(&stats))?;
            }
        }
        let readings = self.read();
        if readings.is_empty() {
            return Ok(());
        }
        let mut line = String::with_capacity(LINE_BYTES);
        for series in series::known() {
            write_head(text, series)?;
            for reading in &readings {
                line.clear();
                line.push_str(series.name);
                line.push_str("{pool=\"");
                push_escaped(&mut line, &reading.name);
                writeln!(line, "\"}} {}", (series.get)(reading))?;
                text.write_str(&line)?;
            }
        }
        Ok(())
    }
}

/// Writes what is said of a series before its values.
fn write_head<T>(text: &mut impl Write, series: &Series<T>) -> fmt::Result {
    let kind = match series.kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
    };
    let Series { name, help, .. } = series;
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Appends the value of a label.
fn push_escaped(line: &mut String, value: &str) {
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        let (before, behind) = rest.split_at(at);
        line.push_str(before);
        line.push('\\');
        let special = behind.as_bytes()[0];
        line.push(if special == b'\n' { 'n' } else { char::from(special) });
        rest = &behind[1..];
    }
    line.push_str(rest);
}
