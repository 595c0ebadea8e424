//! Bytes in buffers: one is taken when there is something to read, written out, and given back.

extern crate alloc;

use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::pin::pin;
use std::io::{self, ErrorKind};

use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;

use super::carrier::{Carrier, Failure, Progress};
use super::sizes::{Sizes, is_wasteful};
use bufworks::net::{ReadError, read_ready};

/// A pool, for one direction of all connections of one worker.
pub(super) struct Pooled<P> {
    pool: RefCell<P>,
    /// Told of each buffer that goes back. One for all workers whose pools are the same.
    freed: Arc<Notify>,
    min: usize,
    max: usize,
    waits: Cell<u64>,
}

impl<P: BufferPool> Pooled<P> {
    /// Reads into buffers of `min` to `max` bytes, or as large as `pool` has them.
    ///
    /// # Errors
    ///
    /// When the pool never has one of `min`.
    pub(super) fn new(pool: P, freed: Arc<Notify>, min: usize, max: usize) -> io::Result<Self> {
        let limit = pool.max_capacity();
        if limit < min {
            let message = format!("the pool's buffers have {limit} bytes at the most, {min} are wanted");
            return Err(io::Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(Self { pool: RefCell::new(pool), freed, min, max: max.min(limit), waits: Cell::new(0) })
    }

    fn acquire(&self, bytes: usize) -> Result<Buf<P::Lease>, AcquireError> {
        self.pool.borrow_mut().acquire(bytes)
    }

    /// What has come, or `None` at the end. Waits for a buffer if there is none: then its bytes wait in the system, and a sender that goes
    /// on sending is slowed down.
    async fn read(
        &self,
        from: &mut ReadHalf<'_>,
        sizes: &mut Sizes,
    ) -> Result<Option<Held<'_, P::Lease>>, ReadError> {
        let held = |buf: Option<Buf<P::Lease>>| buf.map(|buf| Held { buf: Some(buf), freed: &self.freed });
        match read_ready(from, || self.acquire(sizes.next())).await {
            Err(ReadError::Refused(AcquireError::Exhausted { .. })) => {}
            result => return result.map(held),
        }
        sizes.start_over();
        self.waits.set(self.waits.get() + 1);
        loop {
            let mut freed = pin!(self.freed.notified());
            // From here on no release is missed.
            freed.as_mut().enable();
            match read_ready(from, || self.acquire(self.min)).await {
                Err(ReadError::Refused(AcquireError::Exhausted { .. })) => freed.await,
                result => return result.map(held),
            }
        }
    }

    /// Writes all of it.
    async fn write(
        &self,
        to: &mut WriteHalf<'_>,
        mut held: Held<'_, P::Lease>,
        progress: &Progress,
    ) -> io::Result<()> {
        while !held.bytes().is_empty() {
            match to.try_write(held.bytes()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    held.discard_front(n);
                    progress.wrote(n);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    held.compact(|bytes| self.acquire(bytes));
                    to.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<P: BufferPool + 'static> Carrier for Pooled<P> {
    async fn carry(
        &self,
        from: &mut ReadHalf<'_>,
        to: &mut WriteHalf<'_>,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let mut sizes = Sizes::new(self.min, self.max);
        loop {
            let read = self.read(from, &mut sizes).await.map_err(|_| Failure::Read)?;
            let Some(held) = read else { return Ok(()) };
            progress.read();
            sizes.note(held.bytes().len(), held.capacity());
            self.write(to, held, progress).await.map_err(|_| Failure::Write)?;
        }
    }

    fn stats(&self) -> PoolStats {
        self.pool.borrow().stats()
    }

    fn waits(&self) -> u64 {
        self.waits.get()
    }
}

/// A buffer whose end others are told of, also if it ends because its connection does.
struct Held<'a, L: Lease> {
    /// Taken by `drop` alone.
    buf: Option<Buf<L>>,
    freed: &'a Notify,
}

impl<L: Lease> Held<'_, L> {
    fn bytes(&self) -> &[u8] {
        self.buf.as_deref().unwrap_or_default()
    }

    fn capacity(&self) -> usize {
        self.buf.as_ref().map_or(0, Buf::capacity)
    }

    fn discard_front(&mut self, bytes: usize) {
        if let Some(buf) = &mut self.buf {
            buf.discard_front(bytes);
        }
    }

    /// Moves the bytes to a buffer of their size, if theirs is much larger and there is one.
    fn compact(&mut self, acquire: impl FnOnce(usize) -> Result<Buf<L>, AcquireError>) {
        if !is_wasteful(self.bytes().len(), self.capacity()) {
            return;
        }
        let Ok(mut small) = acquire(self.bytes().len()) else { return };
        if small.extend_from_slice(self.bytes()).is_ok() {
            self.buf = Some(small);
            self.freed.notify_waiters();
        }
    }
}

impl<L: Lease> Drop for Held<'_, L> {
    fn drop(&mut self) {
        drop(self.buf.take());
        self.freed.notify_waiters();
    }
}
