//! T24: waits that are given up, forgotten, woken and not polled; large messages among small ones.
//! T22 and T23 for wakers.

use std::future::Future;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use testkit::process::alone;
use testkit::tasks::counting;
use testkit::trials::moved::{self, Waiting};
use testkit::wakers::{Event, hooked};

/// Longer than anything takes, shorter than for ever.
const LONG: Duration = Duration::from_secs(20);
/// Until a thread sleeps that has begun to wait.
const A_WHILE: Duration = Duration::from_millis(100);

fn queue(bytes: usize) -> (Sender, Receiver) {
    messages::channel(bytes).expect("a small ring can be mapped")
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut(), &waker) {
            return output;
        }
        thread::park();
    }
}

/// A task that was woken and is not polled keeps no thread asleep, with one message or with ten.
#[test]
fn t24_a_thread_beside_a_task_that_is_not_polled() {
    for count in [1, 10] {
        let (sender, receiver) = queue(4096);
        let mut idle = pin!(receiver.recv_async());
        assert!(poll(idle.as_mut(), Waker::noop()).is_pending());
        let other = receiver.clone();
        let thread = thread::spawn(move || {
            let began = Instant::now();
            let result = other.recv_timeout(LONG).map(|message| message.len());
            (result, began.elapsed())
        });
        thread::sleep(A_WHILE);
        for _ in 0..count {
            sender.try_send(&[1; 8]).expect("there is room");
        }
        let (result, took) = thread.join().expect("it does not panic");
        assert_eq!(result, Ok(8));
        assert!(took < LONG / 2, "{took:?} with {count} messages there");
    }
}

/// Nor does it keep tasks asleep for which there are messages; and forgotten ones neither.
#[test]
fn t24_tasks_beside_tasks_that_are_not_polled() {
    let (sender, receiver) = queue(4096);
    let mut forgotten = Box::pin(receiver.recv_async());
    assert!(poll(forgotten.as_mut(), Waker::noop()).is_pending());
    mem::forget(forgotten);
    let mut idle = pin!(receiver.recv_async());
    assert!(poll(idle.as_mut(), Waker::noop()).is_pending());
    let (wakes, waker) = counting();
    let mut third = pin!(receiver.recv_async());
    assert!(poll(third.as_mut(), &waker).is_pending());
    for _ in 0..3 {
        sender.try_send(&[1; 8]).expect("there is room");
    }
    assert_eq!(wakes.count(), 1, "there are three messages");
    assert!(poll(third.as_mut(), &waker).is_ready());
    // What the other one was woken for is there as well.
    assert!(poll(idle.as_mut(), Waker::noop()).is_ready());
    assert!(receiver.try_recv().is_ok());
}

/// Senders likewise: room for three, of whom one is not polled and one was forgotten.
#[test]
fn t24_senders_beside_tasks_that_are_not_polled() {
    let (sender, receiver) = queue(4096);
    let large = vec![1; sender.max_message()];
    sender.try_send(&large).expect("all is free");
    let mut forgotten = Box::pin(sender.send_async(&[1; 8]));
    assert!(poll(forgotten.as_mut(), Waker::noop()).is_pending());
    mem::forget(forgotten);
    let mut idle = pin!(sender.send_async(&[2; 8]));
    assert!(poll(idle.as_mut(), Waker::noop()).is_pending());
    let other = sender.clone();
    let thread = thread::spawn(move || other.send_timeout(&[3; 8], LONG));
    thread::sleep(A_WHILE);
    drop(receiver.recv());
    let began = Instant::now();
    assert!(thread.join().expect("it does not panic").is_ok());
    assert!(began.elapsed() < LONG / 2);
}

/// A large message is sent in bounded time among small ones, by a task as by a thread.
#[test]
fn t24_a_large_message_among_small_ones() {
    for is_task in [false, true] {
        let (sender, receiver) = queue(64 << 10);
        let large = vec![7; sender.max_message() * 3 / 4];
        let (is_over, small) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                let (sender, is_over, small) = (sender.clone(), &is_over, &small);
                scope.spawn(move || {
                    // ORDER: Relaxed: a signal that carries nothing, and a count.
                    while !is_over.load(Ordering::Relaxed) {
                        match sender.try_send(&[1; 100]) {
                            Ok(_) => _ = small.fetch_add(1, Ordering::Relaxed),
                            Err(SendError::Closed) => break,
                            // So that it never stands in the queue, but is always there first.
                            Err(_) => thread::yield_now(),
                        }
                    }
                });
            }
            let (again, receiver) = (sender.clone(), &receiver);
            let received = scope.spawn(move || {
                let began = Instant::now();
                while began.elapsed() < LONG / 2 {
                    if receiver.recv_timeout(LONG).is_ok_and(|message| message.len() > 100) {
                        break;
                    }
                    // Whoever has the processors, a small one is there first.
                    while again.try_send(&[1; 100]).is_ok() {}
                }
                let took = began.elapsed();
                receiver.close();
                took
            });
            thread::sleep(A_WHILE);
            let sent = if is_task { block_on(sender.send_async(&large)) } else { sender.send(&large) };
            let took = received.join().expect("it does not panic");
            // ORDER: Relaxed: a flag that ends a loop, and publishes nothing.
            is_over.store(true, Ordering::Relaxed);
            assert!(
                sent.is_ok() && took < LONG / 2,
                "{sent:?} after {took:?}, overtaken by {} (task: {is_task})",
                // ORDER: Relaxed: a count for people only.
                small.load(Ordering::Relaxed)
            );
        });
    }
}

/// The same step by step: whatever place becomes free, a small message is there first.
#[test]
fn t24_a_task_is_not_overtaken_for_ever() {
    let (sender, receiver) = queue(64 << 10);
    let large = vec![7; sender.max_message() * 3 / 4];
    while sender.try_send(&[1; 100]).is_ok() {}
    let (wakes, waker) = counting();
    let mut waiting = pin!(sender.send_async(&large));
    assert!(poll(waiting.as_mut(), &waker).is_pending());
    let (began, mut small, mut seen) = (Instant::now(), 0, 0);
    loop {
        assert!(receiver.try_recv().is_ok(), "the queue is full");
        while sender.try_send(&[1; 100]).is_ok() {
            small += 1;
        }
        if wakes.count() > seen {
            seen = wakes.count();
            if let Poll::Ready(sent) = poll(waiting.as_mut(), &waker) {
                assert!(sent.is_ok());
                break;
            }
        }
        assert!(
            began.elapsed() < LONG / 4,
            "overtaken by {small} in {:?}, woken {seen} times",
            began.elapsed()
        );
    }
}

/// A task for which others make way, and that is not polled, holds them up for a bounded time.
#[test]
fn t24_a_reservation_that_is_not_used() {
    let (sender, receiver) = queue(4096);
    let large = vec![7; sender.max_message()];
    let messages = 200;
    for _ in 0..messages {
        sender.try_send(&[1; 8]).expect("there is room");
    }
    let mut idle = Box::pin(sender.send_async(&large));
    assert!(poll(idle.as_mut(), Waker::noop()).is_pending());
    thread::sleep(A_WHILE);
    // Looks that find too little, until it is found to wait for too long.
    for _ in 0..100 {
        drop(receiver.try_recv());
    }
    assert!(matches!(sender.try_send(&[1; 8]), Err(SendError::Full { .. })), "others make way");
    for _ in 0..messages - 100 {
        drop(receiver.try_recv());
    }
    // It was woken, and does not come.
    assert_eq!(sender.send_timeout(&[2; 8], LONG), Ok(messages as u64));
    thread::sleep(A_WHILE);
    assert!(sender.try_send(&[2; 8]).is_ok());
    mem::forget(idle);
    drop(receiver.try_recv());
    assert!(sender.try_send(&[2; 8]).is_ok());
}

/// Given up at each await, polled without a wake, and with every length of time.
#[test]
fn t24_waits_that_are_given_up() {
    let (sender, receiver) = queue(4096);
    let (wakes, waker) = counting();
    for round in 0..100 {
        let mut futures: Vec<_> = (0..10).map(|_| Box::pin(receiver.recv_async())).collect();
        for future in &mut futures {
            for _ in 0..=round % 3 {
                assert!(poll(future.as_mut(), &waker).is_pending());
            }
        }
        drop(futures.swap_remove(round % 10));
        sender.try_send(&[1; 8]).expect("there is room");
        // What one was woken for is passed on, to the last.
        while futures.len() > 1 {
            drop(futures.remove(0));
        }
        assert!(poll(futures[0].as_mut(), &waker).is_ready());
    }
    let bound = 100 * 10;
    assert!(wakes.count() <= bound, "{} wakes", wakes.count());
    for timeout in [Duration::ZERO, Duration::from_nanos(1)] {
        assert_eq!(receiver.recv_timeout(timeout).map(drop), Err(RecvError::TimedOut));
        sender.try_send(&[1; 8]).expect("there is room");
        assert!(receiver.recv_timeout(timeout).is_ok());
    }
    sender.try_send(&[1; 8]).expect("there is room");
    assert!(receiver.recv_timeout(Duration::MAX).is_ok());
    assert!(sender.send_timeout(&[1; 8], Duration::MAX).is_ok());
}

type Slot = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// T23: wakers whose drop, clone or wake drops another future of the queue.
#[test]
fn t23_wakers_that_come_back_in() {
    // A lock that is held across a waker is one that is waited for, for ever.
    alone(module_path!(), "t23_wakers_that_come_back_in", LONG / 2, wakers_that_come_back_in);
}

fn wakers_that_come_back_in() {
    for event in [Event::Clone, Event::Wake, Event::Drop] {
        for is_woken in [false, true] {
            let (sender, receiver) = queue(4096);
            let receiver = Arc::new(receiver);
            let slot: Slot = Arc::default();
            let other = Arc::clone(&receiver);
            let mut future: Pin<Box<dyn Future<Output = ()> + Send>> =
                Box::pin(async move { drop(other.recv_async().await) });
            let is_armed = Arc::new(AtomicBool::new(false));
            let waker = {
                let (slot, is_armed) = (Arc::clone(&slot), Arc::clone(&is_armed));
                hooked(move |what| {
                    // ORDER: Relaxed: one thread.
                    if what == event && is_armed.load(Ordering::Relaxed) {
                        let victim = slot.lock().expect("nobody panics").take();
                        drop(victim);
                    }
                })
            };
            let mut first = Box::pin(receiver.recv_async());
            assert!(poll(first.as_mut(), &waker).is_pending());
            assert!(poll(future.as_mut(), Waker::noop()).is_pending());
            *slot.lock().expect("nobody panics") = Some(future);
            // ORDER: Relaxed: one thread.
            is_armed.store(true, Ordering::Relaxed);
            if is_woken {
                sender.try_send(&[1; 8]).expect("there is room");
                // Taken by another, so that the first sleeps again.
                drop(receiver.try_recv());
            }
            assert!(poll(first.as_mut(), &waker).is_pending());
            assert!(poll(first.as_mut(), &waker).is_pending());
            sender.try_send(&[1; 8]).expect("there is room");
            assert!(poll(first.as_mut(), &waker).is_ready());
            drop(first);
            drop(waker);
        }
    }
}

/// T22: wakers that panic at their n-th event, for every n: the queue serves all others, in order.
#[test]
fn t22_wakers_that_panic() {
    for event in [Event::Clone, Event::Wake, Event::Drop] {
        for at in 0..6 {
            let (sender, receiver) = queue(4096);
            let count = Arc::new(AtomicUsize::new(0));
            let waker = {
                let count = Arc::clone(&count);
                hooked(move |what| {
                    // ORDER: Relaxed: one thread.
                    if what == event && count.fetch_add(1, Ordering::Relaxed) == at && !thread::panicking() {
                        panic::resume_unwind(Box::new(()));
                    }
                })
            };
            let (wakes, calm) = counting();
            let mut hostile = Box::pin(receiver.recv_async());
            let mut second = Box::pin(receiver.recv_async());
            let run = |body: &mut dyn FnMut()| panic::catch_unwind(AssertUnwindSafe(body)).is_ok();
            let goes_on = run(&mut || drop(poll(hostile.as_mut(), &waker)));
            assert!(poll(second.as_mut(), &calm).is_pending());
            if goes_on {
                run(&mut || drop(poll(hostile.as_mut(), &waker)));
            }
            run(&mut || assert!(sender.try_send(&[1; 8]).is_ok()));
            run(&mut || assert!(sender.try_send(&[2; 8]).is_ok()));
            // Two were sent, and at most the first one was woken.
            assert!(wakes.count() > 0, "{event:?} {at}: a message is there");
            drop(panic::catch_unwind(AssertUnwindSafe(|| drop(hostile))));
            assert!(matches!(poll(second.as_mut(), &calm), Poll::Ready(Ok(_))), "{event:?} {at}");
            drop(second);
            drop(panic::catch_unwind(AssertUnwindSafe(|| drop(waker))));
            while receiver.try_recv().is_ok() {}
            assert!(sender.try_send(&[3; 8]).is_ok());
            assert!(receiver.recv_timeout(LONG).is_ok());
        }
    }
}

/// T24: waits of both sides of a queue, and of both ends of a channel, go from one executor to
/// another.
#[test]
fn t24_moved() {
    moved::t24_moved(|| {
        let (sender, receiver) = queue(4096);
        let future = Box::pin(async move {
            assert_eq!(&*receiver.recv_async().await.expect("one is sent"), [1; 8]);
        });
        Waiting { future, event: Box::new(move || assert!(sender.try_send(&[1; 8]).is_ok())) }
    });
    moved::t24_moved(|| {
        let (sender, receiver) = queue(4096);
        while sender.try_send(&[1; 56]).is_ok() {}
        let receiver = Arc::new(receiver);
        let kept = Arc::clone(&receiver);
        let future = Box::pin(async move {
            sender.send_async(&[2; 56]).await.expect("one is received");
            drop(kept);
        });
        let event = move || drop(receiver.try_recv().expect("it is full"));
        Waiting { future, event: Box::new(event) }
    });
    moved::t24_moved(|| {
        let (mut producer, mut consumer) = bufmirror::channel(4096).expect("a small ring can be mapped");
        let future = Box::pin(async move {
            consumer.wait_async(3).await.expect("they are written");
        });
        Waiting { future, event: Box::new(move || producer.put(b"abc").expect("there is room")) }
    });
    moved::t24_moved(|| {
        let (mut producer, consumer) = bufmirror::channel(4096).expect("a small ring can be mapped");
        producer.commit(producer.capacity());
        let consumer = Arc::new(Mutex::new(consumer));
        let kept = Arc::clone(&consumer);
        let future = Box::pin(async move {
            producer.wait_async(3).await.expect("they are read");
            drop(kept);
        });
        let event = move || consumer.lock().expect("nobody panics").consume(3);
        Waiting { future, event: Box::new(event) }
    });
}

/// A waker that panics at the next such event once the switch is on, and turns it off, unless its
/// thread panics already.
fn panics_at(event: Event) -> (Arc<AtomicBool>, Waker) {
    let is_armed = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_armed);
    let waker = hooked(move |what| {
        // ORDER: SeqCst, for ease.
        if what == event && !thread::panicking() && is_armed.swap(false, Ordering::SeqCst) {
            panic::resume_unwind(Box::new(()));
        }
    });
    (switch, waker)
}

/// Runs code in which a waker may panic; says whether one did.
fn panicked(body: impl FnOnce()) -> bool {
    panic::catch_unwind(AssertUnwindSafe(body)).is_err()
}

/// Nothing is in the queue, and none of its places is lost: there is room for the longest message.
#[track_caller]
fn all_is_free(sender: &Sender, receiver: &Receiver) {
    assert_eq!(receiver.try_recv().map(|found| found.len()), Err(RecvError::Empty));
    let longest = vec![7; sender.max_message()];
    assert!(sender.try_send(&longest).is_ok(), "a message's place is lost");
    assert_eq!(receiver.try_recv().map(|found| found.len()), Ok(longest.len()));
}

#[test]
fn t22_a_task_whose_end_wakes_one_that_panics() {
    let (sender, receiver) = queue(4096);
    let (wakes, calm) = counting();
    let (armed, hostile) = panics_at(Event::Wake);
    let mut tasks = [0; 3].map(|_| Box::pin(receiver.recv_async()));
    for (task, waker) in tasks.iter_mut().zip([&calm, &calm, &hostile]) {
        assert!(poll(task.as_mut(), waker).is_pending());
    }
    assert!(sender.try_send(&[1; 300]).is_ok() && sender.try_send(&[2; 300]).is_ok());
    assert_eq!(wakes.count(), 2);
    // ORDER: SeqCst, for ease.
    armed.store(true, Ordering::SeqCst);
    let [first, second, third] = &mut tasks;
    // It has its message, and the other one may be for the third.
    assert!(matches!(poll(first.as_mut(), &calm), Poll::Ready(Ok(found)) if found[..] == [1; 300]));
    // ORDER: SeqCst, for ease.
    assert!(!armed.load(Ordering::SeqCst), "the third one was woken");
    assert!(matches!(poll(second.as_mut(), &calm), Poll::Ready(Ok(found)) if found[..] == [2; 300]));
    assert!(poll(third.as_mut(), &calm).is_pending());
    drop(tasks);
    all_is_free(&sender, &receiver);
}

#[test]
fn t22_a_thread_whose_end_wakes_one_that_panics() {
    let (sender, receiver) = queue(4096);
    let (armed, hostile) = panics_at(Event::Wake);
    thread::scope(|scope| {
        let waits = scope.spawn(|| panicked(|| drop(receiver.recv_timeout(LONG))));
        thread::sleep(A_WHILE);
        let mut task = Box::pin(receiver.recv_async());
        assert!(poll(task.as_mut(), &hostile).is_pending());
        // ORDER: SeqCst, for ease.
        armed.store(true, Ordering::SeqCst);
        // Both messages can be received at the same moment.
        let both = || {
            let write = |_: &mut [u8]| assert!(sender.try_send(&[2; 300]).is_ok());
            assert!(sender.try_send_with(300, write).is_ok());
        };
        // A thread that does not wait yet is woken by nobody, but the task is.
        panicked(both);
        waits.join().expect("panics are caught");
        drop(task);
    });
    while receiver.try_recv().is_ok() {}
    all_is_free(&sender, &receiver);
}

#[test]
fn t22_what_was_abandoned_wakes_one_that_panics() {
    for copies in [false, true] {
        let (sender, receiver) = queue(4096);
        let (armed, hostile) = panics_at(Event::Wake);
        let all = sender.max_message();
        let abandons = || sender.try_send_with(all / 2, |_| -> usize { panic::resume_unwind(Box::new(())) });
        assert!(panic::catch_unwind(AssertUnwindSafe(abandons)).is_err());
        assert!(sender.try_send(&vec![1; all / 4]).is_ok());
        let large = vec![2; all / 8 * 5];
        let mut task = Box::pin(sender.send_async(&large));
        assert!(poll(task.as_mut(), &hostile).is_pending());
        // ORDER: SeqCst, for ease.
        armed.store(true, Ordering::SeqCst);
        let receives = || {
            if copies {
                receiver.try_recv_into(&mut vec![0; all]).map(|found| found.len)
            } else {
                receiver.try_recv().map(|found| found.len())
            }
        };
        assert_eq!(receives(), Ok(all / 4), "copies {copies}: it is not lost");
        // ORDER: SeqCst, for ease.
        assert!(!armed.load(Ordering::SeqCst), "copies {copies}: there was room for the task");
        drop(task);
        all_is_free(&sender, &receiver);
    }
}

#[test]
fn t22_one_that_leaves_panics() {
    let (sender, receiver) = queue(4096);
    let (wakes, calm) = counting();
    let (armed, hostile) = panics_at(Event::Drop);
    while sender.try_send(&[1; 500]).is_ok() {}
    let (large, small) = ([2; 2000], [3; 1000]);
    let mut first = Box::pin(sender.send_async(&large));
    let mut second = Box::pin(sender.send_async(&small));
    assert!(poll(first.as_mut(), &hostile).is_pending());
    assert!(poll(second.as_mut(), &calm).is_pending());
    // Enough for the second, which is not the first.
    assert!(receiver.try_recv().is_ok() && receiver.try_recv().is_ok());
    assert_eq!(wakes.count(), 0);
    // ORDER: SeqCst, for ease.
    armed.store(true, Ordering::SeqCst);
    assert!(!panicked(|| drop(first)), "the waker's panic came out of a drop");
    // ORDER: SeqCst, for ease.
    armed.store(false, Ordering::SeqCst);
    assert_eq!(wakes.count(), 1, "there is room, and nobody is in front of it");
    assert!(matches!(poll(second.as_mut(), &calm), Poll::Ready(Ok(_))));
}

/// What the other end did is done, and its call says so: the panic of a waker is not its own.
#[test]
fn t22_the_end_of_a_channel_wakes_one_that_panics() {
    for drops in [false, true] {
        let (mut producer, mut consumer) = bufmirror::channel(4096).expect("the system maps");
        let (armed, hostile) = panics_at(Event::Wake);
        let cx = Context::from_waker(&hostile);
        assert!(consumer.poll_wait(&cx, 1).is_pending());
        // ORDER: SeqCst, for ease.
        armed.store(true, Ordering::SeqCst);
        if drops {
            assert!(!panicked(|| drop(producer)), "the waker's panic came out of a drop");
            assert!(consumer.is_closed());
        } else {
            assert!(!panicked(|| producer.put(b"abc").expect("room")), "it came out of a write");
            assert_eq!(consumer.peek(), b"abc");
        }
        // ORDER: SeqCst, for ease.
        assert!(!armed.load(Ordering::SeqCst), "it was woken");
    }
}
