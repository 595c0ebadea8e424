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

    /// Takes a buffer of at least `bytes` bytes, at least one.
    fn acquire(&mut self, bytes: usize) -> Result<Self::Buf, AcquireError>;
}

/// One of our pools, or a handle to one.
pub(crate) struct Pooled<P>(P);

impl<P, L> Source for Pooled<P>
where
    P: BufferPool<Lease = L> + Send + 'static,
    L: Lease + Send,
    Buf<L>: Send,
{
    type Buf = Buf<L>;

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Result<Buf<L>, AcquireError> {
        self.0.acquire(bytes)
    }
}

/// What one writes without a pool.
pub(crate) struct Vectors;

impl Source for Vectors {
    type Buf = Vec<u8>;

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Result<Vec<u8>, AcquireError> {
        Ok(Vec::with_capacity(bytes))
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
fn handles<P: Clone>(pool: &P, count: usize) -> Vec<Pooled<P>> {
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
            AnyBuilder::Slot(builder) | AnyBuilder::BoundedSlot(builder) => {
                visitor.visit(|| (0..count).map(|_| builder.build_with(NoFallback).map(Pooled)).collect())
            }
            AnyBuilder::Ring(builder) => {
                visitor.visit(|| (0..count).map(|_| builder.build().map(Pooled)).collect())
            }
            AnyBuilder::Bump(builder) => visitor.visit(|| Ok(handles(&builder.build()?, count))),
            AnyBuilder::Shard(builder) => visitor.visit(|| Ok(handles(&builder.build()?, count))),
            builder => visitor.visit(|| {
                let pool = builder.build()?;
                let handle = |_| pool.share().map_or_else(|| builder.build(), Ok).map(Pooled::<AnyPool>);
                (0..count).map(handle).collect()
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

/// Asks the source, and the heap where it refuses, which is counted.
#[inline(always)]
pub(crate) fn take<S: Source>(source: &mut S, bytes: usize, refused: &mut u64) -> Held<S::Buf> {
    match source.acquire(bytes) {
        Ok(buf) => Held::Pool(buf),
        Err(_) => {
            *refused += 1;
            Held::Heap(Vec::with_capacity(bytes))
        }
    }
}
