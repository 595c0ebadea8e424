//! `std::io`.

use std::io::{self, BufRead, Read, Write};

use crate::MirrorRing;

/// Appends what there is room for. A full ring takes 0 bytes, which `write_all` reports as `WriteZero`.
impl Write for MirrorRing {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.put_some(bytes))
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what there is. An empty ring reads as ended; it goes on once more was written.
impl Read for MirrorRing {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.get_some(into))
    }
}

/// Lends all that there is at once.
impl BufRead for MirrorRing {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.peek())
    }

    /// # Panics
    ///
    /// When `bytes` is over the length of what there is.
    #[inline]
    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

impl MirrorRing {
    /// Reads once from `reader` into all of the free room; returns how many bytes came, 0 at its end or when the ring is full.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing.
    ///
    /// # Errors
    ///
    /// What the reader returns; the ring is unchanged then. A reader that claims more bytes than it was lent room for is
    /// broken and gets `InvalidData`.
    ///
    /// ```
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// let mut socket = &b"request"[..];
    /// assert_eq!(ring.read_from(&mut socket)?, 7);
    /// assert_eq!(ring.peek(), b"request");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_from(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        let free = self.spare_capacity();
        let room = self.reserve(free).map_err(|_| io::ErrorKind::WriteZero)?;
        let n = reader.read(room)?;
        if n > free {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "reader claims more bytes than it had room for",
            ));
        }
        self.commit(n);
        Ok(n)
    }
}
