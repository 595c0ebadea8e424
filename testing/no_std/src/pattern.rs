//! Bytes that tell which buffer they belong to, and numbers that repeat.

/// Returns the byte at `index` of buffer `seed`: neighbours differ, and so do the same places of
/// two buffers.
#[must_use]
pub fn byte(seed: u32, index: usize) -> u8 {
    let mixed = (seed ^ index as u32).wrapping_mul(0x9E37_79B1).wrapping_add(seed);
    (mixed >> 24) as u8
}

/// Writes buffer `seed`, from its start.
pub fn fill(bytes: &mut [u8], seed: u32) {
    bytes.iter_mut().enumerate().for_each(|(index, place)| *place = byte(seed, index));
}

/// Returns whether `bytes` are those of buffer `seed` from `start` on.
#[must_use]
pub fn is(bytes: &[u8], seed: u32, start: usize) -> bool {
    bytes.iter().enumerate().all(|(index, &found)| found == byte(seed, start + index))
}

/// Marsaglia's xorshift: the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Numbers(u32);

impl Numbers {
    /// Starts with anything but 0.
    #[must_use]
    pub const fn new(seed: u32) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    /// Returns the next number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % limit
    }
}
