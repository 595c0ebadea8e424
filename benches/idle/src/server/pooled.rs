//! Frames in buffers of a pool that all connections share: one is taken when there is something to
//! read, or when the length of a frame is known. A silent connection holds none.

use core::future::{Future, ready};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bufworks::any::{AnyBuilder, AnyLease};
use bufworks::bump::{BumpLease, BumpPool};
use bufworks::frames::{FrameReader, LengthDelimited};
use bufworks::shard::{ShardLease, ShardPool};
use bufworks::{AcquireError, AnyPool, Buf, Lease, Watch};
use tokio::net::TcpStream;

use super::READ_BYTES;
use crate::wire::{self, MAX_FRAME_BYTES};

/// A pool.
pub(super) trait Source: Clone + Send + Sync + 'static {
    type Lease: Lease;

    /// A buffer of at least `bytes`, when there is one.
    fn wait(&self, bytes: usize) -> impl Future<Output = Result<Buf<Self::Lease>, AcquireError>> + Send;

    /// The most bytes that it had of the system at once, if it has a bound.
    fn most_bytes(&self) -> Option<usize> {
        None
    }
}

/// Serves a connection. With `by_frame` a header is read by itself: then nothing of the pool is held
/// while the frame's buffer is waited for, and its bytes wait in the system.
pub(super) async fn serve<S: Source>(socket: TcpStream, source: S, by_frame: bool) -> io::Result<()> {
    let frames = FrameReader::new(socket, LengthDelimited::new(MAX_FRAME_BYTES)).chunks_of(READ_BYTES);
    let mut frames = if by_frame { frames.by_frame() } else { frames };
    while let Some(frame) = frames.next_frame_async(|length| source.wait(length)).await? {
        wire::write_answer(frames.get_mut(), &frame).await?;
    }
    Ok(())
}

/// The sharded pool, for which one can wait.
#[derive(Debug, Clone)]
pub(super) struct Shard {
    pool: ShardPool,
    most_bytes: Arc<AtomicUsize>,
}

impl Shard {
    pub(super) fn new(pool: ShardPool) -> Self {
        Self { pool, most_bytes: Arc::default() }
    }
}

impl Source for Shard {
    type Lease = ShardLease;

    async fn wait(&self, bytes: usize) -> Result<Buf<ShardLease>, AcquireError> {
        let buf = self.pool.acquire_async(bytes).await?;
        // ORDER: Relaxed: a number, which orders nothing.
        self.most_bytes.fetch_max(self.pool.stats().reserved_bytes, Ordering::Relaxed);
        Ok(buf)
    }

    fn most_bytes(&self) -> Option<usize> {
        // ORDER: Relaxed, as in `wait`.
        Some(self.most_bytes.load(Ordering::Relaxed))
    }
}

impl Source for BumpPool {
    type Lease = BumpLease;

    fn wait(&self, bytes: usize) -> impl Future<Output = Result<Buf<BumpLease>, AcquireError>> + Send {
        ready(self.acquire(bytes))
    }
}

/// A pool of one thread at a time behind a lock, and the heap for what it refuses.
#[derive(Debug, Clone)]
pub(super) struct Locked {
    pool: Arc<Mutex<AnyPool>>,
    heap: Arc<Mutex<AnyPool>>,
}

impl Locked {
    /// The strategy `name`, with its defaults.
    pub(super) fn named(name: &str) -> Result<Self> {
        let build = |name| Ok::<_, anyhow::Error>(Arc::new(Mutex::new(AnyBuilder::named(name)?.build()?)));
        Ok(Self { pool: build(name)?, heap: build("heap")? })
    }

    /// What a keeper watches: it has the lock for as long as it looks.
    pub(super) fn watched(&self) -> &impl Watch {
        &self.pool
    }
}

impl Source for Locked {
    type Lease = AnyLease;

    fn wait(&self, bytes: usize) -> impl Future<Output = Result<Buf<AnyLease>, AcquireError>> + Send {
        let from = |pool: &Mutex<AnyPool>| pool.lock().unwrap_or_else(PoisonError::into_inner).acquire(bytes);
        ready(from(&self.pool).or_else(|_| from(&self.heap)))
    }
}
