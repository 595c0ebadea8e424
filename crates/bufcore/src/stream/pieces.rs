//! Pieces that end with one byte, looked at where they are.

use core::fmt;
use core::iter::FusedIterator;

use crate::ByteSource;

/// Bytes that are compared at once.
const STEP_BYTES: usize = 32;
/// Bytes of a word, in which the place is looked for.
const WORD_BYTES: usize = 8;

/// Lends the complete pieces at the front of a [`ByteSource`], each up to a delimiter.
/// [`ByteSource::pieces`] makes it.
///
/// Iterate over a `&mut` of it. A piece is lent in place, without its delimiter, and several may be
/// held at a time. The bytes after the last delimiter are not a piece: the rest of it is missing.
///
/// Ownership: when this is dropped, the pieces that the iteration returned are consumed with their
/// delimiters. All others are kept, even after a `break`, and while a thread unwinds. If this is
/// forgotten (`mem::forget`), nothing is consumed.
///
/// Cost: one comparison for each byte. Bytes without a delimiter are searched again the next time.
///
/// ```
/// use bufcore::ByteSource;
///
/// let mut source = &b"one\ntwo\n\nfou"[..];
/// let mut lines = Vec::new();
/// for line in &mut source.pieces(b'\n') {
///     lines.push(line.to_vec());
/// }
/// assert_eq!(lines, [&b"one"[..], b"two", b""]);
/// assert_eq!(source, b"fou");
/// ```
pub struct Pieces<'a, S: ByteSource + ?Sized> {
    source: &'a mut S,
    delimiter: u8,
    /// Bytes of the pieces that were lent, with their delimiters.
    taken: usize,
}

impl<'a, S: ByteSource + ?Sized> Pieces<'a, S> {
    #[inline]
    pub(crate) fn new(source: &'a mut S, delimiter: u8) -> Self {
        Self { source, delimiter, taken: 0 }
    }

    /// Returns the number of bytes that the drop will consume: those of all returned pieces, with
    /// their delimiters.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::ByteSource;
    ///
    /// let mut source = &b"one\ntwo\nthr"[..];
    /// let mut lines = source.pieces(b'\n');
    /// assert_eq!((&mut lines).into_iter().next(), Some(&b"one"[..]));
    /// assert_eq!(lines.taken(), 4);
    /// drop(lines);
    /// assert_eq!(source, b"two\nthr");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken
    }
}

impl<'p, S: ByteSource + ?Sized> IntoIterator for &'p mut Pieces<'_, S> {
    type Item = &'p [u8];
    type IntoIter = PiecesIter<'p>;

    /// Continues where the last iteration ended, with the bytes that arrived since.
    #[inline]
    fn into_iter(self) -> PiecesIter<'p> {
        let bytes = self.source.peek();
        PiecesIter {
            // A source of the user's may lend less than it did.
            rest: bytes.get(self.taken..).unwrap_or_default(),
            delimiter: self.delimiter,
            taken: &mut self.taken,
        }
    }
}

impl<S: ByteSource + ?Sized> Drop for Pieces<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if self.taken > 0 {
            self.source.consume(self.taken);
        }
    }
}

impl<S: ByteSource + ?Sized> fmt::Debug for Pieces<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces")
            .field("delimiter", &self.delimiter)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

/// Iterates over a [`Pieces`].
///
/// ```
/// use bufcore::ByteSource;
///
/// let mut source = &b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody"[..];
/// let mut lines = source.pieces(b'\n');
/// let head = lines.into_iter().take_while(|line| *line != b"\r").count();
/// assert_eq!(head, 2);
/// drop(lines);
/// assert_eq!(source, b"body");
/// ```
pub struct PiecesIter<'p> {
    /// The bytes that no piece was made of yet.
    rest: &'p [u8],
    delimiter: u8,
    /// As in `Pieces`.
    taken: &'p mut usize,
}

impl<'p> Iterator for PiecesIter<'p> {
    type Item = &'p [u8];

    #[inline]
    fn next(&mut self) -> Option<&'p [u8]> {
        let Some(at) = find_byte(self.rest, self.delimiter) else {
            // It is not searched again.
            self.rest = &[];
            return None;
        };
        let (piece, rest) = self.rest.split_at(at);
        self.rest = &rest[1..];
        *self.taken += at + 1;
        Some(piece)
    }
}

impl FusedIterator for PiecesIter<'_> {}

impl fmt::Debug for PiecesIter<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiecesIter")
            .field("delimiter", &self.delimiter)
            .field("rest", &self.rest.len())
            .finish_non_exhaustive()
    }
}

/// Finds the first byte of that value, and returns its index.
///
/// Cost: a few wide comparisons for each 32 bytes.
///
/// ```
/// use bufcore::author::find_byte;
///
/// assert_eq!(find_byte(b"GET /\r\n", b'\n'), Some(6));
/// assert_eq!(find_byte(b"GET /", b'\n'), None);
/// ```
#[must_use]
pub fn find_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    let (steps, rest) = bytes.as_chunks::<STEP_BYTES>();
    for (index, step) in steps.iter().enumerate() {
        // The compiler makes vector instructions of a step.
        if step.iter().fold(false, |found, &byte| found | (byte == wanted)) {
            return Some(index * STEP_BYTES + find_in_words(step, wanted)?);
        }
    }
    Some(bytes.len() - rest.len() + find_in_words(rest, wanted)?)
}

/// Finds the first byte of that value in few bytes, eight at a time.
#[inline]
fn find_in_words(bytes: &[u8], wanted: u8) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; WORD_BYTES]);
    const HIGHS: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
    for (index, word) in words.iter().enumerate() {
        // Zero where the wanted byte is. A borrow out of such a byte marks bytes behind it only.
        let zeros = u64::from_le_bytes(*word) ^ (ONES * u64::from(wanted));
        let marks = zeros.wrapping_sub(ONES) & !zeros & HIGHS;
        if marks != 0 {
            return Some(index * WORD_BYTES + marks.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| byte == wanted)?;
    Some(bytes.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use super::{STEP_BYTES, find_byte};

    #[test]
    fn the_first_is_found_wherever_it_is() {
        const BYTES: usize = 3 * STEP_BYTES + 5;
        for len in 0..=BYTES {
            let mut bytes = [b'.'; BYTES];
            assert_eq!(find_byte(&bytes[..len], b'!'), None);
            for at in (0..len).rev() {
                bytes[at] = b'!';
                assert_eq!(find_byte(&bytes[..len], b'!'), Some(at));
                // The byte behind it differs by what a borrow changes.
                if at + 1 < len {
                    bytes[at + 1] = b'!' ^ 1;
                    assert_eq!(find_byte(&bytes[..len], b'!'), Some(at));
                    bytes[at + 1] = b'!';
                }
            }
        }
    }
}
