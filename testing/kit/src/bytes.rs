//! Numbers out of the bytes that a fuzzer makes up.

use crate::thresholds;

/// Bytes that are read as numbers, one after the other. Past their end all numbers are zero, so
/// that any bytes are a program.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// Makes a reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns what is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// Takes a number of two bytes.
    pub fn number(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Takes a number of eight bytes.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// Takes a number below `limit`, which is 1 to 256, from one byte.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// Picks one of `choices`, which are 1 to 256, by one byte.
    pub fn pick<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.below(N)]
    }

    /// Takes a seed of patterns. One byte is enough.
    pub fn seed(&mut self) -> u64 {
        u64::from(self.byte())
    }

    /// Takes a size as traffic has them: mostly small, some large, some of no bytes, some at the
    /// borders of powers of two, some at the thresholds of the implementations.
    pub fn size(&mut self) -> usize {
        match self.byte() % 16 {
            0 => 0,
            1..=9 => usize::from(self.byte()),
            10..=12 => usize::from(self.number()) % 5000,
            13 => usize::from(self.number()),
            15 => thresholds::any(usize::from(self.number())),
            _ => {
                let byte = self.byte();
                ((1_usize << (byte % 17)) + usize::from(byte / 17 % 3)).saturating_sub(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn any_bytes_are_numbers() {
        let mut bytes = Bytes::new(&[7, 1, 2, 14, 4, 9]);
        assert_eq!((bytes.byte(), bytes.number(), bytes.size()), (7, 0x0201, 15));
        assert_eq!((bytes.below(4), bytes.is_empty()), (1, true));
        assert_eq!((bytes.byte(), bytes.size(), bytes.word(), bytes.pick([3])), (0, 0, 0, 3));
    }
}
