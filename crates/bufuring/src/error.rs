//! The error of a write that wrote a part of its buffer.

use core::fmt;
use std::io;

/// A write wrote fewer bytes than its buffer has.
///
/// It is the source of the error of [`Completion::into_result`](crate::Completion::into_result),
/// whose kind is [`WriteZero`](io::ErrorKind::WriteZero).
///
/// ```
/// use std::os::unix::net::UnixStream;
///
/// use bufcore::HeapPool;
/// use bufuring::{Descriptor, Driver, ShortWrite};
///
/// let driver = Driver::builder().build();
/// let (_near, far) = UnixStream::pair()?;
/// far.set_nonblocking(true)?;
/// let mut buf = HeapPool::new().acquire(4 << 20)?;
/// buf.resize(4 << 20, 0)?; // more than the socket takes at once
/// let done = driver.wait(&mut driver.write(&Descriptor::new(far), buf))?;
/// let error = done.into_result().expect_err("it is not all written");
/// let short = error.get_ref().and_then(|error| error.downcast_ref::<ShortWrite>());
/// assert!(short.is_some_and(|short| short.written < short.len));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortWrite {
    /// The number of bytes that were written.
    pub written: usize,
    /// The length of the buffer.
    pub len: usize,
}

impl fmt::Display for ShortWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes were written", self.written, self.len)
    }
}

impl core::error::Error for ShortWrite {}

impl From<ShortWrite> for io::Error {
    fn from(short: ShortWrite) -> Self {
        Self::new(io::ErrorKind::WriteZero, short)
    }
}
