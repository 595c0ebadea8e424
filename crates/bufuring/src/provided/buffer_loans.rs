//! The buffers of a group: those that the kernel has, and those that wait in receivers; see
//! [`BufferLoans`].

use core::task::Waker;
use std::collections::VecDeque;
use std::mem;

use bufcore::author::catch_user_panic;
use bufcore::{Buf, Lease};
use bufkit::sync::{Mutex, lock};

use super::BufRingOwner;

/// The owner of a group's buffers.
///
/// - L1: a buffer is lent from before the kernel learns of it until a completion names it.
/// - L2: the slots of the budget have all buffers that are lent, and all that wait. The numbers of
///   the others are in `free`.
/// - L3: the number of a slot that waits is in the queue of one stream.
pub(crate) struct BufferLoans<L: Lease>(Mutex<Loans<L>>);

struct Loans<L: Lease> {
    /// By the number that the kernel knows them by.
    slots: Box<[Option<Slot<L>>]>,
    free: Vec<u16>,
    /// How many slots wait.
    waiting: usize,
    /// Whom to tell when fewer do.
    starved: Vec<Waker>,
}

/// A buffer that is lent, or waits in a queue.
struct Slot<L: Lease> {
    buf: Buf<L>,
    waits: bool,
}

impl<L: Lease> Loans<L> {
    fn has_budget(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes the buffer of a slot that is lent, or of one that waits.
    fn take(&mut self, number: u16, waits: bool) -> Option<Buf<L>> {
        let slot = self.slots.get_mut(usize::from(number))?;
        Some(slot.take_if(|slot| slot.waits == waits)?.buf)
    }
}

impl<L: Lease> BufferLoans<L> {
    pub(super) fn new(budget: u16) -> Self {
        let numbers = 0..budget;
        let slots = numbers.clone().map(|_| None).collect();
        let free = numbers.rev().collect();
        Self(Mutex::new(Loans { slots, free, waiting: 0, starved: Vec::new() }))
    }

    /// The number of buffers that the kernel has.
    pub(super) fn lent(&self) -> usize {
        let loans = lock(&self.0);
        loans.slots.len() - loans.free.len() - loans.waiting
    }

    pub(super) fn has_budget(&self) -> bool {
        lock(&self.0).has_budget()
    }

    /// Has `waker` woken when the budget allows another buffer. `false` if it does already.
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        // Users' code, with no lock held: the clone, and its drop if it was not needed, which comes
        // after that of the guard.
        let waker = waker.clone();
        let mut loans = lock(&self.0);
        let has_budget = loans.has_budget();
        if !has_budget && !loans.starved.iter().any(|starved| starved.will_wake(&waker)) {
            loans.starved.push(waker);
        }
        !has_budget
    }

    /// Keeps a buffer that is lent next, and returns its number.
    pub(super) fn keep(&self, buf: Buf<L>) -> Option<u16> {
        let mut loans = lock(&self.0);
        let Some(number) = loans.free.pop() else {
            drop(loans);
            drop(buf);
            return None;
        };
        loans.slots[usize::from(number)] = Some(Slot { buf, waits: false });
        Some(number)
    }

    /// Puts the buffer that a completion names to the end of `queue`: `count` bytes have arrived in
    /// it.
    pub(super) fn arrive(&self, number: u16, count: usize, queue: &mut VecDeque<u16>) {
        let mut loans = lock(&self.0);
        let Some(mut buf) = loans.take(number, false) else { return };
        buf.commit(count.min(buf.spare_capacity()));
        loans.slots[usize::from(number)] = Some(Slot { buf, waits: true });
        loans.waiting += 1;
        queue.push_back(number);
    }

    /// Takes the first buffer of `queue`. The budget allows another one then; see
    /// [`wake_starved`](Self::wake_starved).
    pub(super) fn take(&self, queue: &mut VecDeque<u16>) -> Option<Buf<L>> {
        let number = queue.pop_front()?;
        let mut loans = lock(&self.0);
        let buf = loans.take(number, true)?;
        loans.waiting -= 1;
        loans.free.push(number);
        Some(buf)
    }

    /// Takes the buffer that a completion names, whose bytes nobody wants.
    pub(super) fn take_back(&self, number: u16) -> Option<Buf<L>> {
        let mut loans = lock(&self.0);
        let buf = loans.take(number, false)?;
        loans.free.push(number);
        Some(buf)
    }

    /// Wakes those that wait for the budget, if it allows another buffer.
    pub(super) fn wake_starved(&self) {
        let mut loans = lock(&self.0);
        let starved = if loans.has_budget() { mem::take(&mut loans.starved) } else { Vec::new() };
        drop(loans);
        // Users' code, with no lock held. A panic of one waker is neither for the others nor for
        // this caller.
        for waker in starved {
            catch_user_panic(move || waker.wake());
        }
    }
}

impl<L: Lease> BufRingOwner for BufferLoans<L> {}

#[cfg(test)]
mod tests {
    use bufcore::HeapPool;

    use super::*;

    /// Queues of three streams, beside lists: all orders of what arrives and is taken.
    #[test]
    fn queues_are_in_order_and_within_the_budget() {
        const BUDGET: u16 = 5;
        let (shared, mut pool) = (BufferLoans::new(BUDGET), HeapPool::new());
        let mut queues: [(VecDeque<u16>, Vec<u8>); 3] = Default::default();
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
        assert!(shared.take_back(BUDGET).is_none(), "there is no such slot");
    }
}
