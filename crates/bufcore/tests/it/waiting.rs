//! Requests that wait for pools of which the test says what they have.

use std::cell::Cell;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use bufcore::strategy::{Holder, Teller, Told, WaitPlace, WaitingPool, WaitingRequest, WaitingRow};
use bufcore::{AcquireError, Buf, HeapLease, HeapPool};
use buftest::tasks::{counting, poll};

const LONG: Duration = Duration::from_secs(30);

/// A pool that wakes nobody, and has memory from some look on.
struct Silent {
    looks: usize,
    serves_at: usize,
    plain: usize,
    refuses: AcquireError,
    place: WaitPlace,
}

impl Silent {
    fn new(serves_at: usize, plain: usize) -> Self {
        let refuses = AcquireError::Exhausted { requested: 8, available: 3 };
        Self { looks: 0, serves_at, plain, refuses, place: WaitPlace::new() }
    }
}

impl WaitingPool for &mut Silent {
    type Lease = HeapLease;

    fn request(&mut self, bytes: usize) -> Result<Buf<HeapLease>, AcquireError> {
        self.request_again(bytes).ok_or(self.refuses)
    }

    fn request_again(&mut self, bytes: usize) -> Option<Buf<HeapLease>> {
        self.looks += 1;
        if self.looks >= self.serves_at { HeapPool::new().acquire(bytes).ok() } else { None }
    }

    fn can_wait_for(&self, bytes: usize) -> bool {
        bytes <= 8
    }

    fn place(&self) -> &WaitPlace {
        &self.place
    }

    fn tell(&mut self, _: usize, is_first: bool) -> Told {
        Told { out: 2, plain: if is_first { self.plain } else { 0 } }
    }
}

/// A release that wakes nobody is found by a thread after some milliseconds.
#[test]
fn a_thread_looks_again_soon_beside_plain_releases() {
    let mut pool = Silent::new(5, 1);
    let started = Instant::now();
    assert!(WaitingRequest::new(&mut pool, 8).block(LONG).is_ok());
    assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    // Without such buffers it trusts to be woken, and looks twice a second.
    let mut pool = Silent::new(3, 0);
    let started = Instant::now();
    assert!(WaitingRequest::new(&mut pool, 8).block(LONG).is_ok());
    assert!(started.elapsed() >= Duration::from_millis(400), "{:?}", started.elapsed());
}

/// A task looks three times by itself, and then no more.
#[test]
fn a_task_looks_again_beside_plain_releases() {
    for (plain, expected) in [(1, 3), (0, 0)] {
        let mut pool = Silent::new(usize::MAX, plain);
        let (wakes, waker) = counting();
        let mut request = pin!(WaitingRequest::new(&mut pool, 8));
        for _ in 0..10 {
            assert!(poll(request.as_mut(), &waker).is_pending());
        }
        assert_eq!(wakes.count(), expected);
    }
}

/// What it was refused with at first it is refused with when the time is over; what waiting does
/// not help is refused at once.
#[test]
fn refusals() {
    let none = AcquireError::OutOfMemory { requested: 8 };
    for refuses in [none, AcquireError::Exhausted { requested: 8, available: 3 }] {
        let mut pool = Silent { refuses, ..Silent::new(usize::MAX, 0) };
        let refused = WaitingRequest::new(&mut pool, 8).block(Duration::from_millis(1));
        assert_eq!(refused.map(drop), Err(refuses));
        assert!(pool.looks >= 2, "it waited");
        pool.looks = 0;
        assert_eq!(WaitingRequest::new(&mut pool, 9).block(LONG).map(drop), Err(refuses));
        assert_eq!(pool.looks, 1);
        let mut served = Silent { refuses, ..Silent::new(2, 0) };
        assert!(WaitingRequest::new(&mut served, 8).block(LONG).is_ok());
    }
    let never = AcquireError::TooLarge { requested: 8, limit: 4 };
    let mut pool = Silent { refuses: never, ..Silent::new(usize::MAX, 0) };
    let (_, waker) = counting();
    let polled = poll(pin!(WaitingRequest::new(&mut pool, 8)).as_mut(), &waker);
    assert!(matches!(polled, Poll::Ready(Err(error)) if error == never));
}

/// A row of places of a byte each.
struct Row {
    places: Vec<Cell<Holder>>,
    bytes: usize,
    /// Calls that look at a place.
    calls: Cell<usize>,
}

impl Row {
    fn new(places: impl Iterator<Item = Holder>, bytes: usize) -> Self {
        Self { places: places.map(Cell::new).collect(), bytes, calls: Cell::new(0) }
    }
}

impl WaitingRow for Row {
    type Place = usize;

    fn first(&self) -> Option<usize> {
        (!self.places.is_empty()).then_some(0)
    }

    fn behind(&self, place: usize) -> Option<usize> {
        self.calls.update(|calls| calls + 1);
        Some(place + 1).filter(|&next| next < self.places.len())
    }

    fn has_room(&self, first: usize, last: usize) -> bool {
        last - first + 1 >= self.bytes
    }

    fn look(&self, place: usize) -> Holder {
        self.places[place].get()
    }

    fn tell(&self, place: usize) -> Holder {
        let was = self.places[place].get();
        assert_ne!(was, Holder::Pool, "nobody releases it");
        if was != Holder::Nobody {
            self.places[place].set(Holder::Told);
        }
        was
    }
}

/// In random rows, each window that is not free altogether has one that was told. What is counted
/// is right.
#[test]
fn one_of_each_window_is_told() {
    const ALL: [Holder; 5] = [Holder::Nobody, Holder::Pool, Holder::Plain, Holder::Watched, Holder::Told];
    for seed in 0..2000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut teller = Teller::default();
        let draw = |rng: &mut fastrand::Rng| ALL[rng.usize(..if seed % 2 == 0 { 5 } else { 4 })];
        let places: Vec<_> = (0..rng.usize(..20)).map(|_| draw(&mut rng)).collect();
        let row = Row::new(places.into_iter(), rng.usize(1..8));
        for is_first in [true, false] {
            let before: Vec<_> = row.places.iter().map(Cell::get).collect();
            let told = teller.tell(&row, is_first);
            let after: Vec<_> = row.places.iter().map(Cell::get).collect();
            for window in after.windows(row.bytes) {
                let is_free = window.iter().all(|&holder| holder == Holder::Nobody);
                let is_told = window.contains(&Holder::Told) || window.contains(&Holder::Pool);
                assert!(is_free || is_told, "seed {seed}: {before:?}, {after:?}");
            }
            assert_eq!(told.out, after.iter().filter(|&&holder| holder == Holder::Told).count());
            let changed = before.iter().zip(&after).filter(|(was, is)| was != is);
            let plain = changed.filter(|(was, _)| **was == Holder::Plain).count();
            assert_eq!(told.plain, plain, "seed {seed}, {is_first}");
        }
        // The next request has its own doubts of those that are out yet, and no more.
        let old = teller.tell(&row, true).plain;
        let told = row.places.iter().filter(|place| place.get() == Holder::Told).count();
        assert!(old <= told, "seed {seed}");
        row.places.iter().for_each(|place| place.set(Holder::Watched));
        assert_eq!(teller.tell(&row, true).plain, 0, "seed {seed}");
    }
}

/// The time is linear in the places, however many of them are free.
#[test]
fn the_row_is_looked_at_a_few_times() {
    const PLACES: usize = 20_000;
    for free in [1, 2, 100, PLACES] {
        for bytes in [1, 10, PLACES / 2] {
            let holder = |place| if place % free == free - 1 { Holder::Watched } else { Holder::Nobody };
            let row = Row::new((0..PLACES).map(holder), bytes);
            let told = Teller::default().tell(&row, true);
            assert!(told.out <= PLACES / free);
            let calls = row.calls.get();
            assert!(calls <= 10 * PLACES, "{calls} with one in {free} held, and {bytes} wanted");
        }
    }
}
