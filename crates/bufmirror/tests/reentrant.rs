//! T23: the global allocator uses channels and queues of messages, and ends them, in each of its
//! calls in turn.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

use bufmirror::messages::{self, Receiver, Sender};
use bufmirror::{Consumer, Producer};
use testkit::alloc::Reentrant;
use testkit::process::alone;
use testkit::tasks::poll;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// A lock that is held across a call of the allocator is one that is waited for, for ever.
const LIMIT: Duration = Duration::from_secs(10);
/// More than a wait queue has room for at first, and at second.
const WAITING: usize = 10;

type Waiting = Pin<Box<dyn Future<Output = bool>>>;

/// What the allocator does in its one call.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Send,
    Receive,
    /// Polls a request that waits in the queue, and one more.
    Poll,
    /// Drops what waits in the queue.
    GiveUp,
    /// Has a queue of its own, and ends it.
    Another,
    /// Ends handles, and the queue with them.
    End,
}

const DEEDS: [Deed; 6] = [Deed::Send, Deed::Receive, Deed::Poll, Deed::GiveUp, Deed::Another, Deed::End];

/// What the allocator plays with: taken out before it is used.
#[derive(Default)]
struct World {
    sender: Cell<Option<Sender>>,
    receiver: Cell<Option<Receiver>>,
    waiting: Cell<Option<Waiting>>,
    ends: Cell<Option<(Producer, Consumer)>>,
}

/// A request that waits for a message, made and not polled.
fn request(receiver: Receiver) -> Waiting {
    Box::pin(async move { receiver.recv_async().await.is_ok() })
}

fn send(sender: &Sender) {
    let _ = sender.try_send(&[7; 100]);
}

fn receive(receiver: &Receiver) {
    if let Ok(message) = receiver.try_recv() {
        assert_eq!(message[..], [7; 100]);
    }
}

/// Runs `act` with what is in a place, and puts it back.
fn with<T>(place: &Cell<Option<T>>, act: impl FnOnce(&mut T)) {
    if let Some(mut found) = place.take() {
        act(&mut found);
        place.set(Some(found));
    }
}

impl World {
    fn deed(&self, deed: Deed) {
        match deed {
            Deed::Send => {
                with(&self.sender, |sender| send(sender));
                with(&self.ends, |ends| _ = ends.0.put(b"bytes"));
            }
            Deed::Receive => {
                with(&self.receiver, |receiver| receive(receiver));
                with(&self.ends, |ends| {
                    let there = ends.1.len();
                    ends.1.consume(there);
                });
            }
            Deed::Poll => {
                let mut is_done = false;
                with(&self.waiting, |waiting| is_done = poll(waiting.as_mut(), Waker::noop()).is_ready());
                if is_done {
                    // It is not polled again.
                    drop(self.waiting.take());
                }
                with(&self.receiver, |receiver| {
                    let mut another = request(receiver.clone());
                    let _ = poll(another.as_mut(), Waker::noop());
                });
                with(&self.ends, |ends| {
                    let mut waits = Box::pin(ends.1.wait_async(4096));
                    let _ = poll(waits.as_mut(), Waker::noop());
                });
            }
            Deed::GiveUp => drop(self.waiting.take()),
            Deed::Another => {
                let (sender, receiver) = messages::channel(4096).expect("the system maps");
                let mut waits = request(receiver.clone());
                assert!(poll(waits.as_mut(), Waker::noop()).is_pending());
                send(&sender);
                drop(sender);
                assert!(poll(waits.as_mut(), Waker::noop()).is_ready());
                drop((receiver, waits));
                drop(bufmirror::channel(4096).expect("the system maps"));
            }
            Deed::End => {
                drop(self.waiting.take());
                drop(self.receiver.take());
                drop(self.sender.take());
                drop(self.ends.take());
            }
        }
    }
}

/// A queue with requests that wait, of which some are served and some given up, and a channel.
fn program(world: &World) {
    let (sender, receiver) = messages::channel(4096).expect("the system maps");
    world.ends.set(Some(bufmirror::channel(4096).expect("the system maps")));
    world.sender.set(Some(sender.clone()));
    world.receiver.set(Some(receiver.clone()));
    let mut theirs = request(receiver.clone());
    let _ = poll(theirs.as_mut(), Waker::noop());
    world.waiting.set(Some(theirs));
    let mut waiting: Vec<_> = (0..WAITING).map(|_| Some(request(receiver.clone()))).collect();
    let polled = |waiting: &mut Vec<Option<Waiting>>| {
        for place in waiting {
            let is_done = place.as_mut().is_some_and(|one| poll(one.as_mut(), Waker::noop()).is_ready());
            if is_done {
                *place = None;
            }
        }
    };
    polled(&mut waiting);
    for _ in 0..3 {
        send(&sender);
    }
    polled(&mut waiting);
    waiting.truncate(2);
    receive(&receiver);
    send(&sender);
    drop(waiting);
    drop(world.waiting.take());
    // All of it is free again when what is there was received. Nothing is allocated in between.
    let whole = vec![7; sender.max_message()];
    while receiver.try_recv().is_ok() {}
    assert!(sender.try_send(&whole).is_ok(), "a place of the queue is lost");
    assert_eq!(receiver.try_recv().map(|message| message.len()), Ok(whole.len()));
}

/// Each deed in each call of the program.
#[test]
fn t23_the_allocator_comes_back_in() {
    alone(module_path!(), "t23_the_allocator_comes_back_in", LIMIT, || {
        for deed in DEEDS {
            let mut at = 0;
            loop {
                let world = World::default();
                let calls = Reentrant::within(at, || world.deed(deed), || program(&world));
                drop(world);
                if at >= calls {
                    break;
                }
                at += 1;
            }
            println!("{deed:?} in each of {at} calls");
        }
        ALLOCATOR.check();
    });
}

/// Requests that wait for room, while the allocator receives in each of its calls.
#[test]
fn t23_senders_that_wait() {
    alone(module_path!(), "t23_senders_that_wait", LIMIT, || {
        for before in 0.. {
            let (sender, receiver) = messages::channel(4096).expect("the system maps");
            while sender.try_send(&[7; 100]).is_ok() {}
            let sent = RefCell::new(0);
            let mut tasks: Vec<_> = (0..WAITING).map(|_| Box::pin(sender.send_async(&[7; 100]))).collect();
            let calls = Reentrant::within(
                before,
                || receive(&receiver),
                || {
                    for task in &mut tasks {
                        *sent.borrow_mut() += usize::from(poll(task.as_mut(), Waker::noop()).is_ready());
                    }
                },
            );
            assert!(*sent.borrow() <= usize::from(before < calls), "there was room for one");
            drop(tasks);
            while receiver.try_recv().is_ok() {}
            assert!(sender.try_send(&[7; 3000]).is_ok());
            if before >= calls {
                assert!(calls >= 2, "the waiting is an allocation, that grows");
                break;
            }
        }
        ALLOCATOR.check();
    });
}
