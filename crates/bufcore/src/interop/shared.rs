//! [`SharedBytes`] in the traits of other crates. Reading drops the bytes that were read, front
//! first.

use crate::{ByteSource, SharedBytes};

impl ByteSource for SharedBytes {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

/// Copies as many bytes as a read takes, and returns their number.
#[cfg(any(feature = "std", feature = "embedded-io-0_7"))]
fn read(from: &mut SharedBytes, into: &mut [u8]) -> usize {
    let n = into.len().min(from.len());
    crate::memory::copying::copy_bytes(&mut into[..n], &from[..n]);
    from.consume(n);
    n
}

#[cfg(feature = "std")]
mod std_io {
    use std::io::{BufRead, Read, Result};

    use super::{SharedBytes, read};

    /// Reading drops the bytes that were read, front first.
    impl Read for SharedBytes {
        #[inline]
        fn read(&mut self, into: &mut [u8]) -> Result<usize> {
            Ok(read(self, into))
        }
    }

    impl BufRead for SharedBytes {
        fn fill_buf(&mut self) -> Result<&[u8]> {
            Ok(self)
        }

        /// Drops the first `bytes` bytes.
        ///
        /// # Panics
        ///
        /// Panics when `bytes` is over the length.
        fn consume(&mut self, bytes: usize) {
            self.consume(bytes);
        }
    }
}

#[cfg(feature = "embedded-io-0_7")]
mod embedded_io {
    use core::convert::Infallible;

    use embedded_io::{BufRead, ErrorType, Read};

    use super::{SharedBytes, read};

    impl ErrorType for SharedBytes {
        type Error = Infallible;
    }

    /// Reading drops the bytes that were read, front first.
    impl Read for SharedBytes {
        fn read(&mut self, into: &mut [u8]) -> Result<usize, Infallible> {
            Ok(read(self, into))
        }
    }

    impl BufRead for SharedBytes {
        fn fill_buf(&mut self) -> Result<&[u8], Infallible> {
            Ok(self)
        }

        fn consume(&mut self, bytes: usize) {
            self.consume(bytes);
        }
    }
}

#[cfg(feature = "bytes")]
mod bytes {
    use bytes::{Buf, Bytes};

    use super::SharedBytes;

    /// Reading drops the bytes that were read, front first.
    impl Buf for SharedBytes {
        #[inline]
        fn remaining(&self) -> usize {
            self.len()
        }

        #[inline]
        fn chunk(&self) -> &[u8] {
            self
        }

        #[inline]
        fn advance(&mut self, bytes: usize) {
            self.consume(bytes);
        }

        /// Copies nothing: the bytes stay where they are.
        fn copy_to_bytes(&mut self, bytes: usize) -> Bytes {
            self.split_to(bytes).into()
        }
    }

    /// Cost: nothing for static bytes and for none; otherwise one small allocation, which `Bytes`
    /// needs for an owner of another type. No bytes are copied.
    impl From<SharedBytes> for Bytes {
        fn from(shared: SharedBytes) -> Self {
            match shared.static_bytes() {
                Some(bytes) => Self::from_static(bytes),
                None => Self::from_owner(shared),
            }
        }
    }

    /// Cost: one small allocation, no copy; nothing for none.
    impl From<Bytes> for SharedBytes {
        fn from(bytes: Bytes) -> Self {
            Self::from_owner(bytes)
        }
    }
}
