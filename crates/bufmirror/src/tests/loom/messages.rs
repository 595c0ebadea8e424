//! Models of queues of one or two frames, for every interleaving that loom finds.
//!
//! loom does not see bytes, so each word of the memory has a cell that it does see
//! (`Frames::touch`): written and read where the bytes are. A thread that nobody wakes is a
//! deadlock, which loom reports.
//!
//! With the known defects `relaxed`, `nofence`, `nowake`, `batch-left-done` and
//! `gives-up-beside-a-copy` some of these models fail, which is noted at each.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use loom::sync::Arc;
use loom::thread;
use testkit::models::Shadow;
use testkit::tasks::counting;

use crate::map::Mirror;
use crate::messages::{Receiver, RecvError, SendError, Sender, over};

/// A frame of a message of up to eight bytes.
const FRAME: usize = 16;

/// The ends of a queue of `frames` frames.
fn queue(frames: usize) -> (Sender, Receiver) {
    over(Mirror::on_heap(frames * FRAME).expect("the heap has room"))
}

/// What is received is what was sent, with its number, and was written before. Fails with
/// `relaxed`.
#[test]
fn loom_messages_are_published() {
    loom::model(|| {
        let (sender, receiver) = queue(2);
        let producer = thread::spawn(move || {
            assert_eq!(sender.try_send(&[1; 8]), Ok(0));
            assert_eq!(sender.try_send_with(8, |slot| slot.fill(2)), Ok(1));
        });
        let mut number = 0;
        for _ in 0..3 {
            if let Ok(message) = receiver.try_recv() {
                assert_eq!((&*message, message.sequence()), (&[number as u8 + 1; 8][..], number));
                number += 1;
            }
        }
        producer.join().unwrap();
    });
}

/// A place is written again after it was read, by copy and in place. Fails with `relaxed`.
#[test]
fn loom_places_are_used_again() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        sender.try_send(&[1; 8]).unwrap();
        let consumer = thread::spawn(move || {
            assert_eq!(&*receiver.try_recv().unwrap(), &[1; 8]);
            let mut into = [0; 8];
            match receiver.try_recv_into(&mut into) {
                Ok(received) => assert_eq!((received.sequence, into), (1, [2; 8])),
                Err(error) => assert_eq!(error, RecvError::Empty),
            }
            receiver
        });
        let sent = sender.try_send(&[2; 8]);
        assert!(matches!(sent, Ok(1) | Err(SendError::Full { .. })));
        let receiver = consumer.join().unwrap();
        drop(receiver);
    });
}

/// A message that becomes shorter than its room, of which the length is elsewhere, and the place
/// behind it.
#[test]
fn loom_a_shorter_message() {
    loom::model(|| {
        let (sender, receiver) = queue(2);
        let producer = thread::spawn(move || {
            let write = |room: &mut [u8]| {
                room[..2].fill(1);
                2
            };
            assert_eq!(sender.try_send_with(16, write), Ok(0));
            assert!(matches!(sender.try_send(&[2; 16]), Ok(1) | Err(SendError::Full { .. })));
        });
        let mut number = 0;
        for _ in 0..2 {
            if let Ok(message) = receiver.try_recv() {
                assert_eq!((&*message, message.sequence()), ([&[1; 2][..], &[2; 16]][number], number as u64));
                number += 1;
            }
        }
        producer.join().unwrap();
    });
}

/// Messages of a batch are written before the first of them says that all are, and read before
/// their places are written again. Fails with `relaxed`.
#[test]
fn loom_batches() {
    loom::model(|| {
        let (sender, receiver) = queue(3);
        let producer = thread::spawn(move || {
            assert_eq!(sender.try_send_many(&[&[1; 8], &[2; 8]]), Ok(0..2));
            let sent = sender.try_send_many(&[&[3; 8], &[4; 8]]);
            assert!(matches!(sent, Ok(_) | Err(SendError::Full { .. })));
        });
        let mut number = 0;
        for _ in 0..2 {
            if let Ok(batch) = receiver.try_recv_many(3) {
                assert_eq!(batch.sequence(), number);
                for message in batch.iter() {
                    number += 1;
                    assert_eq!(message, [number as u8; 8]);
                }
            }
        }
        producer.join().unwrap();
    });
}

/// A batch is read when the message in front of it was given back, and places are written again.
/// Fails with `batch-left-done`.
#[test]
fn loom_a_batch_is_kept() {
    loom::model(|| {
        let (sender, receiver) = queue(3);
        sender.try_send_many(&[&[1; 8], &[1; 8], &[1; 8]]).unwrap();
        let first = receiver.try_recv().unwrap();
        let batch = receiver.try_recv_many(2).unwrap();
        let other = thread::spawn(move || {
            (0..2).for_each(|_| _ = sender.try_send(&[2; 8]));
            // Its drop would close the queue.
            sender
        });
        drop(first);
        assert!(batch.iter().all(|message| message == [1; 8]));
        drop(batch);
        drop(other.join().unwrap());
    });
}

/// Two who write in place at once, and two who read in place: all places come back, and nothing is
/// seen that is not written.
#[test]
fn loom_completed_in_any_order() {
    loom::model(|| {
        let (sender, receiver) = queue(2);
        let other = {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            thread::spawn(move || {
                sender.try_send_with(8, |slot| slot.fill(7)).unwrap();
                receiver.try_recv().map(|message| assert_eq!(&*message, &[7; 8])).is_ok()
            })
        };
        sender.try_send_with(8, |slot| slot.fill(7)).unwrap();
        let here = receiver.try_recv().map(|message| assert_eq!(&*message, &[7; 8])).is_ok();
        let there = other.join().unwrap();
        for _ in usize::from(here) + usize::from(there)..2 {
            assert_eq!(&*receiver.try_recv().unwrap(), &[7; 8]);
        }
        sender.try_send(&[0; 24]).expect("all places are free");
    });
}

/// Runs `both` on another thread, and on this one.
fn on_two_threads(sender: Sender, receiver: Receiver, both: fn(&Sender, &Receiver)) {
    let other = (sender.clone(), receiver.clone());
    let other = thread::spawn(move || both(&other.0, &other.1));
    both(&sender, &receiver);
    other.join().unwrap();
}

/// Who has sent a message finds one, also while an earlier one is being copied. Fails with
/// `gives-up-beside-a-copy`.
#[test]
fn loom_a_message_that_was_sent_is_there() {
    loom::model(|| {
        let (sender, receiver) = over(Mirror::on_heap(48).expect("the heap has room"));
        let both = |sender: &Sender, receiver: &Receiver| {
            sender.try_send(&[7; 16]).unwrap();
            drop(receiver.try_recv().unwrap());
        };
        on_two_threads(sender, receiver, both);
    });
}

/// Who has copied a message out finds its room. Fails with `gives-up-beside-a-copy`.
#[test]
fn loom_the_room_of_a_copied_message_is_there() {
    loom::model(|| {
        let (sender, receiver) = over(Mirror::on_heap(48).expect("the heap has room"));
        (0..2).for_each(|_| _ = sender.try_send(&[7; 16]).unwrap());
        let both = |sender: &Sender, receiver: &Receiver| {
            receiver.try_recv_into(&mut [0; 16]).unwrap();
            sender.try_send(&[7; 16]).unwrap();
        };
        on_two_threads(sender, receiver, both);
    });
}

/// Who goes to sleep for a message is woken by it. Fails with `nofence` and `nowake`.
#[test]
fn loom_a_message_wakes() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        let consumer = thread::spawn(move || assert_eq!(&*receiver.recv().unwrap(), &[3; 8]));
        sender.try_send(&[3; 8]).unwrap();
        consumer.join().unwrap();
    });
}

/// Who goes to sleep for room is woken by it. Fails with `nofence` and `nowake`.
#[test]
fn loom_room_wakes() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        sender.try_send(&[1; 8]).unwrap();
        let producer = thread::spawn(move || assert_eq!(sender.send(&[2; 8]), Ok(1)));
        assert_eq!(&*receiver.try_recv().unwrap(), &[1; 8]);
        producer.join().unwrap();
        assert_eq!(&*receiver.try_recv().unwrap(), &[2; 8]);
    });
}

/// Two sleep, or spin, and two messages come: each gets one, though only one of the two may be
/// woken by a sender. Fails with `nofence` and `nowake`.
#[test]
fn loom_each_message_wakes_one() {
    loom::model(|| {
        let (sender, receiver) = queue(2);
        let consumers = [receiver.clone(), receiver]
            .map(|receiver| thread::spawn(move || drop(receiver.recv().unwrap())));
        sender.try_send(&[3; 8]).unwrap();
        sender.try_send(&[4; 8]).unwrap();
        consumers.into_iter().for_each(|consumer| consumer.join().unwrap());
    });
}

/// A thread spins, or sleeps, while three messages are sent, and two tasks sleep that are not
/// polled: each of them is woken. Fails with `one-task-per-look`.
#[test]
fn loom_each_message_that_a_thread_leaves_wakes_a_task() {
    loom::model(|| {
        let (sender, receiver) = queue(3);
        let other = receiver.clone();
        let thread = thread::spawn(move || drop(other.recv().unwrap()));
        let ((first, waker), (second, other_waker)) = (counting(), counting());
        let mut tasks = (pin!(receiver.recv_async()), pin!(receiver.recv_async()));
        assert!(tasks.0.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(tasks.1.as_mut().poll(&mut Context::from_waker(&other_waker)).is_pending());
        (0..3).for_each(|_| assert!(sender.try_send(&[3; 8]).is_ok()));
        thread.join().unwrap();
        assert!(first.count() > 0 && second.count() > 0, "two messages are left");
    });
}

/// A sleeper of another kind gives up at any moment: what it was woken for goes to the other.
#[test]
fn loom_who_gives_up_passes_on() {
    loom::model(|| {
        let (sender, receiver) = queue(2);
        let sleeper = {
            let receiver = receiver.clone();
            thread::spawn(move || drop(receiver.recv().unwrap()))
        };
        let fickle = thread::spawn(move || {
            let mut future = pin!(receiver.recv_async());
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            matches!(polled, Poll::Ready(Ok(_)))
        });
        sender.try_send(&[3; 8]).unwrap();
        if fickle.join().unwrap() {
            sender.try_send(&[4; 8]).unwrap();
        }
        sleeper.join().unwrap();
    });
}

/// The last sender goes while a receiver goes to sleep: it gets what was sent, and then the end.
/// Fails with `nofence` and `nowake`.
#[test]
fn loom_closing_wakes_receivers() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        let consumer = thread::spawn(move || {
            assert_eq!(&*receiver.recv().unwrap(), &[5; 8]);
            assert_eq!(receiver.recv().map(drop), Err(RecvError::Closed));
        });
        sender.try_send(&[5; 8]).unwrap();
        drop(sender);
        consumer.join().unwrap();
    });
}

/// The last receiver goes while senders go to sleep. Fails with `nofence` and `nowake`.
#[test]
fn loom_closing_wakes_senders() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        sender.try_send(&[1; 8]).unwrap();
        let other = {
            let sender = sender.clone();
            thread::spawn(move || assert_eq!(sender.send(&[2; 8]), Err(SendError::Closed)))
        };
        let producer = thread::spawn(move || assert_eq!(sender.send(&[2; 8]), Err(SendError::Closed)));
        drop(receiver);
        producer.join().unwrap();
        other.join().unwrap();
    });
}

/// A queue is closed while a message is written: nobody is told the end before it is received.
#[test]
fn loom_closed_while_it_is_written() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        let producer = thread::spawn(move || sender.try_send_with(8, |slot| slot.fill(6)).is_ok());
        receiver.close();
        let mut count = 0;
        let end = loop {
            match receiver.recv() {
                Ok(message) => {
                    assert_eq!(&*message, &[6; 8]);
                    count += 1;
                }
                Err(error) => break error,
            }
        };
        assert_eq!(end, RecvError::Closed);
        assert_eq!(count, usize::from(producer.join().unwrap()));
    });
}

/// A queue that was closed while a message was written: who is told the end was told the message
/// before.
#[test]
fn loom_a_message_before_the_end() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        let closing = receiver.clone();
        let producer = thread::spawn(move || {
            let write = |slot: &mut [u8]| {
                closing.close();
                slot.fill(6);
            };
            sender.try_send_with(8, write).unwrap();
            // Its drop would close the queue again.
            sender
        });
        let mut count = 0;
        for _ in 0..2 {
            match receiver.try_recv() {
                Ok(message) => {
                    assert_eq!(&*message, &[6; 8]);
                    count += 1;
                }
                Err(RecvError::Closed) => assert_eq!(count, 1),
                Err(error) => assert_eq!(error, RecvError::Empty),
            }
        }
        drop(producer.join().unwrap());
    });
}

/// Two handles of one side are dropped elsewhere: who sees that the queue is closed sees what was
/// done before both were dropped.
fn closed_by_the_last<H: 'static>(handles: [H; 2], is_closed: impl FnOnce() -> bool) {
    let shadows = [Shadow::shared(), Shadow::shared()];
    let mut shadow = shadows.iter();
    let threads = handles.map(|handle| {
        let shadow = shadow.next().map(Arc::clone);
        thread::spawn(move || {
            if let Some(shadow) = shadow {
                shadow.write();
            }
            drop(handle);
        })
    });
    thread::yield_now();
    if is_closed() {
        assert!(shadows.iter().all(|shadow| shadow.read() == 1));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn loom_closed_by_the_last_receiver() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        closed_by_the_last([receiver.clone(), receiver], || sender.is_closed());
    });
}

#[test]
fn loom_closed_by_the_last_sender() {
    loom::model(|| {
        let (sender, receiver) = queue(1);
        closed_by_the_last([sender.clone(), sender], || receiver.is_closed());
    });
}
