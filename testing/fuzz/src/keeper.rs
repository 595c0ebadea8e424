//! A keeper with a clock that is made up, over pools of the program and of users. Those of users lie, panic, come back in, and end what
//! they are asked about.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bufcore::PoolStats;
use bufkeeper::{Keeper, KeeperHandle, PressureSource, Trim, Watch};
use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, guarded, locked, panic_on_purpose};

/// The age of the first keeper.
const AGE: Duration = Duration::from_millis(400);
/// The longest pause of every keeper, and the most pauses of an age that a pool is left alone for.
const LONGEST: Duration = Duration::from_secs(100);
const AGES: u32 = 8;
/// After that, every pool has its turn.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The most pools of users that a program has.
const USERS: usize = 6;

/// A pool of the program's, of any strategy.
type Pool = Box<dyn Trim + Send>;

/// What a user's pool does at one of its calls, besides or in place of what it is asked.
#[derive(Debug, Clone, Copy)]
enum Lie {
    Panic,
    /// Ends the pool that it has: a keeper's weak handle may find it ended in the midst of a look.
    End,
    /// Frees all.
    TrimAll,
    /// Says that it has this number of bytes.
    Bytes(usize),
    /// Lets go of something.
    LetGo,
    /// Gives the keeper another pool.
    Watch,
}

/// A user's pool, which has one of the program's for as long as it likes.
struct User {
    pool: Mutex<Option<Pool>>,
    plan: Mutex<VecDeque<Lie>>,
    baggage: Baggage,
    keeper: KeeperHandle,
}

impl User {
    /// Does what is planned. A number takes the place of the true one.
    fn lie(&self) -> Option<usize> {
        let lie = locked(&self.plan).pop_front()?;
        match lie {
            Lie::Panic => panic_on_purpose(),
            // Not under the lock.
            Lie::End => drop(self.take()),
            Lie::TrimAll => self.with(|pool| pool.trim()),
            Lie::Bytes(bytes) => return Some(bytes),
            Lie::LetGo => {
                self.baggage.let_go();
            }
            Lie::Watch => self.keeper.watch(&Arc::new(Forgetful)),
        }
        None
    }

    fn take(&self) -> Option<Pool> {
        locked(&self.pool).take()
    }

    /// Calls `f` with the pool, if there is one, and not under the lock: what it lets go of may come back in.
    fn with<T: Default>(&self, f: impl FnOnce(&mut Pool) -> T) -> T {
        let Some(mut pool) = self.take() else { return T::default() };
        let result = f(&mut pool);
        let before = locked(&self.pool).replace(pool);
        drop(before);
        result
    }
}

impl Trim for &User {
    fn trim(&mut self) {
        self.lie();
        self.with(|pool| pool.trim());
    }

    fn trim_idle(&mut self, age: Duration) {
        assert!(age > Duration::ZERO, "an age of nothing");
        self.lie();
        // The clock of the keeper is not that of the pool.
        self.with(|pool| pool.trim_idle(Duration::ZERO));
    }

    fn stats(&self) -> Option<PoolStats> {
        let mut stats = self.with(|pool| pool.stats())?;
        for number in [&mut stats.reserved_bytes, &mut stats.idle_bytes] {
            *number = self.lie().unwrap_or(*number);
        }
        Some(stats)
    }

    fn uses(&self) -> usize {
        self.lie().unwrap_or_else(|| self.with(|pool| pool.uses()))
    }
}

/// A pool that ends at once: it is given to the keeper by its last owner.
struct Forgetful;

impl Trim for &Forgetful {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        None
    }
}

/// A keeper, and what it has to do by its clock.
pub(crate) struct Keeping {
    /// `None` before the first step, since making one reads files, and for a moment while it gets a pool.
    keeper: Option<Keeper>,
    users: Vec<Arc<User>>,
    baggage: Baggage,
    age: Duration,
    now: Instant,
    /// The latest time that it was told.
    latest: Instant,
}

impl Keeping {
    /// A keeper with nothing to do, whose users' pools let go of what is in `baggage`.
    pub(crate) fn new(baggage: Baggage) -> Self {
        let now = Instant::now();
        Self { keeper: None, users: Vec::new(), baggage, age: AGE, now, latest: now }
    }

    /// Another keeper in the place of this one, whose pools it does not have.
    fn restart(&mut self, age: Duration) {
        let keeper = Keeper::new().purge_delay(age).max_sleep(LONGEST).pressure(PressureSource::none());
        let before = self.keeper.replace(keeper);
        (self.age, self.latest) = (age, self.now);
        drop(before);
    }

    /// One step: `watched` is watched, or what `handle` makes of it, or the clock advances.
    pub(crate) fn step<P: Watch>(
        &mut self,
        bytes: &mut Bytes<'_>,
        watched: &P,
        handle: impl FnOnce(&P) -> Option<Pool>,
    ) {
        if self.keeper.is_none() {
            self.restart(AGE);
        }
        let (kind, at) = (bytes.below(16), bytes.below(256) % self.users.len().max(1));
        let Some(keeper) = &self.keeper else { return };
        match kind {
            0 => self.keeper = self.keeper.take().map(|keeper| keeper.watch(watched)),
            1 => keeper.handle().watch(watched),
            2..=4 if self.users.len() < USERS => {
                let (pool, plan) = (Mutex::new(handle(watched)), Mutex::default());
                let user = User { pool, plan, baggage: self.baggage.clone(), keeper: keeper.handle() };
                let user = Arc::new(user);
                keeper.handle().watch(&user);
                self.users.push(user);
            }
            5 if !self.users.is_empty() => drop(self.users.swap_remove(at)),
            6..=8 if !self.users.is_empty() => {
                for _ in 0..=bytes.below(4) {
                    let lie = match bytes.below(8) {
                        0..=1 => Lie::Panic,
                        2 => Lie::End,
                        3 => Lie::TrimAll,
                        4 => Lie::Bytes(bytes.pick([0, 1, 5000, usize::MAX])),
                        5 => Lie::LetGo,
                        _ => Lie::Watch,
                    };
                    locked(&self.users[at].plan).push_back(lie);
                }
            }
            9 => {
                let age = bytes.pick([10, 100, 400, 100_000]);
                self.restart(Duration::from_millis(age));
            }
            // A clock that goes back.
            10 => self.now = self.now.checked_sub(self.age).unwrap_or(self.now),
            _ => {
                let pause = match bytes.below(6) {
                    0 => Duration::ZERO,
                    1 => self.age / 2,
                    2 => self.age * AGES,
                    3 => LONGEST,
                    _ => self.age,
                };
                self.now += pause;
                self.tick();
            }
        }
    }

    /// A look, which has to come back with a later time, and not one that is too late.
    fn tick(&mut self) {
        self.latest = self.latest.max(self.now);
        let Some(keeper) = &mut self.keeper else { return };
        let next = keeper.tick(self.now);
        assert!(next > self.now, "it is to be called again at once");
        let longest = LONGEST.max(self.age * AGES);
        assert!(next <= self.latest + longest, "{:?} from the latest look", next - self.latest);
    }

    /// Looks once more, then lets go of all users' pools. All others have ended: then the keeper has none.
    pub(crate) fn end(mut self) {
        self.now += DAY;
        self.tick();
        for user in self.users.drain(..) {
            locked(&user.plan).clear();
            guarded(|| drop(user));
        }
        for _ in 0..2 {
            // A pool that was added in the first look is new in the second.
            self.now += DAY + DAY;
            self.tick();
        }
        let watched = self.keeper.as_ref().map_or(0, Keeper::watched);
        assert_eq!(watched, 0, "pools that have ended are watched");
    }
}
