//! `std::io`.

use core::fmt;
use std::io::{self, BufRead, Read, Write};

use bufcore::ReserveError;
use bufcore::author::{count_read, count_written};

use crate::MirrorRing;

/// `write` appends the bytes that fit, 0 if the ring is full. `write_all` and `write!` append all
/// or nothing.
impl Write for MirrorRing {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.put_some(bytes))
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// `StorageFull` with a [`ReserveError`] if `bytes` do not all fit; nothing is written then.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.put(bytes)?)
    }

    /// Appends a formatted text.
    ///
    /// # Errors
    ///
    /// `WriteZero` if the text does not fit, or the error of a formatted argument; nothing is
    /// written then.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let available = self.spare_capacity();
        let mut rest = self.reserve(available)?;
        rest.write_fmt(text)?;
        let written = available - rest.len();
        self.commit(written);
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads as many bytes as the ring has. An empty ring reads as the end of the stream until more is
/// written.
impl Read for MirrorRing {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.get_some(into))
    }
}

/// Returns all bytes that can be read, at once.
impl BufRead for MirrorRing {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.peek())
    }

    /// Drops the oldest `bytes` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` is over the available number.
    #[inline]
    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

impl MirrorRing {
    /// Reads once from `reader` into the free room. Returns the number of bytes, 0 only at the
    /// reader's end.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing.
    ///
    /// # Errors
    ///
    /// `StorageFull`, with [`ReserveError`]` { requested: 1, available: 0 }` as source, if the ring
    /// is full. The ring's bytes must then be consumed first, or a record is longer than the ring.
    /// Otherwise the reader's own error. The ring is unchanged by an error. A reader that reports
    /// more bytes than fit is broken: the error is `InvalidData`.
    ///
    /// ```
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// let mut socket = &b"request"[..];
    /// assert_eq!(ring.read_from(&mut socket)?, 7);
    /// assert_eq!(ring.peek(), b"request");
    /// assert_eq!(ring.read_from(&mut socket)?, 0); // the end
    ///
    /// let filled = ring.read_from(&mut std::io::repeat(0));
    /// let error = filled.and_then(|_| ring.read_from(&mut socket));
    /// assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_from(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        let n = fill(self.all_room()?, reader)?;
        self.commit(n);
        Ok(n)
    }

    /// Writes all bytes that can be read to `writer`, by one call. It drops the bytes that the
    /// writer took and returns their number, 0 only if the ring is empty.
    ///
    /// `while ring.write_to(&mut writer)? > 0 {}` empties the ring.
    ///
    /// Cost: one `write` of the writer, or none if the ring is empty; no copy.
    ///
    /// # Errors
    ///
    /// `WriteZero` if the writer takes nothing; otherwise its error. The ring is unchanged by an
    /// error. A writer that reports more bytes than it was given is broken: the error is
    /// `InvalidData`.
    ///
    /// ```
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// ring.put(b"response")?;
    /// let mut socket = Vec::new();
    /// while ring.write_to(&mut socket)? > 0 {}
    /// assert_eq!(socket, b"response");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&mut self, writer: &mut impl Write) -> io::Result<usize> {
        let n = drain(self.peek(), writer)?;
        self.consume(n);
        Ok(n)
    }

    /// Reserves all room, of which there is some.
    pub(crate) fn all_room(&mut self) -> io::Result<&mut [u8]> {
        let free = self.spare_capacity();
        if free == 0 {
            // Not 0 bytes, which is the end of a stream.
            return Err(ReserveError { requested: 1, available: 0 }.into());
        }
        Ok(self.reserve(free)?)
    }
}

/// Reads once from `reader` into `room`, and returns how many bytes came.
pub(crate) fn fill(room: &mut [u8], reader: &mut impl Read) -> io::Result<usize> {
    count_read(reader.read(room)?, room.len())
}

/// Writes `bytes` to `writer`, once, and returns how many it took: some, if there are some.
pub(crate) fn drain(bytes: &[u8], writer: &mut impl Write) -> io::Result<usize> {
    if bytes.is_empty() { Ok(0) } else { count_written(writer.write(bytes)?, bytes.len()) }
}
