//! Bytes in buffers: one is taken when there is something to read, written out, and given back; or written by another thread, with a queue
//! in between.

extern crate alloc;

use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::pin::pin;
use std::io::{self, ErrorKind};

use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::coop::consume_budget;
use tokio_util::task::AbortOnDropHandle;

use super::carrier::{Carrier, Failure, Progress};
use super::sizes::{Sizes, is_wasteful};
use bufworks::net::ReadError;

/// A pool, for one direction of all connections of one worker.
pub(super) struct Pooled<P> {
    pool: RefCell<P>,
    /// Told of each buffer that goes back. One for all workers whose pools are the same.
    freed: Arc<Notify>,
    min: usize,
    max: usize,
    waits: Cell<u64>,
    writers: Option<Writers>,
}

/// Who writes, where it is not who reads.
#[derive(Debug, Clone)]
pub(super) struct Writers {
    pub(super) runtime: Handle,
    /// Buffers that may wait for a writer, in each direction of a connection.
    pub(super) queue: usize,
}

impl<P: BufferPool> Pooled<P> {
    /// Reads into buffers of `min` to `max` bytes, or as large as `pool` has them.
    ///
    /// # Errors
    ///
    /// When the pool never has one of `min`.
    pub(super) fn new(
        pool: P,
        freed: Arc<Notify>,
        min: usize,
        max: usize,
        writers: Option<Writers>,
    ) -> io::Result<Self> {
        let limit = pool.max_capacity();
        if limit < min {
            let message = format!("the pool's buffers have at most {limit} bytes, {min} are wanted");
            return Err(io::Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(Self { pool: RefCell::new(pool), freed, min, max: max.min(limit), waits: Cell::new(0), writers })
    }

    fn acquire(&self, bytes: usize) -> Result<Buf<P::Lease>, AcquireError> {
        self.pool.borrow_mut().acquire(bytes)
    }

    /// What has come, or `None` at the end. Waits for a buffer if there is none: then its bytes wait in the system, and a sender that
    /// continues to send is slowed down.
    async fn read(
        &self,
        from: &OwnedReadHalf,
        sizes: &mut Sizes,
    ) -> Result<Option<Held<P::Lease>>, ReadError> {
        match self.read_with(from, || self.acquire(sizes.next())).await {
            Err(ReadError::Acquire(AcquireError::Exhausted { .. })) => {}
            result => return result,
        }
        sizes.start_over();
        self.waits.set(self.waits.get() + 1);
        loop {
            let mut freed = pin!(self.freed.notified());
            // From here on no release is missed.
            freed.as_mut().enable();
            match self.read_with(from, || self.acquire(self.min)).await {
                Err(ReadError::Acquire(AcquireError::Exhausted { .. })) => freed.await,
                result => return result,
            }
        }
    }

    /// What has come, in a buffer that is taken when something has.
    ///
    /// As [`read_ready`](bufworks::net::read_ready) does, but others are told of a buffer that goes back empty as well: one taken for the end,
    /// or because the socket seemed readable. On another worker somebody may have found none meanwhile.
    async fn read_with(
        &self,
        from: &OwnedReadHalf,
        acquire: impl Fn() -> Result<Buf<P::Lease>, AcquireError>,
    ) -> Result<Option<Held<P::Lease>>, ReadError> {
        loop {
            // A connection that always has bytes lets the others have their turn.
            consume_budget().await;
            from.readable().await?;
            let buf = acquire().map_err(ReadError::Acquire)?;
            let mut held = Held { buf, freed: Freed(Arc::clone(&self.freed)) };
            match from.try_read_buf(&mut held.buf) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(held)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes what it reads before it reads on.
    async fn carry_directly(
        &self,
        from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let mut sizes = Sizes::new(self.min, self.max);
        while let Some(held) = self.read(&from, &mut sizes).await.map_err(|_| Failure::Read)? {
            progress.read();
            sizes.note(held.buf.len(), held.buf.capacity());
            let compact = |held: &mut Held<P::Lease>| held.compact(|bytes| self.acquire(bytes));
            write(&to, held, progress, compact).await.map_err(|_| Failure::Write)?;
        }
        pass_on_end(&mut to).await;
        Ok(())
    }

    /// Queues what it reads, in buffers of its size.
    async fn carry_queued(
        &self,
        from: OwnedReadHalf,
        to: OwnedWriteHalf,
        progress: &Arc<Progress>,
        writers: &Writers,
    ) -> Result<(), Failure> {
        let (queue, queued) = channel(writers.queue);
        let writer = writers.runtime.spawn(write_queued(to, queued, Arc::clone(progress)));
        let writer = AbortOnDropHandle::new(writer);
        let mut sizes = Sizes::new(self.min, self.max);
        let ended = loop {
            let mut held = match self.read(&from, &mut sizes).await {
                Ok(Some(held)) => held,
                Ok(None) => break Ok(()),
                Err(_) => break Err(Failure::Read),
            };
            progress.read();
            sizes.note(held.buf.len(), held.buf.capacity());
            held.compact(|bytes| self.acquire(bytes));
            if queue.send(held).await.is_err() {
                // The writer is gone, and says so below.
                break Ok(());
            }
        };
        drop(queue);
        // Bytes that were read are written, however the sender ended.
        match writer.await {
            Ok(Ok(())) => ended,
            _ => Err(Failure::Write),
        }
    }
}

/// Writes all of `held`; `compact` may change its place when it has to wait.
async fn write<L: Lease>(
    to: &OwnedWriteHalf,
    mut held: Held<L>,
    progress: &Progress,
    compact: impl Fn(&mut Held<L>),
) -> io::Result<()> {
    while !held.buf.is_empty() {
        match to.try_write(&held.buf) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                held.buf.consume(n);
                progress.wrote(n);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                compact(&mut held);
                to.writable().await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn write_queued<L: Lease>(
    mut to: OwnedWriteHalf,
    mut queued: Receiver<Held<L>>,
    progress: Arc<Progress>,
) -> io::Result<()> {
    while let Some(held) = queued.recv().await {
        write(&to, held, &progress, |_| ()).await?;
    }
    pass_on_end(&mut to).await;
    Ok(())
}

async fn pass_on_end(to: &mut OwnedWriteHalf) {
    // The other side may have closed everything already, which is as good.
    drop(to.shutdown().await);
}

impl<P: BufferPool + 'static> Carrier for Pooled<P> {
    async fn carry(
        &self,
        from: OwnedReadHalf,
        to: OwnedWriteHalf,
        progress: &Arc<Progress>,
    ) -> Result<(), Failure> {
        match &self.writers {
            Some(writers) => self.carry_queued(from, to, progress, writers).await,
            None => self.carry_directly(from, to, progress).await,
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
struct Held<L: Lease> {
    buf: Buf<L>,
    /// Dropped after the buffer, as it stands below.
    freed: Freed,
}

/// Tells those who wait for a buffer that one went back.
struct Freed(Arc<Notify>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

impl<L: Lease> Held<L> {
    /// Moves the bytes to a buffer of their size, if theirs is much larger and there is one.
    fn compact(&mut self, acquire: impl FnOnce(usize) -> Result<Buf<L>, AcquireError>) {
        if !is_wasteful(self.buf.len(), self.buf.capacity()) {
            return;
        }
        let Ok(mut small) = acquire(self.buf.len()) else { return };
        if small.extend_from_slice(&self.buf).is_ok() {
            self.buf = small;
            self.freed.0.notify_waiters();
        }
    }
}
