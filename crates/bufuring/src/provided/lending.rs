//! The buffers of a group: those that the kernel has, and those that wait in receivers; see
//! [`Shared`].

use core::task::Waker;
use std::mem;

use bufcore::author::catch_user_panic;
use bufcore::{Buf, Lease};
use bufkit::sync::{Mutex, lock};

use super::Provided;

/// The owner of a group's buffers.
///
/// - L1: a buffer is lent from before the kernel learns of it until a completion names it.
/// - L2: the places of the budget have all buffers that are lent, and all that wait. The numbers of
///   the others are in `free`.
/// - L3: a place that waits is in one queue. Its `next` leads to the place behind it.
pub(crate) struct Shared<L: Lease>(Mutex<Lending<L>>);

struct Lending<L: Lease> {
    /// By the number that the kernel knows them by.
    places: Box<[Place<L>]>,
    free: Vec<u16>,
    /// How many places wait.
    waiting: usize,
    /// Whom to tell when fewer do.
    starved: Vec<Waker>,
}

enum Place<L: Lease> {
    Free,
    Lent(Buf<L>),
    Waiting { buf: Buf<L>, next: Option<u16> },
}

/// The buffers that have arrived at one stream, in their order. They stay in the group's places,
/// so that a stream has no memory for as many as the budget allows.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The first place and the last.
    ends: Option<(u16, u16)>,
    len: usize,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<L: Lease> Lending<L> {
    fn has_budget(&self) -> bool {
        !self.free.is_empty()
    }

    fn place(&mut self, number: u16) -> Option<&mut Place<L>> {
        self.places.get_mut(usize::from(number))
    }

    /// Takes the buffer of a place that is lent.
    fn take_lent(&mut self, number: u16) -> Option<Buf<L>> {
        let place = self.place(number)?;
        match mem::replace(place, Place::Free) {
            Place::Lent(buf) => Some(buf),
            other => {
                *place = other;
                None
            }
        }
    }
}

impl<L: Lease> Shared<L> {
    pub(super) fn new(budget: u16) -> Self {
        let numbers = 0..budget;
        let places = numbers.clone().map(|_| Place::Free).collect();
        let free = numbers.rev().collect();
        Self(Mutex::new(Lending { places, free, waiting: 0, starved: Vec::new() }))
    }

    /// The number of buffers that the kernel has.
    pub(super) fn lent(&self) -> usize {
        let lending = lock(&self.0);
        lending.places.len() - lending.free.len() - lending.waiting
    }

    pub(super) fn has_budget(&self) -> bool {
        lock(&self.0).has_budget()
    }

    /// Has `waker` woken when the budget allows another buffer. `false` if it does already.
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        // Users' code, with no lock held: the clone, the allocator, and the drop of a clone that
        // was not needed.
        let mut new = Some(waker.clone());
        let mut longer = Vec::new();
        loop {
            let mut lending = lock(&self.0);
            if lending.has_budget() {
                return false;
            }
            if lending.starved.iter().any(|starved| starved.will_wake(waker)) {
                return true;
            }
            let number = lending.starved.len();
            if longer.capacity() > number {
                longer.append(&mut lending.starved);
                mem::swap(&mut longer, &mut lending.starved);
            }
            if lending.starved.capacity() > number {
                lending.starved.extend(new.take());
                return true;
            }
            drop(lending);
            longer.reserve(2 * number + 1);
        }
    }

    /// Keeps a buffer that is lent next, and returns its number.
    pub(super) fn keep(&self, buf: Buf<L>) -> Option<u16> {
        let mut lending = lock(&self.0);
        let Some(number) = lending.free.pop() else {
            drop(lending);
            drop(buf);
            return None;
        };
        lending.places[usize::from(number)] = Place::Lent(buf);
        Some(number)
    }

    /// Puts the buffer that a completion names to the end of `queue`: `count` bytes have arrived in
    /// it.
    pub(super) fn arrive(&self, number: u16, count: usize, queue: &mut Queue) {
        let mut lending = lock(&self.0);
        let Some(mut buf) = lending.take_lent(number) else { return };
        buf.commit(count.min(buf.spare_capacity()));
        lending.places[usize::from(number)] = Place::Waiting { buf, next: None };
        lending.waiting += 1;
        let last = queue.ends.map(|ends| ends.1);
        if let Some(Place::Waiting { next, .. }) = last.and_then(|last| lending.place(last)) {
            *next = Some(number);
        }
        queue.ends = Some((queue.ends.map_or(number, |ends| ends.0), number));
        queue.len += 1;
    }

    /// Takes the first buffer of `queue`. The budget allows another one then; see
    /// [`tell`](Self::tell).
    pub(super) fn take(&self, queue: &mut Queue) -> Option<Buf<L>> {
        let (first, last) = queue.ends?;
        let mut lending = lock(&self.0);
        let place = lending.place(first)?;
        let (buf, next) = match mem::replace(place, Place::Free) {
            Place::Waiting { buf, next } => (buf, next),
            other => {
                *place = other;
                return None;
            }
        };
        lending.waiting -= 1;
        lending.free.push(first);
        queue.ends = next.map(|next| (next, last));
        queue.len -= 1;
        Some(buf)
    }

    /// Takes the buffer that a completion names, whose bytes nobody wants.
    pub(super) fn take_back(&self, number: u16) -> Option<Buf<L>> {
        let mut lending = lock(&self.0);
        let buf = lending.take_lent(number)?;
        lending.free.push(number);
        Some(buf)
    }

    /// Wakes those that wait for the budget, if it allows another buffer.
    pub(super) fn tell(&self) {
        let mut lending = lock(&self.0);
        let starved = if lending.has_budget() { mem::take(&mut lending.starved) } else { Vec::new() };
        drop(lending);
        // Users' code, with no lock held. A panic of one waker is neither for the others nor for
        // this caller.
        for waker in starved {
            catch_user_panic(move || waker.wake());
        }
    }
}

impl<L: Lease> Provided for Shared<L> {}

#[cfg(test)]
mod tests {
    use bufcore::HeapPool;

    use super::*;

    /// Queues of three streams, beside lists: all orders of what arrives and is taken.
    #[test]
    fn queues_are_in_order_and_within_the_budget() {
        const BUDGET: u16 = 5;
        let (shared, mut pool) = (Shared::new(BUDGET), HeapPool::new());
        let mut queues: [(Queue, Vec<u8>); 3] = Default::default();
        let (mut lent, mut random, mut byte) = (Vec::new(), 7_u32, 0_u8);
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (queue, model) = &mut queues[random as usize >> 8 & 1 | (random as usize >> 9 & 1)];
            match random >> 28 {
                0..6 if shared.has_budget() => {
                    byte = byte.wrapping_add(1);
                    let mut buf = pool.acquire(4).expect("the heap has room");
                    buf.spare_mut()[0] = byte;
                    lent.push((shared.keep(buf).expect("it has budget"), byte));
                }
                0..6 => assert!(shared.keep(pool.acquire(4).expect("the heap has room")).is_none()),
                6..11 => {
                    let Some((number, byte)) = lent.pop() else { continue };
                    shared.arrive(number, 1, queue);
                    // It is not lent any more.
                    shared.arrive(number, 1, queue);
                    model.push(byte);
                }
                11 => {
                    let Some((number, _)) = lent.pop() else { continue };
                    assert!(shared.take_back(number).is_some() && shared.take_back(number).is_none());
                }
                _ if model.is_empty() => assert!(shared.take(queue).is_none()),
                _ => assert_eq!(shared.take(queue).expect("some wait")[..], [model.remove(0)]),
            }
            assert!(queues.iter().all(|(queue, model)| queue.len() == model.len()));
            let waiting: usize = queues.iter().map(|queue| queue.0.len()).sum();
            assert_eq!(shared.lent(), lent.len());
            assert_eq!(shared.has_budget(), lent.len() + waiting < usize::from(BUDGET));
        }
        assert!(shared.take_back(BUDGET).is_none(), "there is no such place");
    }
}
