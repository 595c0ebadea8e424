//! Users' code that lies, panics and comes back in, as the bytes of the program say.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bufcore::strategy::orphans;
use bufcore::{AcquireError, BufferPool};
use bufshard::ShardPool;
use bufslot::SlotPool;
use buftest::bytes::Bytes;
use buftest::hostile::{Answer, Call, Scripted};
use buftest::trials::fallbacks::nonsense;

/// What users' code panics with. It is thrown without a message, since the fuzzer takes each that is printed for a finding.
struct OnPurpose;

/// Panics, unless the thread does so already.
pub(crate) fn panic_on_purpose() {
    if !thread::panicking() {
        resume_unwind(Box::new(OnPurpose));
    }
}

/// Runs code that may panic on purpose: `None` if it did. Other panics go on.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<OnPurpose>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Locks what a panic on purpose may have left locked.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is let go of by calling it.
type Thing = Box<dyn FnOnce() + Send>;

/// What is let go of in the midst of other calls: buffers, views, pools.
#[derive(Clone, Default)]
pub(crate) struct Baggage {
    things: Arc<Mutex<VecDeque<Thing>>>,
}

impl Baggage {
    /// Adds something, which is let go of by calling it.
    pub(crate) fn put(&self, thing: impl FnOnce() + Send + 'static) {
        locked(&self.things).push_back(Box::new(thing));
    }

    /// Lets go of the oldest, if there is one; not under the lock.
    pub(crate) fn let_go(&self) -> bool {
        let thing = locked(&self.things).pop_front();
        thing.map(|thing| thing()).is_some()
    }

    /// Lets go of all.
    pub(crate) fn clear(&self) {
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
    /// Lets go of this number of things, and uses pools of its own.
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
pub(crate) struct Script {
    plan: Arc<Mutex<VecDeque<Lie>>>,
    pub(crate) baggage: Baggage,
}

impl Script {
    /// Plans some of the next calls.
    pub(crate) fn plan(&self, bytes: &mut Bytes<'_>) {
        let calls = 1 + bytes.below(4);
        for _ in 0..calls {
            let lie = Lie::decode(bytes);
            locked(&self.plan).push_back(lie);
        }
    }

    /// From now on the fallback is honest, and nothing is left that it could let go of.
    pub(crate) fn end(&self) {
        locked(&self.plan).clear();
        self.baggage.clear();
    }

    /// A fallback that does what is planned.
    pub(crate) fn fallback(&self) -> Scripted {
        let script = self.clone();
        let mut others = Others::default();
        Scripted::new(move |call| {
            let lie = locked(&script.plan).pop_front().unwrap_or(Lie::None);
            script.answer(lie, call, &mut others)
        })
    }

    fn answer(&self, lie: Lie, call: Call, others: &mut Others) -> Answer {
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
                others.work(things);
                Answer::Honest
            }
            _ => Answer::Honest,
        }
    }
}

/// The most that a lying fallback has.
const LIMIT: usize = 1 << 17;

/// The pools that users' code has for itself.
#[derive(Default)]
pub(crate) struct Others {
    slot: Option<SlotPool>,
    shard: Option<ShardPool>,
    held: Vec<Box<dyn Any + Send>>,
}

impl Others {
    /// Uses them, and ends them with buffers out.
    pub(crate) fn work(&mut self, which: usize) {
        let slot = self.slot.get_or_insert_with(|| SlotPool::new(512, 4).expect("settings are right"));
        let shard = self.shard.get_or_insert_with(|| ShardPool::new().expect("settings are right"));
        match which {
            0 => {
                self.held.push(Box::new(slot.acquire(100).expect("the heap serves")));
                self.held.push(Box::new(shard.acquire(100).expect("the heap serves")));
            }
            1 => {
                let mut buf = slot.acquire(100).expect("the heap serves");
                slot.grow(&mut buf, 200).expect("the heap serves");
                orphans::sweep();
            }
            2 => {
                self.slot = None;
                self.shard = None;
            }
            _ => self.held.clear(),
        }
        self.held.truncate(8);
    }
}
