//! The `embedded-io` crate.

use bufcore::ReserveError;
use embedded_io::{BufRead, ErrorType, Read, Write};

use crate::MirrorRing;

/// The error of a write to a full ring. Reading never fails.
impl ErrorType for MirrorRing {
    type Error = ReserveError;
}

/// `write` appends the bytes that fit. Unlike with `std::io::Write`, a full ring is an error, as
/// `embedded_io` demands. `write_all` appends all or nothing.
impl Write for MirrorRing {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ReserveError> {
        let n = self.put_some(bytes);
        if n == 0 && !bytes.is_empty() {
            return Err(ReserveError { requested: bytes.len(), available: 0 });
        }
        Ok(n)
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns an error if `bytes` do not all fit; nothing is written then.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.put(bytes)
    }

    fn flush(&mut self) -> Result<(), ReserveError> {
        Ok(())
    }
}

/// Reads as many bytes as the ring has. An empty ring reads as the end of the stream until more is
/// written.
impl Read for MirrorRing {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReserveError> {
        Ok(self.get_some(into))
    }
}

/// Returns all bytes at once.
impl BufRead for MirrorRing {
    fn fill_buf(&mut self) -> Result<&[u8], ReserveError> {
        Ok(self.peek())
    }

    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

#[cfg(test)]
mod tests {
    use embedded_io::{BufRead, Read, Write};

    use super::ReserveError;
    use crate::Builder;

    #[test]
    fn writes_until_full_and_reads_back() {
        let memory: &'static mut [u8] = std::vec![0; 6].leak();
        let mut ring = Builder::new().build_static(memory).unwrap();
        assert_eq!(ring.write(b"abcd"), Ok(3));
        assert_eq!(ring.write(b"d"), Err(ReserveError { requested: 1, available: 0 }));
        assert_eq!((ring.write(b""), ring.flush()), (Ok(0), Ok(())));
        let mut two = [0; 2];
        ring.read_exact(&mut two).unwrap();
        assert_eq!(ring.write(b"ef"), Ok(2));
        assert_eq!((&two, ring.fill_buf()), (b"ab", Ok(&b"cef"[..])));
        BufRead::consume(&mut ring, 3);
        assert_eq!(ring.read(&mut two), Ok(0));
    }
}
