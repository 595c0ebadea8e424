//! Fallback pools that behave badly on demand.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Sets the pool's mood from now on.
    pub fn set(&self, mood: Mood) {
        // ORDER: SeqCst, for ease: a test's switch.
        self.0.store(mood as usize, SeqCst);
    }
}

impl Hostile {
    /// Makes a kind pool, with its switch; `reenter` is what it calls in [`Mood::Reenters`].
    pub fn new(reenter: impl FnMut() + Send + 'static) -> (Self, Remote) {
        let mood = Arc::new(AtomicUsize::new(Mood::Kind as usize));
        let pool = Self { heap: HeapPool::new(), mood: Arc::clone(&mood), reenter: Box::new(reenter) };
        (pool, Remote(mood))
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

/// A call of a [`Scripted`] pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `acquire`, of this many bytes.
    Acquire(usize),
    /// `max_capacity`.
    MaxCapacity,
    /// `stats`.
    Stats,
}

/// What a [`Scripted`] pool answers. An answer to another call than the one that was made counts as
/// [`Honest`](Self::Honest).
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Answer {
    /// What the heap says.
    Honest,
    /// To `acquire`: a buffer of `capacity` bytes, whatever was asked for, of which `filled` are
    /// filled, with ones.
    Buffer {
        /// The bytes of the buffer.
        capacity: usize,
        /// How many of them are filled.
        filled: usize,
    },
    /// To `acquire`: this error.
    Error(AcquireError),
    /// To `max_capacity`: this number.
    MaxCapacity(usize),
    /// To `stats`: these numbers.
    Stats(PoolStats),
}

/// A pool over the heap that does what a script says, for each call: it lies, panics, or runs code
/// of the script's.
pub struct Scripted {
    heap: HeapPool,
    script: Box<Mutex<dyn FnMut(Call) -> Answer + Send>>,
}

impl Scripted {
    /// Makes a pool that asks `script` what to do.
    pub fn new(script: impl FnMut(Call) -> Answer + Send + 'static) -> Self {
        Self { heap: HeapPool::new(), script: Box::new(Mutex::new(script)) }
    }

    fn ask(&self, call: Call) -> Answer {
        // A script that panicked is asked again.
        (self.script.lock().unwrap_or_else(PoisonError::into_inner))(call)
    }
}

impl BufferPool for Scripted {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        match self.ask(Call::Acquire(capacity)) {
            Answer::Error(error) => Err(error),
            Answer::Buffer { capacity, filled } => {
                let mut buf = self.heap.acquire(capacity)?;
                buf.resize(filled, 1).expect("the script fills no more than there is");
                Ok(buf)
            }
            _ => self.heap.acquire(capacity),
        }
    }

    fn max_capacity(&self) -> usize {
        match self.ask(Call::MaxCapacity) {
            Answer::MaxCapacity(bytes) => bytes,
            _ => self.heap.max_capacity(),
        }
    }

    fn stats(&self) -> PoolStats {
        match self.ask(Call::Stats) {
            Answer::Stats(stats) => stats,
            _ => self.heap.stats(),
        }
    }
}
