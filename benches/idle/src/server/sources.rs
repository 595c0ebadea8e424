//! Where a server that reads into pooled buffers has them from.

use core::future::{Future, ready};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bufworks::any::{AnyBuilder, AnyLease};
use bufworks::bump::{BumpLease, BumpPool};
use bufworks::shard::{ShardLease, ShardPool};
use bufworks::{AcquireError, AnyPool, Buf, Lease, Watch};

/// A pool that all connections share.
pub(super) trait Source: Clone + Send + Sync + 'static {
    type Lease: Lease;

    /// A buffer of at least `bytes`, now.
    fn acquire(&self, bytes: usize) -> Result<Buf<Self::Lease>, AcquireError>;

    /// A buffer of at least `bytes`, when there is one.
    fn wait(&self, bytes: usize) -> impl Future<Output = Result<Buf<Self::Lease>, AcquireError>> + Send {
        ready(self.acquire(bytes))
    }

    /// The most bytes that it had of the system at once, if it has a bound.
    fn most_bytes(&self) -> Option<usize> {
        None
    }
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

    fn acquire(&self, bytes: usize) -> Result<Buf<ShardLease>, AcquireError> {
        self.pool.acquire(bytes)
    }

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

/// The bump-pointer shards.
#[derive(Debug, Clone)]
pub(super) struct Bump(pub(super) BumpPool);

impl Source for Bump {
    type Lease = BumpLease;

    fn acquire(&self, bytes: usize) -> Result<Buf<BumpLease>, AcquireError> {
        self.0.acquire(bytes)
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

    fn acquire(&self, bytes: usize) -> Result<Buf<AnyLease>, AcquireError> {
        let from = |pool: &Mutex<AnyPool>| pool.lock().unwrap_or_else(PoisonError::into_inner).acquire(bytes);
        from(&self.pool).or_else(|_| from(&self.heap))
    }
}
