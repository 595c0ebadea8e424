//! Buffers and views as sources: reading drops the bytes that were read, front first. Writes of the
//! runtimes and `serde` take the bytes of them.

use crate::{Buf, ByteSource, Frozen, Lease, SharedBytes};

/// Copies as many bytes as a read takes, and returns their number.
#[cfg(any(feature = "std", feature = "embedded-io-0_7"))]
#[inline]
fn read(from: &mut impl ByteSource, into: &mut [u8]) -> usize {
    let bytes = from.peek();
    let n = into.len().min(bytes.len());
    crate::memory::aliasing::copy_bytes(&mut into[..n], &bytes[..n]);
    from.consume(n);
    n
}

macro_rules! source {
    ($([$($generics:tt)*] $handle:ty $({ $($to_bytes:tt)* })?;)+) => {$(
        /// Reading drops the consumed bytes, front first.
        impl<$($generics)*> ByteSource for $handle {
            #[inline]
            fn peek(&mut self) -> &[u8] {
                self
            }

            #[inline]
            fn consume(&mut self, n: usize) {
                self.consume(n);
            }
        }

        /// Reading drops the bytes that were read, front first.
        #[cfg(feature = "bytes")]
        impl<$($generics)*> bytes::Buf for $handle {
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

            $($($to_bytes)*)?
        }

        /// Serializes as bytes, which a text format may write as a sequence of numbers.
        ///
        /// There is no `Deserialize`: a buffer comes from a pool, which a deserializer does not
        /// have. Deserialize borrowed bytes, and append them to a buffer.
        #[cfg(feature = "serde")]
        impl<$($generics)*> serde::Serialize for $handle {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(self)
            }
        }

        /// Writes send the filled bytes.
        #[cfg(all(feature = "compio-buf-0_8", any(unix, windows)))]
        impl<$($generics)*> compio_buf::IoBuf for $handle {
            #[inline]
            fn as_init(&self) -> &[u8] {
                self
            }
        }
    )+};
}

/// The traits of readers: for views alone, as a buffer is a writer.
macro_rules! reader {
    ($([$($generics:tt)*] $handle:ty;)+) => {$(
        source! {
            [$($generics)*] $handle {
                /// Cost: nothing is copied.
                #[inline]
                fn copy_to_bytes(&mut self, bytes: usize) -> bytes::Bytes {
                    self.split_to(bytes).into()
                }
            };
        }

        /// Reading drops the bytes that were read, front first.
        #[cfg(feature = "std")]
        impl<$($generics)*> std::io::Read for $handle {
            #[inline]
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                Ok(read(self, into))
            }
        }

        #[cfg(feature = "std")]
        impl<$($generics)*> std::io::BufRead for $handle {
            #[inline]
            fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
                Ok(self)
            }

            /// Drops the first `bytes` bytes.
            ///
            /// # Panics
            ///
            /// Panics when `bytes` is over the length.
            #[inline]
            fn consume(&mut self, bytes: usize) {
                self.consume(bytes);
            }
        }

        #[cfg(feature = "embedded-io-0_7")]
        impl<$($generics)*> embedded_io::ErrorType for $handle {
            type Error = core::convert::Infallible;
        }

        /// Reading drops the bytes that were read, front first.
        #[cfg(feature = "embedded-io-0_7")]
        impl<$($generics)*> embedded_io::Read for $handle {
            #[inline]
            fn read(&mut self, into: &mut [u8]) -> Result<usize, Self::Error> {
                Ok(read(self, into))
            }
        }

        #[cfg(feature = "embedded-io-0_7")]
        impl<$($generics)*> embedded_io::BufRead for $handle {
            #[inline]
            fn fill_buf(&mut self) -> Result<&[u8], Self::Error> {
                Ok(self)
            }

            #[inline]
            fn consume(&mut self, bytes: usize) {
                self.consume(bytes);
            }
        }

        /// Reading drops the bytes that were read, front first. Nothing waits.
        #[cfg(feature = "embedded-io-async-0_7")]
        impl<$($generics)*> embedded_io_async::Read for $handle {
            async fn read(&mut self, into: &mut [u8]) -> Result<usize, Self::Error> {
                Ok(read(self, into))
            }
        }

        #[cfg(feature = "embedded-io-async-0_7")]
        impl<$($generics)*> embedded_io_async::BufRead for $handle {
            async fn fill_buf(&mut self) -> Result<&[u8], Self::Error> {
                Ok(self)
            }

            #[inline]
            fn consume(&mut self, bytes: usize) {
                self.consume(bytes);
            }
        }

        /// Writes send the bytes of the view.
        // SAFETY: nobody writes the bytes while a view lives, and the value that the runtime owns
        // is one. Moves of the value move no byte.
        #[cfg(all(feature = "tokio-uring-0_5", target_os = "linux"))]
        unsafe impl<$($generics)*> tokio_uring::buf::IoBuf for $handle {
            #[inline]
            fn stable_ptr(&self) -> *const u8 {
                self.as_slice().as_ptr()
            }

            #[inline]
            fn bytes_init(&self) -> usize {
                self.len()
            }

            #[inline]
            fn bytes_total(&self) -> usize {
                self.len()
            }
        }

        /// Writes send the bytes of the view.
        // SAFETY: as above.
        #[cfg(all(feature = "monoio-0_2", unix))]
        unsafe impl<$($generics)*> monoio::buf::IoBuf for $handle {
            #[inline]
            fn read_ptr(&self) -> *const u8 {
                self.as_slice().as_ptr()
            }

            #[inline]
            fn bytes_init(&self) -> usize {
                self.len()
            }
        }
    )+};
}

source! {
    [L: Lease] Buf<L>;
}

reader! {
    [L: Lease] Frozen<L>;
    [] SharedBytes;
}
