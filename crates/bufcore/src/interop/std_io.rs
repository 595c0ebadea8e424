//! `std::io`.

use core::fmt;
use core::ops::Range;
use std::io::{self, Read, Write};

use crate::memory::aliasing::copy_bytes;
use crate::{
    AcquireError, Buf, BufferPool, ByteSink, ConfigError, Error, Lease, RegionError, ReserveError,
    SplitLease, Writer,
};

/// Makes an error of kind `StorageFull`, whose source is the [`ReserveError`].
impl From<ReserveError> for io::Error {
    #[inline]
    fn from(error: ReserveError) -> Self {
        Self::new(io::ErrorKind::StorageFull, error)
    }
}

/// Makes an error of kind `StorageFull`, or `OutOfMemory` if the system failed. Its source is the
/// [`AcquireError`].
impl From<AcquireError> for io::Error {
    #[inline]
    fn from(error: AcquireError) -> Self {
        let is_refused = matches!(error, AcquireError::OutOfMemory { .. });
        Self::new(if is_refused { io::ErrorKind::OutOfMemory } else { io::ErrorKind::StorageFull }, error)
    }
}

/// Makes the system's own error if the system failed; otherwise one of kind `OutOfMemory`,
/// `Unsupported` or `InvalidInput`, whose source is the [`ConfigError`].
impl From<ConfigError> for io::Error {
    #[inline]
    fn from(error: ConfigError) -> Self {
        let kind = match error {
            ConfigError::Region(RegionError::Refused { errno: 0, .. }) => io::ErrorKind::Unsupported,
            ConfigError::Region(RegionError::Refused { errno, .. }) => return Self::from_raw_os_error(errno),
            ConfigError::Region(RegionError::OutOfMemory { .. }) => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Converts the inner error.
impl From<Error> for io::Error {
    #[inline]
    fn from(error: Error) -> Self {
        match error {
            Error::Config(error) => error.into(),
            Error::Acquire(error) => error.into(),
            Error::Reserve(error) => error.into(),
        }
    }
}

/// Appends all or nothing.
impl<P: BufferPool<Lease: SplitLease>> Write for Writer<P> {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns the [`AcquireError`] of the pool as an `io::Error` if they do not all fit. Nothing
    /// is appended then.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends. `write` appends the bytes that fit: 0 bytes if the buffer is full, as for a slice.
/// `write_all` and `write!` append all or nothing, and fail with `StorageFull`.
impl<L: Lease> Write for Buf<L> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.spare_capacity());
        copy_bytes(&mut self.spare_mut()[..n], &bytes[..n]);
        self.commit(n);
        Ok(n)
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns `StorageFull` if they do not all fit. Nothing is written then.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.extend_from_slice(bytes)?)
    }

    /// Appends a formatted text.
    ///
    /// # Errors
    ///
    /// The errors are those of [`write_all`](Self::write_all).
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        Ok(self.write_fmt(text)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<L: Lease> Buf<L> {
    /// Reads once from `reader` into the unfilled part. Returns the number of bytes; 0 always means
    /// the end of the reader.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing.
    ///
    /// # Errors
    ///
    /// - `StorageFull`, with a [`ReserveError`] as source: the buffer is full or has no capacity.
    ///   The reader is not called.
    /// - The error of the reader. The buffer is unchanged.
    /// - `InvalidData`: the reader is broken and reports more bytes than fit.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use std::io::{ErrorKind, Read};
    ///
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// let mut socket = &b"a request"[..];
    /// assert_eq!(buf.read_from(&mut socket)?, 8);
    /// // One byte is still to come, and there is no room for it. That is not the end.
    /// assert_eq!(buf.read_from(&mut socket).unwrap_err().kind(), ErrorKind::StorageFull);
    /// buf.clear();
    /// assert_eq!(buf.read_from(&mut socket)?, 1);
    /// assert_eq!(buf.read_from(&mut socket)?, 0, "the end");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        if self.spare_capacity() == 0 {
            return Err(ReserveError { requested: 1, available: 0 }.into());
        }
        let n = count_read(reader.read(self.spare_mut())?, self.spare_capacity())?;
        self.commit(n);
        Ok(n)
    }

    /// Reads until exactly `n` more bytes are filled.
    ///
    /// # Errors
    ///
    /// - `UnexpectedEof`: the reader ended earlier.
    /// - `StorageFull`: the buffer has no room for `n` bytes. The reader is not called.
    /// - The error of the reader.
    ///
    /// Each of these errors leaves the filled length unchanged.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut socket = &b"\0\x05hello, and more"[..];
    /// let mut buf = HeapPool::new().acquire(64)?;
    /// buf.read_exact_from(&mut socket, 2)?;
    /// let length = usize::from(buf[1]);
    /// buf.read_exact_from(&mut socket, length)?;
    /// assert_eq!(&buf[2..], b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_exact_from(&mut self, reader: &mut impl Read, n: usize) -> io::Result<()> {
        let room = self.reserve(n)?;
        reader.read_exact(room)?;
        self.commit(n);
        Ok(())
    }
}

/// Checks `n`, the number of bytes that a reader reports for `room` bytes.
///
/// # Errors
///
/// Returns `InvalidData` if `n` is more.
///
/// ```
/// use bufcore::author::count_read;
///
/// assert_eq!(count_read(0, 64)?, 0); // the end
/// assert!(count_read(65, 64).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn count_read(n: usize, room: usize) -> io::Result<usize> {
    let claims = "reader claims more bytes than it had room for";
    if n <= room { Ok(n) } else { Err(io::Error::new(io::ErrorKind::InvalidData, claims)) }
}

/// Checks `n`, the number of bytes that a writer reports for `given` bytes.
///
/// # Errors
///
/// Returns `WriteZero` for 0, and `InvalidData` if `n` is more than `given`.
///
/// ```
/// use bufcore::author::count_written;
///
/// assert_eq!(count_written(7, 64)?, 7);
/// assert!(count_written(0, 64).is_err() && count_written(65, 64).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn count_written(n: usize, given: usize) -> io::Result<usize> {
    let claims = "writer claims more bytes than it was given";
    match n {
        0 => Err(io::ErrorKind::WriteZero.into()),
        n if n <= given => Ok(n),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, claims)),
    }
}

/// Counts the bytes that a reader has filled in `room`, if the reader itself reports which ones.
///
/// A tokio reader gets a `ReadBuf`, and can replace it by one over other memory. The reported bytes
/// are then not in `room`, and recycled bytes would be taken for them.
///
/// # Errors
///
/// Returns `InvalidData` if `filled` is not the beginning of `room`.
///
/// ```
/// use bufcore::author::count_filled;
///
/// let mut room = [0; 64];
/// let place = room.as_ptr_range();
/// room[..5].copy_from_slice(b"hello");
/// assert_eq!(count_filled(&place, &room[..5])?, 5);
/// assert!(count_filled(&place, b"hello").is_err()); // the same bytes in other memory
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn count_filled(room: &Range<*const u8>, filled: &[u8]) -> io::Result<usize> {
    if filled.as_ptr() != room.start || filled.as_ptr_range().end > room.end {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "reader fills another buffer"));
    }
    Ok(filled.len())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, ErrorKind, Read, Write};

    use crate::{Error, HeapPool, Region};

    #[test]
    fn error_converts_to_io_error_as_its_cause() {
        let region = Error::from(Region::heap(64, 3).map(drop).unwrap_err());
        let acquire = Error::from(HeapPool::new().acquire(usize::MAX).map(drop).unwrap_err());
        let reserve = Error::from(HeapPool::new().acquire(0).unwrap().push(1).unwrap_err());
        let kinds = [region, acquire, reserve].map(|error| std::io::Error::from(error).kind());
        assert_eq!(kinds, [ErrorKind::InvalidInput, ErrorKind::StorageFull, ErrorKind::StorageFull]);
    }

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
        assert_eq!(buf.read_from(&mut source).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
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
