//! The `embedded-io-async` crate.

use bufcore::ReserveError;
use embedded_io_async::{BufRead, Read, Write};

use crate::MirrorRing;

/// Appends as `embedded_io::Write` does. A full ring is an error, and nothing is waited for.
/// `write_all` appends all or nothing.
impl Write for MirrorRing {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ReserveError> {
        embedded_io::Write::write(self, bytes)
    }

    async fn flush(&mut self) -> Result<(), ReserveError> {
        Ok(())
    }

    /// # Errors
    ///
    /// When there is no room for all of `bytes`; then nothing is written.
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.put(bytes)
    }
}

/// Reads as many bytes as the ring has. An empty ring reads as ended, until more is written.
impl Read for MirrorRing {
    async fn read(&mut self, into: &mut [u8]) -> Result<usize, ReserveError> {
        Ok(self.get_some(into))
    }
}

/// Lends all that there is at once.
impl BufRead for MirrorRing {
    async fn fill_buf(&mut self) -> Result<&[u8], ReserveError> {
        Ok(self.peek())
    }

    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

/// The ends of a channel: tasks wait where threads would block. A future that is dropped has
/// written or read nothing.
#[cfg(feature = "std")]
mod channel {
    use embedded_io_async::{BufRead, Read, Write};

    use crate::{Consumer, Producer, WaitError};

    /// Waits until there is room for a byte at least.
    impl Write for Producer {
        async fn write(&mut self, bytes: &[u8]) -> Result<usize, WaitError> {
            self.wait_async(usize::from(!bytes.is_empty())).await?;
            Ok(self.put_some(bytes))
        }

        /// What was written is on its way already.
        async fn flush(&mut self) -> Result<(), WaitError> {
            Ok(())
        }
    }

    /// Waits until there is a byte at least, or the producer is gone and all was read.
    impl Read for Consumer {
        async fn read(&mut self, into: &mut [u8]) -> Result<usize, WaitError> {
            if !into.is_empty() {
                self.byte_or_end().await?;
            }
            Ok(self.get_some(into))
        }
    }

    /// Waits as `read` does, and lends all bytes that can be read, at once.
    impl BufRead for Consumer {
        async fn fill_buf(&mut self) -> Result<&[u8], WaitError> {
            self.byte_or_end().await?;
            Ok(self.peek())
        }

        fn consume(&mut self, bytes: usize) {
            self.consume(bytes);
        }
    }

    impl Consumer {
        /// Waits for a byte or the end.
        async fn byte_or_end(&mut self) -> Result<(), WaitError> {
            match self.wait_async(1).await {
                Err(WaitError::Closed { .. }) => Ok(()),
                result => result,
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use embedded_io_async::{BufRead, Read, Write};

    use crate::Builder;
    use bufcore::ReserveError;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_ring_writes_until_full_and_reads_back() {
        let memory: &'static mut [u8] = std::vec![0; 6].leak();
        let mut ring = Builder::new().build_static(memory).unwrap();
        let full = ReserveError { requested: 1, available: 0 };
        assert_eq!(poll(ring.write_all(b"abcd")).map(|result| result.is_err()), Poll::Ready(true));
        assert_eq!(poll(ring.write(b"abcd")), Poll::Ready(Ok(3)));
        assert_eq!(poll(Write::write(&mut ring, b"d")), Poll::Ready(Err(full)));
        assert_eq!(poll(Write::flush(&mut ring)), Poll::Ready(Ok(())));
        let mut two = [0; 2];
        assert!(poll(ring.read_exact(&mut two)).is_ready());
        assert_eq!((&two, poll(ring.fill_buf())), (b"ab", Poll::Ready(Ok(&b"c"[..]))));
        BufRead::consume(&mut ring, 1);
        assert_eq!(poll(Read::read(&mut ring, &mut two)), Poll::Ready(Ok(0)));
    }

    #[cfg(feature = "std")]
    #[test]
    fn ends_of_a_channel_wait() {
        use crate::WaitError;

        let (mut producer, mut consumer) = crate::channel(1).unwrap();
        let mut two = [0; 2];
        // A read that is given up takes nothing.
        assert_eq!(poll(Read::read(&mut consumer, &mut two)), Poll::Pending);
        assert_eq!(poll(Read::read(&mut consumer, &mut [])), Poll::Ready(Ok(0)));
        assert_eq!(poll(Write::write_all(&mut producer, b"abc")), Poll::Ready(Ok(())));
        assert_eq!(poll(Read::read(&mut consumer, &mut two)), Poll::Ready(Ok(2)));
        assert_eq!((&two, poll(BufRead::fill_buf(&mut consumer))), (b"ab", Poll::Ready(Ok(&b"c"[..]))));
        let filler = std::vec![0; producer.spare_capacity()];
        assert_eq!(poll(Write::write(&mut producer, &filler)), Poll::Ready(Ok(filler.len())));
        assert_eq!(poll(Write::write(&mut producer, b"d")), Poll::Pending);
        assert_eq!(poll(Write::write(&mut producer, b"")), Poll::Ready(Ok(0)));
        assert_eq!(poll(Write::flush(&mut producer)), Poll::Ready(Ok(())));
        BufRead::consume(&mut consumer, 1 + filler.len());
        drop(producer);
        assert_eq!(poll(Read::read(&mut consumer, &mut two)), Poll::Ready(Ok(0)), "the end");
        let (mut producer, consumer) = crate::channel(1).unwrap();
        drop(consumer);
        let closed = poll(Write::write(&mut producer, b"a"));
        assert!(matches!(closed, Poll::Ready(Err(WaitError::Closed { .. }))), "{closed:?}");
    }
}
