//! The question that a command asks of a trace.

use std::path::Path;

use super::candidate::Candidate;

/// What is to be measured, and by which rule the choice is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Analysis<'a> {
    pub(crate) file: &'a Path,
    /// The most memory that a candidate may take.
    pub(crate) memory_limit: Option<u64>,
    /// What it may take, about.
    pub(crate) seconds: u32,
    /// Whether it only shows that all of it runs.
    pub(crate) is_test: bool,
    /// Settings that take part besides those that follow from the trace.
    pub(crate) given: Option<Candidate>,
    /// The number of call sites that are replayed by themselves, and of their frames.
    pub(crate) sites: usize,
    pub(crate) frames: usize,
}

/// Returns a number of bytes, with a unit or without.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 6] = [("kib", 10), ("mib", 20), ("gib", 30), ("k", 10), ("m", 20), ("g", 30)];
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((&lower, 0));
    let number: Option<u64> = digits.trim_end().parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, such as 65536, 64K or 16M (powers of 1024)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn limits_have_units() {
        assert_eq!([bytes("65536"), bytes("64k"), bytes("16 MiB")], [Ok(65536), Ok(65536), Ok(16 << 20)]);
        assert!(bytes("").is_err() && bytes("16 megabytes").is_err() && bytes("99999999999G").is_err());
    }
}
