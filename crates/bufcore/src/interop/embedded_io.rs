//! The `embedded-io` crate.

use embedded_io::{Error, ErrorKind, ErrorType, Write};

use crate::{AcquireError, Buf, BufferPool, Lease, ReserveError, SplitLease, Writer};

impl Error for ReserveError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::WriteZero
    }
}

/// The error of a writer whose buffer cannot grow.
impl Error for AcquireError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::OutOfMemory,
        }
    }
}

impl<L: Lease> ErrorType for Buf<L> {
    type Error = ReserveError;
}

/// Appends. Unlike with `std::io::Write`, a full buffer is an error, as `embedded_io` demands.
/// `write_all` appends all or nothing.
impl<L: Lease> Write for Buf<L> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ReserveError> {
        let n = bytes.len().min(self.spare_capacity());
        if n == 0 && !bytes.is_empty() {
            return Err(ReserveError { requested: bytes.len(), available: 0 });
        }
        self.extend_from_slice(&bytes[..n])?;
        Ok(n)
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.extend_from_slice(bytes)
    }

    fn flush(&mut self) -> Result<(), ReserveError> {
        Ok(())
    }
}

impl<P: BufferPool<Lease: SplitLease>> ErrorType for Writer<P> {
    type Error = AcquireError;
}

/// Appends all or nothing.
impl<P: BufferPool<Lease: SplitLease>> Write for Writer<P> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, AcquireError> {
        self.extend_from_slice(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), AcquireError> {
        Ok(())
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use embedded_io::{Error, ErrorKind, Read, Write};

    use crate::{HeapPool, NoFallback, ReserveError, Writer};

    #[test]
    fn writes_until_full_and_reads_back() {
        let mut buf = HeapPool::new().acquire(3).unwrap();
        assert_eq!(buf.write(b"abcd"), Ok(3));
        assert_eq!(buf.write(b"d"), Err(ReserveError { requested: 1, available: 0 }));
        assert_eq!(buf.write(b""), Ok(0));
        let mut view = buf.freeze();
        let mut all = [0; 3];
        view.read_exact(&mut all).unwrap();
        assert_eq!(&all, b"abc");
        assert_eq!(view.read(&mut all), Ok(0));
    }

    #[test]
    fn a_writer_grows_or_says_why_not() {
        let mut writer = Writer::new(HeapPool::new());
        assert_eq!((writer.write(&[1; 400]), writer.write(&[2; 200])), (Ok(400), Ok(200)));
        assert_eq!((writer.write_all(b""), writer.flush(), writer.filled().len()), (Ok(()), Ok(()), 600));
        let refused = Writer::new(NoFallback).write_all(b"a").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
}
