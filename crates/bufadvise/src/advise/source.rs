//! The strategies as a replay sees them: something that is asked for buffers, and can have none.

use bufcore::{AcquireError, Buf, BufferPool, ConfigError, Lease, NoFallback};
use bufworks::AnyPool;
use bufworks::any::AnyBuilder;

use super::candidate::Candidate;
use crate::measure::block::Block;

/// A pool, or a handle to one, as one recorded thread has it.
pub(crate) trait Source: Send + 'static {
    /// What it hands out. Dropping it is the release.
    type Buf: Block + Send;

    /// Whether all sources of a candidate are handles to one pool.
    const SHARED: bool;

    /// Takes a buffer of at least `bytes` bytes, at least one.
    fn acquire(&mut self, bytes: usize) -> Result<Self::Buf, AcquireError>;

    /// Bytes that the pool holds.
    fn reserved(&self) -> usize;
}

/// One of our pools. `SHARED` says whether it is a handle.
pub(crate) struct Pooled<P, const SHARED: bool>(P);

impl<P, L, const SHARED: bool> Source for Pooled<P, SHARED>
where
    P: BufferPool<Lease = L> + Send + 'static,
    L: Lease + Send,
    Buf<L>: Send,
{
    type Buf = Buf<L>;
    const SHARED: bool = SHARED;

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Result<Buf<L>, AcquireError> {
        self.0.acquire(bytes)
    }

    fn reserved(&self) -> usize {
        self.0.stats().reserved_bytes
    }
}

/// What one writes without a pool.
pub(crate) struct Vectors;

impl Source for Vectors {
    type Buf = Vec<u8>;
    const SHARED: bool = true;

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Result<Vec<u8>, AcquireError> {
        Ok(Vec::with_capacity(bytes))
    }

    fn reserved(&self) -> usize {
        0
    }
}

/// What is done with a candidate's sources.
pub(crate) trait Visitor {
    /// What comes of it.
    type Out;

    /// Does it. `make` builds the sources, one for each thread that acquires.
    fn visit<S: Source>(self, make: impl FnOnce() -> Result<Vec<S>, ConfigError>) -> Self::Out;
}

/// Makes `count` handles to one pool.
fn handles<P: Clone>(pool: &P, count: usize) -> Vec<Pooled<P, true>> {
    (0..count).map(|_| Pooled(pool.clone())).collect()
}

impl Candidate {
    /// Hands the sources that `count` threads have to the visitor.
    pub(crate) fn accept<V: Visitor>(&self, count: usize, visitor: V) -> V::Out {
        let builder = match *self {
            Self::Vec => return visitor.visit(|| Ok((0..count).map(|_| Vectors).collect())),
            Self::Pool(builder) => builder,
        };
        match builder {
            // What the pool cannot give is counted here, and taken from the heap here too.
            AnyBuilder::Slot(builder) | AnyBuilder::BoundedSlot(builder) => visitor.visit(|| {
                (0..count).map(|_| builder.build_with(NoFallback).map(Pooled::<_, false>)).collect()
            }),
            AnyBuilder::Ring(builder) => {
                visitor.visit(|| (0..count).map(|_| builder.build().map(Pooled::<_, false>)).collect())
            }
            AnyBuilder::Bump(builder) => visitor.visit(|| Ok(handles(&builder.build()?, count))),
            AnyBuilder::Shard(builder) => visitor.visit(|| Ok(handles(&builder.build()?, count))),
            AnyBuilder::Heap(builder) => {
                visitor.visit(|| (0..count).map(|_| builder.build().map(Pooled::<_, false>)).collect())
            }
            builder if self.one_per_thread() => {
                visitor.visit(|| (0..count).map(|_| builder.build().map(Pooled::<_, false>)).collect())
            }
            builder => visitor.visit(|| {
                let pool = builder.build()?;
                let handles = (0..count).filter_map(|_| pool.share());
                Ok(handles.map(Pooled::<AnyPool, true>).collect())
            }),
        }
    }
}

/// A buffer of a source, or of the heap where the source had none.
pub(crate) enum Held<B> {
    Pool(B),
    Heap(Vec<u8>),
}

// SAFETY: what either of them promises.
unsafe impl<B: Block> Block for Held<B> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        match self {
            Self::Pool(buf) => buf.start(),
            Self::Heap(vector) => vector.start(),
        }
    }
}

/// Requests that a source did not serve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Refused {
    /// Had nothing to give at that moment.
    pub(crate) exhausted: u64,
    /// Could never have served them.
    pub(crate) too_large: u64,
}

impl Refused {
    /// Adds both up.
    #[must_use]
    pub(crate) fn all(&self) -> u64 {
        self.exhausted + self.too_large
    }

    /// Asks the source, and the heap where it refuses.
    #[inline(always)]
    pub(crate) fn take<S: Source>(&mut self, source: &mut S, bytes: usize) -> Held<S::Buf> {
        match source.acquire(bytes) {
            Ok(buf) => Held::Pool(buf),
            Err(error) => Held::Heap(self.fall_back(error, bytes)),
        }
    }

    #[cold]
    #[inline(never)]
    fn fall_back(&mut self, error: AcquireError, bytes: usize) -> Vec<u8> {
        match error {
            AcquireError::TooLarge { .. } => self.too_large += 1,
            _ => self.exhausted += 1,
        }
        Vec::with_capacity(bytes)
    }
}
