//! The `embedded-io-async` crate. Nothing here waits: each future is ready at once.

use embedded_io_async::Write;

use crate::{AcquireError, Buf, BufferPool, Lease, ReserveError, SplitLease, Writer};

/// Appends as `embedded_io::Write` does. A full buffer is an error; the call never waits.
/// `write_all` appends all or nothing.
impl<L: Lease> Write for Buf<L> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ReserveError> {
        embedded_io::Write::write(self, bytes)
    }

    async fn flush(&mut self) -> Result<(), ReserveError> {
        Ok(())
    }

    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.extend_from_slice(bytes)
    }
}

/// Appends all or nothing. A full buffer is an error; the call never waits.
impl<P: BufferPool<Lease: SplitLease>> Write for Writer<P> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, AcquireError> {
        embedded_io::Write::write(self, bytes)
    }

    async fn flush(&mut self) -> Result<(), AcquireError> {
        Ok(())
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use embedded_io_async::{BufRead, Read, Write};

    use crate::{HeapPool, NoFallback, ReserveError, SharedBytes, Writer};

    fn at_once<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn writes_until_full_and_reads_back() {
        let mut buf = HeapPool::new().acquire(3).unwrap();
        assert_eq!(at_once(buf.write(b"abcd")), Ok(3));
        let full = ReserveError { requested: 1, available: 0 };
        assert_eq!((at_once(buf.write(b"d")), at_once(buf.write_all(b"d"))), (Err(full), Err(full)));
        assert_eq!((at_once(buf.write(b"")), at_once(buf.flush())), (Ok(0), Ok(())));
        let mut view = buf.freeze();
        let mut shared = SharedBytes::from(view.clone());
        let mut two = [0; 2];
        at_once(view.read_exact(&mut two)).unwrap();
        assert_eq!((&two, at_once(view.fill_buf())), (b"ab", Ok(&b"c"[..])));
        BufRead::consume(&mut view, 1);
        assert_eq!(at_once(view.read(&mut two)), Ok(0));
        at_once(shared.read_exact(&mut two)).unwrap();
        assert_eq!((&two, at_once(shared.fill_buf())), (b"ab", Ok(&b"c"[..])));
        BufRead::consume(&mut shared, 1);
        assert_eq!(at_once(shared.read(&mut two)), Ok(0));
    }

    #[test]
    fn a_writer_does_not_wait() {
        let mut writer = Writer::new(HeapPool::new());
        assert_eq!((at_once(writer.write_all(&[1; 400])), at_once(writer.write(b"ab"))), (Ok(()), Ok(2)));
        assert_eq!((at_once(writer.flush()), &writer.filled()[399..]), (Ok(()), &[1, b'a', b'b'][..]));
        assert!(at_once(Writer::new(NoFallback).write_all(b"a")).is_err());
    }
}
