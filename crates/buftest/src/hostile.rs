//! A fallback pool that behaves badly on demand.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bufcore::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, PoolStats};

/// What a [`Hostile`] pool does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Mood {
    /// Serves from the heap.
    Kind,
    /// Panics.
    Panics,
    /// Reports exhaustion.
    Refuses,
    /// Uses the other pool that it was given, then serves from the heap.
    Reenters,
}

/// A pool over the heap whose mood can be changed from outside.
pub struct Hostile {
    heap: HeapPool,
    mood: Arc<AtomicUsize>,
    reenter: Box<dyn FnMut() + Send>,
}

/// Sets the mood of a [`Hostile`] pool that was moved into another one.
#[derive(Debug, Clone)]
pub struct Remote(Arc<AtomicUsize>);

impl Remote {
    /// From now on the pool is in this mood.
    pub fn set(&self, mood: Mood) {
        // ORDER: SeqCst, for ease: a test's switch.
        self.0.store(mood as usize, SeqCst);
    }
}

impl Hostile {
    /// A kind pool, its switch, and what it calls in [`Mood::Reenters`].
    #[must_use]
    pub fn new(reenter: impl FnMut() + Send + 'static) -> (Self, Remote) {
        let mood = Arc::new(AtomicUsize::new(Mood::Kind as usize));
        let pool = Self { heap: HeapPool::new(), mood: Arc::clone(&mood), reenter: Box::new(reenter) };
        (pool, Remote(mood))
    }
}

impl fmt::Debug for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hostile").field("mood", &self.mood).finish_non_exhaustive()
    }
}

impl BufferPool for Hostile {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        // ORDER: SeqCst, as in `Remote::set`.
        let mood = self.mood.load(SeqCst);
        if mood == Mood::Panics as usize {
            panic!("the fallback panics, as it was told to");
        }
        if mood == Mood::Refuses as usize {
            return Err(AcquireError::Exhausted { requested: capacity, available: 0 });
        }
        if mood == Mood::Reenters as usize {
            (self.reenter)();
        }
        self.heap.acquire(capacity)
    }

    fn max_capacity(&self) -> usize {
        self.heap.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.heap.stats()
    }
}
