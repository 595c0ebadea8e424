//! Frames with a length of as many bytes as it needs.

use super::{Affix, Framing, Parsed};
use crate::frames::FrameError;

/// Bytes of the longest length: seven bits in each.
const MOST_BYTES: usize = 10;

/// Frames with their length in front as a varint: seven bits in each byte, the least significant
/// ones first, as in delimited messages of protobuf.
///
/// ```
/// use bufworks::HeapPool;
/// use bufworks::frames::{FrameReader, VarintDelimited, write_frames};
///
/// let framing = VarintDelimited::new(1000);
/// let mut wire = Vec::new();
/// write_frames(&mut wire, &framing, &[&b"hello"[..], &[7; 300]])?;
/// assert_eq!((&wire[..6], &wire[6..8]), (&b"\x05hello"[..], &b"\xac\x02"[..]));
///
/// let mut pool = HeapPool::new();
/// let mut frames = FrameReader::new(&wire[..], framing);
/// assert_eq!(frames.next_frame(|bytes| pool.acquire(bytes))?.unwrap(), *b"hello");
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VarintDelimited {
    limit: usize,
}

impl VarintDelimited {
    /// Makes a framing for frames of up to `limit` bytes, without their length.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit }
    }

    fn checked(self, length: usize) -> Result<usize, FrameError> {
        let limit = self.limit.min(usize::MAX - MOST_BYTES);
        if length <= limit { Ok(length) } else { Err(FrameError::TooLong { length, limit }) }
    }
}

impl Framing for VarintDelimited {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        let mut number = 0_u128;
        for (at, byte) in stream.iter().take(MOST_BYTES).enumerate() {
            number |= u128::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                let length = self.checked(usize::try_from(number).unwrap_or(usize::MAX))?;
                let (start, total) = (at + 1, at + 1 + length);
                return Ok(Parsed::Frame { payload: start..total, total });
            }
        }
        if stream.len() < MOST_BYTES {
            return Ok(Parsed::Incomplete);
        }
        // A length of more bytes is over any limit.
        self.checked(usize::MAX).map(|_length| Parsed::Incomplete)
    }

    fn max_bytes(&self) -> usize {
        self.limit.saturating_add(MOST_BYTES)
    }

    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        let mut number = self.checked(frame.len())?;
        let (mut bytes, mut len) = ([0; MOST_BYTES], 1);
        while number > 0x7f {
            bytes[len - 1] = number as u8 | 0x80;
            number >>= 7;
            len += 1;
        }
        bytes[len - 1] = number as u8;
        Ok([Affix::of(&bytes[..len]), Affix::NONE])
    }

    fn header_bytes(&self) -> usize {
        1
    }
}
