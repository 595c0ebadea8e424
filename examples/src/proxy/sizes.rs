//! How large the next buffer should be, learnt from how much came before.

/// Bytes that have to wait are moved to a buffer of their own size if they take at most this part of theirs.
const COMPACT_BELOW: usize = 4;

/// This number of small reads in a row makes the next buffer smaller.
const SMALL_READS: u32 = 2;

/// Whether `bytes` that have to wait should not keep a buffer of `capacity` from others.
pub(super) fn is_wasteful(bytes: usize, capacity: usize) -> bool {
    bytes <= capacity / COMPACT_BELOW
}

/// The size of the next buffer: doubled by a read that fills it, halved by small reads in a row.
#[derive(Debug)]
pub(super) struct Sizes {
    next: usize,
    min: usize,
    max: usize,
    small_reads: u32,
}

impl Sizes {
    pub(super) fn new(min: usize, max: usize) -> Self {
        Self { next: min, min, max, small_reads: 0 }
    }

    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// The next is the smallest, because memory is short.
    pub(super) fn start_over(&mut self) {
        self.next = self.min;
        self.small_reads = 0;
    }

    /// Learns from a read of `bytes` into a buffer of `capacity`.
    pub(super) fn note(&mut self, bytes: usize, capacity: usize) {
        if bytes == capacity {
            self.small_reads = 0;
            self.next = self.next.saturating_mul(2).min(self.max);
        } else if bytes <= self.next / 2 {
            self.small_reads += 1;
            if self.small_reads >= SMALL_READS {
                self.small_reads = 0;
                self.next = (self.next / 2).max(self.min);
            }
        } else {
            self.small_reads = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_when_full_and_shrinks_slowly() {
        let mut sizes = Sizes::new(512, 4096);
        for expected in [1024, 2048, 4096, 4096] {
            sizes.note(sizes.next(), sizes.next());
            assert_eq!(sizes.next(), expected);
        }
        sizes.note(100, 4096);
        assert_eq!(sizes.next(), 4096, "one small read is not a habit");
        sizes.note(3000, 4096);
        sizes.note(100, 4096);
        assert_eq!(sizes.next(), 4096, "small reads count in a row only");
        sizes.note(100, 4096);
        assert_eq!(sizes.next(), 2048);
        for _ in 0..20 {
            sizes.note(1, sizes.next());
        }
        assert_eq!(sizes.next(), 512);
        sizes.note(512, 512);
        sizes.start_over();
        assert_eq!(sizes.next(), 512);
    }

    #[test]
    fn a_quarter_is_the_most_that_is_moved() {
        assert!(is_wasteful(100, 4096) && is_wasteful(1024, 4096));
        assert!(!is_wasteful(1025, 4096));
    }
}
