//! Users' code that lies, panics and comes back in: as a script says, or as the bytes of a program do.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bufcore::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, PoolStats};

use crate::bytes::Bytes;

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

/// What users' code panics with. It is thrown without a message: a fuzzer takes each that
/// is printed for a finding.
struct OnPurpose;

/// Panics, unless the thread does so already.
pub fn panic_on_purpose() {
    if !thread::panicking() {
        resume_unwind(Box::new(OnPurpose));
    }
}

/// Runs code that may panic on purpose: `None` if it did. Other panics go on.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<OnPurpose>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Locks what a panic on purpose may have left locked.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is let go of by calling it.
type Thing = Box<dyn FnOnce() + Send>;

/// What is let go of in the midst of other calls: buffers, views, pools.
#[derive(Clone, Default)]
pub struct Baggage {
    things: Arc<Mutex<VecDeque<Thing>>>,
}

impl Baggage {
    /// Adds something, which is let go of by calling it.
    pub fn put(&self, thing: impl FnOnce() + Send + 'static) {
        locked(&self.things).push_back(Box::new(thing));
    }

    /// Lets go of the oldest, if there is one; not under the lock.
    pub fn let_go(&self) -> bool {
        let thing = locked(&self.things).pop_front();
        thing.map(|thing| thing()).is_some()
    }

    /// Lets go of all.
    pub fn clear(&self) {
        while self.let_go() {}
    }
}

/// What a fallback does at one of its calls.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// Nothing.
    None,
    /// A buffer with this number of bytes less than asked for.
    Short(usize),
    /// A buffer with this number of bytes more, and as many filled.
    Long(usize, usize),
    /// A buffer of this number of bytes, all filled.
    Other(usize),
    Error(AcquireError),
    MaxCapacity(usize),
    Stats,
    Panic,
    /// Lets go of this number of things, and works.
    Reenter(usize),
}

impl Lie {
    fn decode(bytes: &mut Bytes<'_>) -> Self {
        match bytes.below(12) {
            0 => Self::None,
            1 => Self::Short(bytes.size()),
            2 => Self::Long(bytes.size(), bytes.size()),
            3 => Self::Other(bytes.size()),
            4 => Self::Error(match bytes.below(6) {
                0 => AcquireError::Exhausted { requested: 0, available: usize::MAX },
                1 => AcquireError::Exhausted { requested: usize::MAX, available: 0 },
                2 => AcquireError::TooLarge { requested: 7, limit: usize::MAX },
                3 => AcquireError::TooLarge { requested: 7, limit: 0 },
                4 => AcquireError::OutOfMemory { requested: 3 },
                _ => AcquireError::Exhausted { requested: bytes.size(), available: bytes.size() },
            }),
            5 => Self::MaxCapacity(bytes.pick([0, 1, 1000, usize::MAX / 2, usize::MAX])),
            6 => Self::Stats,
            7..=8 => Self::Panic,
            _ => Self::Reenter(bytes.below(4)),
        }
    }
}

/// The remote of a fallback whose every call is planned.
#[derive(Clone, Default)]
pub struct Script {
    plan: Arc<Mutex<VecDeque<Lie>>>,
    /// What it lets go of.
    pub baggage: Baggage,
}

impl Script {
    /// Plans some of the next calls.
    pub fn plan(&self, bytes: &mut Bytes<'_>) {
        let calls = 1 + bytes.below(4);
        for _ in 0..calls {
            let lie = Lie::decode(bytes);
            locked(&self.plan).push_back(lie);
        }
    }

    /// Plans a panic behind as many honest calls.
    pub fn plan_panic(&self, honest: usize) {
        let calls = (0..honest).map(|_| Lie::None).chain([Lie::Panic]);
        locked(&self.plan).extend(calls);
    }

    /// Returns whether all that was planned has happened.
    pub fn is_done(&self) -> bool {
        locked(&self.plan).is_empty()
    }

    /// From now on the fallback is honest, and nothing is left that it could let go of.
    pub fn end(&self) {
        locked(&self.plan).clear();
        self.baggage.clear();
    }

    /// A fallback that does what is planned. `work` is what else it does where it lets go of
    /// things, with their number.
    pub fn fallback(&self, mut work: impl FnMut(usize) + Send + 'static) -> Scripted {
        let script = self.clone();
        Scripted::new(move |call| {
            let lie = locked(&script.plan).pop_front().unwrap_or(Lie::None);
            script.answer(lie, call, &mut work)
        })
    }

    fn answer(&self, lie: Lie, call: Call, work: &mut dyn FnMut(usize)) -> Answer {
        match (lie, call) {
            (Lie::Short(less), Call::Acquire(asked)) => {
                Answer::Buffer { capacity: asked.min(LIMIT).saturating_sub(less), filled: 0 }
            }
            (Lie::Long(more, filled), Call::Acquire(asked)) => {
                let capacity = asked.min(LIMIT) + more;
                Answer::Buffer { capacity, filled: filled.min(capacity) }
            }
            (Lie::Other(bytes), Call::Acquire(_)) => Answer::Buffer { capacity: bytes, filled: bytes },
            (Lie::Error(error), _) => Answer::Error(error),
            (Lie::MaxCapacity(bytes), _) => Answer::MaxCapacity(bytes),
            (Lie::Stats, _) => Answer::Stats(nonsense()),
            (Lie::Panic, _) => {
                panic_on_purpose();
                Answer::Honest
            }
            (Lie::Reenter(things), _) => {
                for _ in 0..things {
                    self.baggage.let_go();
                }
                work(things);
                Answer::Honest
            }
            _ => Answer::Honest,
        }
    }
}

/// The most that a lying fallback has.
const LIMIT: usize = 1 << 17;

/// Checks that the error of a refused request has the numbers of the request.
#[track_caller]
pub fn check_numbers(error: AcquireError, asked: usize) {
    match error {
        AcquireError::TooLarge { requested, limit: less }
        | AcquireError::Exhausted { requested, available: less } => {
            assert_eq!(requested, asked, "{error}");
            assert!(less < asked, "{error}: that is enough");
        }
        AcquireError::OutOfMemory { requested } => assert_eq!(requested, asked, "{error}"),
        _ => panic!("unknown error {error}"),
    }
}

/// Makes numbers that no pool has.
pub fn nonsense() -> PoolStats {
    let mut stats = PoolStats::default();
    stats.acquired = u64::MAX;
    stats.reused = u64::MAX;
    stats.fresh = u64::MAX;
    stats.fallbacks = u64::MAX;
    stats.exhausted = u64::MAX;
    stats.in_use = usize::MAX;
    stats.in_use_bytes = usize::MAX;
    stats.high_water = usize::MAX;
    stats.high_water_bytes = usize::MAX;
    stats.reserved_bytes = usize::MAX;
    stats.pinned_bytes = usize::MAX;
    stats
}
