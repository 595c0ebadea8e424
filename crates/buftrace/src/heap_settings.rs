//! The settings of a heap recording as text, for the recorder and for a program that checks them
//! before it starts another. Not part of the interface.

use crate::profile::format::MAX_FRAMES;

/// From this size on, an allocation is worth a buffer of a pool.
const DEFAULT_MIN_BYTES: usize = 512;
/// One sample for this number of requested bytes: the cost of a sample is shared by some thousand
/// requests.
const DEFAULT_RATE_BYTES: u64 = 1 << 20;
/// The number of frames of a call stack.
const DEFAULT_DEPTH: usize = 24;
/// The longest file.
const DEFAULT_LIMIT_BYTES: u64 = 1 << 30;

/// What settings look like.
pub const EXPECTED: &str = "`exact`, `min=512`, `rate=1MiB`, `depth=24`, `limit=1GiB`";

/// What is recorded, without where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The smallest request that is recorded.
    pub min_bytes: usize,
    /// The mean number of requested bytes between two samples; 0 for all requests.
    pub rate_bytes: u64,
    /// The frames of a call stack.
    pub depth: usize,
    /// The longest file.
    pub limit_bytes: u64,
}

impl Settings {
    /// Without any settings.
    pub const DEFAULT: Self = Self {
        min_bytes: DEFAULT_MIN_BYTES,
        rate_bytes: DEFAULT_RATE_BYTES,
        depth: DEFAULT_DEPTH,
        limit_bytes: DEFAULT_LIMIT_BYTES,
    };

    /// Reads settings such as `min=4KiB,exact`; `None` when one is not understood.
    pub fn parse(mut self, text: &[u8]) -> Option<Self> {
        for setting in text.split(|byte| *byte == b',').filter(|setting| !setting.is_empty()) {
            let mut parts = setting.splitn(2, |byte| *byte == b'=');
            let (name, value) = (parts.next().unwrap_or_default(), parts.next());
            let bytes = value.and_then(bytes);
            match (name, value) {
                (b"exact", None) => self.rate_bytes = 0,
                (b"min", _) => self.min_bytes = to_size(bytes?).max(1),
                (b"rate", _) => self.rate_bytes = bytes?,
                (b"depth", _) => self.depth = to_size(bytes?).min(MAX_FRAMES),
                (b"limit", _) => self.limit_bytes = bytes?,
                _ => return None,
            }
        }
        Some(self)
    }
}

fn to_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Reads a number of bytes, such as `512`, `64KiB`, `64K` or `1MiB`.
fn bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits)?;
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    let shift = match unit {
        b"" | b"B" => 0,
        b"K" | b"KiB" => 10,
        b"M" | b"MiB" => 20,
        b"G" | b"GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_text() {
        let parse = |text: &'static str| Settings::DEFAULT.parse(text.as_bytes());
        assert_eq!(parse(""), Some(Settings::DEFAULT));
        let all = parse("min=4KiB,rate=64K,depth=7,limit=3GiB").unwrap();
        let expected = Settings { min_bytes: 4096, rate_bytes: 65536, depth: 7, limit_bytes: 3 << 30 };
        assert_eq!(all, expected);
        assert_eq!(parse("exact").unwrap().rate_bytes, 0);
        assert_eq!(parse("min=0,depth=1000").unwrap().depth, MAX_FRAMES);
        let wrong = "min min= min=x min=5KB min=99999999999999999999 max=1 often=1 exact=1 rate=-1";
        for wrong in wrong.split(' ') {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
