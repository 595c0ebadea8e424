//! Operations on a queue of messages and on a naive one; and tasks that wait for it, whose wakers panic and come back in.

use std::future::Future;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Poll, Waker};
use std::time::Duration;

use bufmirror::MessageQueue;
use bufmirror::messages::{Message, RecvError, SendError};
use buftest::bytes::Bytes;
use buftest::messages::{Fate, Frame, NaiveQueue, NotSent, message};
use buftest::pattern;
use buftest::tasks::poll;
use buftest::wakers::{Event, hooked};

use crate::hostile::{Baggage, guarded, panic_on_purpose};

const STEPS: usize = 200;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let queue = MessageQueue::new(1).expect("the system maps");
    if bytes.below(2) == 0 {
        let mut pair = Pair { queue: &queue, naive: NaiveQueue::new(queue.capacity()), kept: Vec::new() };
        for _ in 0..STEPS {
            if bytes.is_empty() {
                break;
            }
            pair.step(&mut bytes);
        }
        pair.kept.iter().for_each(|kept| pattern::check(kept, kept.sequence(), 0));
    } else {
        waits(Arc::new(queue), &mut bytes);
    }
}

/// A queue and a naive one.
struct Pair<'a> {
    queue: &'a MessageQueue,
    naive: NaiveQueue,
    kept: Vec<Message<'a>>,
}

impl Pair<'_> {
    /// What a sent message of `len` bytes has to return.
    fn sends(&mut self, len: usize, fate: Fate) -> Result<u64, SendError> {
        self.naive.send(len, len, fate).map_err(|error| match error {
            NotSent::Full { requested, available } => SendError::Full { requested, available },
            NotSent::TooLong { requested, limit } => SendError::TooLong { requested, limit },
        })
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let (kind, len) = (bytes.below(16), bytes.size().min(self.queue.capacity() + 100));
        match kind {
            0..=3 => {
                let sent = message(self.naive.next(), len);
                let wanted = self.sends(len, Fate::Sent);
                let found = match kind {
                    0 => match self.queue.sender().send_timeout(&sent, Duration::ZERO) {
                        Err(SendError::TimedOut) => {
                            assert!(matches!(wanted, Err(SendError::Full { .. })), "{wanted:?}");
                            wanted
                        }
                        other => other,
                    },
                    _ => self.queue.sender().try_send(&sent),
                };
                assert_eq!(found, wanted);
            }
            4..=5 => {
                let (first, second) = (bytes.size() % (len + 1), bytes.size() % (len + 1));
                let sent = message(self.naive.next(), len);
                let (head, tail) = sent.split_at(first);
                let (middle, tail) = tail.split_at(second.min(tail.len()));
                let parts = [head, middle, tail].map(IoSlice::new);
                let wanted = self.sends(len, Fate::Sent);
                assert_eq!(self.queue.sender().try_send_vectored(&parts), wanted);
            }
            6..=7 => {
                let panics = bytes.below(3) == 0;
                let sent = message(self.naive.next(), len);
                let wanted = self.sends(len, if panics { Fate::Abandoned } else { Fate::Sent });
                let write = |slot: &mut [u8]| {
                    slot.copy_from_slice(&sent);
                    if panics {
                        panic_on_purpose();
                    }
                };
                match guarded(|| self.queue.sender().try_send_with(len, write)) {
                    Some(found) => assert_eq!(found, wanted),
                    None => assert!(panics && wanted.is_ok()),
                }
            }
            8..=10 => {
                let mut into = vec![0; len];
                let found = self.queue.receiver().try_recv_into(&mut into);
                match self.naive.first() {
                    None => assert_eq!(found, Err(RecvError::Empty)),
                    Some(Frame { len: needed, .. }) if needed > len => {
                        assert_eq!(found, Err(RecvError::TooSmall { needed, available: len }));
                    }
                    Some(frame) => {
                        let found = found.expect("there is one that fits");
                        assert_eq!((found.sequence, found.len), (frame.number, frame.len));
                        pattern::check(&into[..found.len], found.sequence, 0);
                        self.naive.note(frame.number, Fate::Done);
                    }
                }
            }
            11..=13 => {
                let found = match kind {
                    11 => match self.queue.receiver().recv_timeout(Duration::ZERO) {
                        Err(RecvError::TimedOut) => Err(RecvError::Empty),
                        other => other,
                    },
                    _ => self.queue.receiver().try_recv(),
                };
                match self.naive.first() {
                    None => assert_eq!(found.err(), Some(RecvError::Empty)),
                    Some(frame) => {
                        let found = found.expect("there is one");
                        assert_eq!((found.sequence(), found.len()), (frame.number, frame.len));
                        pattern::check(&found, found.sequence(), 0);
                        self.naive.note(frame.number, if kind == 13 { Fate::Done } else { Fate::Kept });
                        if kind != 13 {
                            self.kept.push(found);
                        }
                    }
                }
            }
            _ if !self.kept.is_empty() => {
                let kept = self.kept.swap_remove(len % self.kept.len());
                pattern::check(&kept, kept.sequence(), 0);
                self.naive.note(kept.sequence(), Fate::Done);
                drop(kept);
            }
            _ => {}
        }
    }
}

/// A task that sends one message, or receives one and returns its length.
struct Task {
    is_sender: bool,
    future: Pin<Box<dyn Future<Output = usize> + Send>>,
    waker: Waker,
    woken: Arc<AtomicBool>,
}

impl Task {
    fn new(
        queue: &Arc<MessageQueue>,
        bytes: &mut Bytes<'_>,
        baggage: &Baggage,
        over: &Arc<AtomicBool>,
    ) -> Self {
        let is_sender = bytes.below(2) == 0;
        let len = bytes.size() % (queue.max_message() + 1);
        let queue = Arc::clone(queue);
        let future: Pin<Box<dyn Future<Output = usize> + Send>> = if is_sender {
            Box::pin(async move {
                queue
                    .sender()
                    .send_async(&message(len as u64, len))
                    .await
                    .expect("it fits, and is not closed");
                len
            })
        } else {
            Box::pin(async move {
                let found = queue.receiver().recv_async().await.expect("it is not closed");
                pattern::check(&found, found.len() as u64, 0);
                found.len()
            })
        };
        let woken = Arc::new(AtomicBool::new(false));
        let (at, act) = (bytes.pick([Event::Wake, Event::Drop, Event::Clone]), bytes.below(8));
        let waker = {
            let (woken, baggage, over) = (Arc::clone(&woken), baggage.clone(), Arc::clone(over));
            let done = AtomicBool::new(false);
            hooked(move |event| {
                // ORDER: SeqCst, for ease, here and below: a test's switches.
                if event == Event::Wake {
                    woken.store(true, SeqCst);
                }
                if event == at && !over.load(SeqCst) && !done.swap(true, SeqCst) {
                    match act {
                        0 => panic_on_purpose(),
                        1..=2 => {
                            baggage.let_go();
                        }
                        _ => {}
                    }
                }
            })
        };
        Self { is_sender, future, waker, woken }
    }

    fn poll(&mut self) -> Option<usize> {
        // ORDER: SeqCst, for ease.
        self.woken.store(false, SeqCst);
        match poll(Pin::new(&mut self.future), &self.waker) {
            Poll::Ready(len) => Some(len),
            Poll::Pending => None,
        }
    }
}

/// Tasks that wait, are polled late, without a wake, or never again: at the end, those that are woken leave nothing undone.
fn waits(queue: Arc<MessageQueue>, bytes: &mut Bytes<'_>) {
    let (baggage, over) = (Baggage::default(), Arc::new(AtomicBool::new(false)));
    let (mut tasks, mut idle): (Vec<Task>, Vec<Task>) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        let at = bytes.below(256) % tasks.len().max(1);
        guarded(|| match bytes.below(10) {
            0..=2 if tasks.len() < 12 => {
                let mut task = Task::new(&queue, bytes, &baggage, &over);
                if task.poll().is_none() {
                    tasks.push(task);
                }
            }
            3..=5 if !tasks.is_empty() => {
                let mut task = tasks.swap_remove(at);
                if task.poll().is_none() {
                    tasks.push(task);
                }
            }
            6 if !tasks.is_empty() => drop(tasks.swap_remove(at)),
            7 if !tasks.is_empty() => {
                let task = tasks.swap_remove(at);
                baggage.put(move || drop(task));
            }
            8 if !tasks.is_empty() => idle.push(tasks.swap_remove(at)),
            _ => {
                let len = bytes.size() % 600;
                if bytes.below(2) == 0 {
                    let sent = queue.sender().try_send(&message(len as u64, len));
                    assert!(!matches!(sent, Err(SendError::Closed | SendError::TooLong { .. })), "{sent:?}");
                } else if let Ok(found) = queue.receiver().try_recv() {
                    pattern::check(&found, found.len() as u64, 0);
                }
            }
        });
    }
    // ORDER: SeqCst, for ease.
    over.store(true, SeqCst);
    baggage.clear();
    // One that is not polled may keep the message for which it was woken from others.
    idle.clear();
    // Those who are woken run; then nobody sleeps who has what it waits for.
    // ORDER: SeqCst, for ease.
    while let Some(at) = tasks.iter().position(|task| task.woken.load(SeqCst)) {
        if tasks[at].poll().is_some() {
            drop(tasks.swap_remove(at));
        }
    }
    let senders = tasks.iter().filter(|task| task.is_sender).count();
    if senders < tasks.len() {
        let found = queue.receiver().try_recv().map(|found| found.len());
        assert_eq!(found, Err(RecvError::Empty), "{} receivers sleep for ever", tasks.len() - senders);
    }
    if senders > 0 {
        // When all is received, the others are served.
        tasks.retain(|task| task.is_sender);
        loop {
            while queue.receiver().try_recv().is_ok() {}
            // ORDER: SeqCst, for ease.
            let Some(at) = tasks.iter().position(|task| task.woken.load(SeqCst)) else { break };
            if tasks[at].poll().is_some() {
                drop(tasks.swap_remove(at));
            }
        }
        assert!(tasks.is_empty(), "{} senders sleep for ever", tasks.len());
    }
}
