//! Numbers as people read them.

/// Writes nanoseconds in the unit that leaves three digits before the point at most.
#[must_use]
pub fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Returns a time or ratio at a scale's tick, without zeros that say nothing.
#[must_use]
pub fn tick(shown: &str) -> String {
    let (number, unit) = shown.split_once(' ').unwrap_or((shown, ""));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().into()
}

/// Writes three significant digits.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns a share of a whole, in percent.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns a share of a whole, in percent: a small one is more than nothing.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".into(),
        ..0.1 => "< 0.1 %".into(),
        _ => format!("{percent:.1} %"),
    }
}

/// Bytes of memory, in the unit that suits.
#[must_use]
pub fn memory(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// Bytes of memory to the last one, in the largest unit of which there is a whole number.
#[must_use]
pub fn exact_memory(bytes: u64) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Returns a rate in bytes per second, from bytes in nanoseconds.
#[must_use]
pub fn rate(bytes: f64, nanos: f64) -> String {
    format!("{} GB/s", three_digits(bytes / nanos))
}
