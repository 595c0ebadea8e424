//! Frames that end with a delimiter.

use core::ops::ControlFlow;

use bufcore::author::find_byte;

use super::{Affix, Framing, Parsed};
use crate::frames::FrameError;

/// Bytes of the longest delimiter.
const MOST_BYTES: usize = 8;

/// Frames that end with a delimiter of one or more bytes, such as lines. The delimiter is not part
/// of the frame.
///
/// Bytes that remain at the end of the stream are a last frame, as with lines; see
/// [`must_end`](Self::must_end).
///
/// ```
/// use bufworks::frames::{Delimited, FrameReader};
/// use bufworks::HeapPool;
///
/// let mut pool = HeapPool::new();
/// let framing = Delimited::sequence(b"\r\n", 8192).expect("two bytes");
/// let mut lines = FrameReader::new(&b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"[..], framing);
/// while let Some(line) = lines.next_frame(|bytes| pool.acquire(bytes))? {
///     if line.is_empty() {
///         break;
///     }
///     assert!(line.starts_with(b"GET ") || line.starts_with(b"Host: "));
/// }
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Delimited {
    limit: usize,
    delimiter: Affix,
    must_end: bool,
    skip_too_long: bool,
}

impl Delimited {
    /// Makes a framing for frames of up to `limit` bytes, each followed by this byte.
    #[must_use]
    pub fn byte(delimiter: u8, limit: usize) -> Self {
        Self { limit, delimiter: Affix::of(&[delimiter]), must_end: false, skip_too_long: false }
    }

    /// Makes a framing for frames of up to `limit` bytes, each followed by these bytes; `None`
    /// unless there are one to eight.
    #[must_use]
    pub fn sequence(delimiter: &[u8], limit: usize) -> Option<Self> {
        let fits = (1..=MOST_BYTES).contains(&delimiter.len());
        fits.then(|| Self { limit, delimiter: Affix::of(delimiter), must_end: false, skip_too_long: false })
    }

    /// Makes a last frame without a delimiter an error, [`Truncated`](FrameError::Truncated).
    #[must_use]
    pub fn must_end(mut self) -> Self {
        self.must_end = true;
        self
    }

    /// Skips frames that are too long: [`TooLong`](FrameError::TooLong) is returned once for each,
    /// and the next call continues with the next frame. The bytes of such a frame are dropped as
    /// they arrive, so that they take no more memory than the longest frame.
    /// `PoolCodec` only counts them, since `Framed` ends its stream after an error.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::frames::{Delimited, FrameError, FrameReader};
    ///
    /// let mut pool = HeapPool::new();
    /// let framing = Delimited::byte(b'\n', 8).skip_too_long();
    /// let mut lines = FrameReader::new(&b"a line that is long\nshort\n"[..], framing);
    /// let mut acquire = |bytes| pool.acquire(bytes);
    /// assert!(matches!(lines.next_frame(&mut acquire), Err(FrameError::TooLong { limit: 8, .. })));
    /// assert_eq!(lines.next_frame(&mut acquire)?.unwrap(), *b"short");
    /// # Ok::<(), FrameError>(())
    /// ```
    #[must_use]
    pub fn skip_too_long(mut self) -> Self {
        self.skip_too_long = true;
        self
    }

    /// Finds a delimiter that begins in the frame and ends in the delimiter behind it, as `aa` does
    /// where a frame ends with `a`.
    fn begun(&self, frame: &[u8]) -> Option<usize> {
        let delimiter = self.delimiter.as_slice();
        let begins = |begun: &usize| {
            let (front, back) = delimiter.split_at(*begun);
            frame.ends_with(front) && delimiter.starts_with(back)
        };
        (1..delimiter.len()).rev().find(begins).map(|begun| frame.len() - begun)
    }

    /// Finds the first delimiter that begins at `from` or later.
    fn find(&self, stream: &[u8], from: usize) -> Option<usize> {
        let delimiter = self.delimiter.as_slice();
        let last = *delimiter.last()?;
        // By its last byte: where that is not, no delimiter ends.
        let mut at = from + delimiter.len() - 1;
        loop {
            at += find_byte(stream.get(at..)?, last)? + 1;
            if stream[..at].ends_with(delimiter) {
                return Some(at - delimiter.len());
            }
        }
    }
}

impl Framing for Delimited {
    fn parse(&self, stream: &[u8], searched: usize) -> Result<Parsed, FrameError> {
        let (limit, width) = (self.limit, self.delimiter.as_slice().len());
        // One may have begun in what was searched.
        let found = self.find(stream, searched.saturating_sub(width - 1));
        let length = found.unwrap_or_else(|| stream.len().saturating_sub(width - 1));
        if length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        Ok(found.map_or(Parsed::Incomplete, |end| Parsed::Frame { payload: 0..end, total: end + width }))
    }

    fn max_bytes(&self) -> usize {
        self.limit.saturating_add(self.delimiter.as_slice().len())
    }

    fn takes_rest(&self, rest: &[u8]) -> Result<bool, FrameError> {
        // Behind a frame of the limit there was room for a part of a delimiter.
        let (length, limit) = (rest.len(), self.limit);
        if !self.must_end && length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        Ok(!self.must_end)
    }

    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        let (length, limit) = (frame.len(), self.limit);
        if length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        match self.find(frame, 0).or_else(|| self.begun(frame)) {
            Some(at) => Err(FrameError::HasDelimiter { at }),
            None => Ok([Affix::NONE, self.delimiter]),
        }
    }

    fn find_next(&self, stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
        let width = self.delimiter.as_slice().len();
        self.skip_too_long.then(|| match self.find(stream, 0) {
            Some(end) => ControlFlow::Break(end + width),
            // A delimiter may have begun.
            None => ControlFlow::Continue(stream.len().saturating_sub(width - 1)),
        })
    }
}
