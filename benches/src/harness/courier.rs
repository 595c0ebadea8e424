//! The other thread: takes what it is sent, in order, through a bounded queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::harness::place::pin;

/// Buffers that wait in the queue at most. With the one being read and the one being filled that
/// makes six, which is within what a pool of eight slots can hold.
pub(crate) const QUEUED: usize = 4;

/// Buffers that are out at once at most.
pub(crate) const IN_FLIGHT: usize = QUEUED + 2;

/// The sending end.
pub(crate) struct Sender<'a, T> {
    queue: Producer<T>,
    received: &'a AtomicU64,
    sent: u64,
}

impl<T> Sender<'_, T> {
    /// Sends one, as soon as the queue has room.
    #[inline]
    pub(crate) fn send(&mut self, item: T) {
        let mut item = item;
        let mut spins = 0;
        while let Err(rtrb::PushError::Full(back)) = self.queue.push(item) {
            item = back;
            pause(&mut spins);
        }
        self.sent += 1;
    }

    /// Waits until all that was sent has been dropped.
    #[inline]
    pub(crate) fn settle(&self) {
        let mut spins = 0;
        // ORDER: Acquire pairs with the Release in `consume`: what the other thread did with the
        // buffers happened before.
        while self.received.load(Ordering::Acquire) < self.sent {
            pause(&mut spins);
        }
    }
}

/// Runs `produce` here against a thread that gives each item to `take`, and times `produce` and the
/// wait for the last drop. The thread is started and joined outside of that time. The two run on
/// different processors, if there are two.
pub(crate) fn with_consumer<T: Send>(
    take: impl Fn(T) + Sync,
    produce: impl FnOnce(&mut Sender<'_, T>),
) -> Duration {
    let received = AtomicU64::new(0);
    let (producer, consumer) = RingBuffer::new(QUEUED);
    let (mut consumer, mut produce) = (Some(consumer), Some(produce));
    let mut sender = Some(Sender { queue: producer, received: &received, sent: 0 });
    beside(&mut || consume(consumer.take().expect("one consumer"), &received, &take), &mut || {
        // Dropping the sender ends the other thread.
        let mut sender = sender.take().expect("one sender");
        let start = Instant::now();
        (produce.take().expect("one producer"))(&mut sender);
        sender.settle();
        start.elapsed()
    })
}

/// Runs `there` on another thread and, once that runs, `here` on this one. It is not generic: there
/// are hundreds of kinds of cells with another thread.
pub(crate) fn beside(there: &mut (dyn FnMut() + Send), here: &mut dyn FnMut() -> Duration) -> Duration {
    let _here = pin(0);
    let started = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _there = pin(1);
            // ORDER: Relaxed: it only says that the thread runs.
            started.store(1, Ordering::Relaxed);
            there();
        });
        let mut spins = 0;
        // ORDER: Relaxed, as above.
        while started.load(Ordering::Relaxed) == 0 {
            pause(&mut spins);
        }
        here()
    })
}

fn consume<T>(mut queue: Consumer<T>, received: &AtomicU64, take: impl Fn(T)) {
    let mut count = 0;
    let mut spins = 0;
    loop {
        if let Ok(item) = queue.pop() {
            take(item);
            count += 1;
            // ORDER: Release pairs with the Acquire in `settle`.
            received.store(count, Ordering::Release);
            spins = 0;
        } else if queue.is_abandoned() && queue.is_empty() {
            return;
        } else {
            pause(&mut spins);
        }
    }
}

/// Spins for a while, then lets others run: there may be fewer cores than threads.
#[inline]
pub(crate) fn pause(spins: &mut u32) {
    const PATIENCE: u32 = 200;
    if *spins < PATIENCE {
        *spins += 1;
        core::hint::spin_loop();
    } else {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn all_arrive_in_order() {
        let taken = Mutex::new(Vec::new());
        with_consumer(
            |item: u64| taken.lock().unwrap().push(item),
            |sender| (0..1000).for_each(|item| sender.send(item)),
        );
        assert!(taken.into_inner().unwrap().into_iter().eq(0..1000));
    }
}
