//! `std::io`.

use std::io::{self, BufRead, Read, Write};

use crate::copying::copy_bytes;
use crate::{Buf, Frozen, Lease};

/// Appends. A full buffer takes 0 bytes, which `write_all` reports as `WriteZero`.
impl<L: Lease> Write for Buf<L> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.spare_capacity());
        copy_bytes(&mut self.spare_mut()[..n], &bytes[..n]);
        self.commit(n);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<L: Lease> Buf<L> {
    /// Reads once from `reader` into the unfilled part; returns how many bytes came, 0 at its end or when the buffer is full.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing.
    ///
    /// # Errors
    ///
    /// What the reader returns; the buffer is unchanged then. A reader that claims more bytes than it was lent room for is
    /// broken and gets `InvalidData`.
    pub fn read_from(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        let n = reader.read(self.spare_mut())?;
        if n > self.spare_capacity() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "reader claims more bytes than it had room for",
            ));
        }
        self.commit(n);
        Ok(n)
    }

    /// Reads until exactly `n` more bytes are filled.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the reader ends before, `WriteZero` when the buffer has no room for `n`, or what the reader
    /// returns. The filled length is unchanged then.
    pub fn read_exact_from(&mut self, reader: &mut impl Read, n: usize) -> io::Result<()> {
        let room = self.spare_mut().get_mut(..n).ok_or(io::ErrorKind::WriteZero)?;
        reader.read_exact(room)?;
        self.commit(n);
        Ok(())
    }
}

/// Reading a view drops what was read, front first.
impl<L: Lease> Read for Frozen<L> {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min(self.len());
        copy_bytes(&mut into[..n], &self[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl<L: Lease> BufRead for Frozen<L> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self)
    }

    /// # Panics
    ///
    /// When `bytes` is over the length of the view.
    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, Read, Write};

    use crate::{BufferPool, HeapPool};

    #[test]
    fn writes_until_full_and_reads_back() {
        let mut buf = HeapPool::new().acquire(4).unwrap();
        assert_eq!(buf.write(b"abcdef").unwrap(), 4);
        assert_eq!(buf.write(b"g").unwrap(), 0);
        assert!(buf.write_all(b"g").is_err());
        let mut view = buf.freeze();
        let mut two = [0; 2];
        view.read_exact(&mut two).unwrap();
        assert_eq!((&two, view.fill_buf().unwrap()), (b"ab", &b"cd"[..]));
        view.consume(2);
        assert_eq!(view.read(&mut two).unwrap(), 0);
    }

    #[test]
    fn reads_from_a_reader() {
        let mut buf = HeapPool::new().acquire(6).unwrap();
        let mut source = &b"hello world"[..];
        assert_eq!(buf.read_from(&mut source).unwrap(), 6);
        assert_eq!(buf.read_from(&mut source).unwrap(), 0, "full");
        assert_eq!((&buf[..], source), (&b"hello "[..], &b"world"[..]));
        buf.clear();
        assert!(buf.read_exact_from(&mut source, 7).is_err(), "no room");
        assert!(buf.read_exact_from(&mut source, 6).is_err(), "too short a source");
        assert!(buf.is_empty());
    }

    #[test]
    fn a_lying_reader_is_refused() {
        struct Liar;
        impl Read for Liar {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                Ok(into.len() + 1)
            }
        }
        let mut buf = HeapPool::new().acquire(4).unwrap();
        assert_eq!(buf.read_from(&mut Liar).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
        assert!(buf.is_empty());
    }
}
