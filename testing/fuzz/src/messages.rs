//! Programs on a queue of messages, as in the unit tests of `bufmirror`; and tasks that wait for it, whose wakers panic and come back in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Poll, Waker};

use bufmirror::messages::{self, Message, Messages, Receiver, RecvError, SendError, Sender};
use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, guarded, panic_on_purpose};
use testkit::pattern;
use testkit::tasks::poll;
use testkit::wakers::{Event, hooked};

use self::program::message;

#[path = "../../../crates/bufmirror/src/messages/tests/program.rs"]
mod program;

const STEPS: usize = 200;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let queue = messages::channel(1).expect("the system maps");
    if bytes.below(2) == 0 {
        program::run(&queue, &mut bytes);
    } else {
        waits(Arc::new(queue), &mut bytes);
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
        queue: &Arc<(Sender, Receiver)>,
        bytes: &mut Bytes<'_>,
        baggage: &Baggage,
        over: &Arc<AtomicBool>,
    ) -> Self {
        let is_sender = bytes.below(2) == 0;
        let len = bytes.size() % (queue.0.max_message() + 1);
        let queue = Arc::clone(queue);
        let future: Pin<Box<dyn Future<Output = usize> + Send>> = if is_sender {
            Box::pin(async move {
                queue.0.send_async(&message(len as u64, len)).await.expect("it fits, and is not closed");
                len
            })
        } else {
            Box::pin(async move {
                let found = queue.1.recv_async().await.expect("it is not closed");
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
fn waits(queue: Arc<(Sender, Receiver)>, bytes: &mut Bytes<'_>) {
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
                    let sent = queue.0.try_send(&message(len as u64, len));
                    assert!(!matches!(sent, Err(SendError::Closed | SendError::TooLong { .. })), "{sent:?}");
                } else if let Ok(found) = queue.1.try_recv() {
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
        let found = queue.1.try_recv().map(|found| found.len());
        assert_eq!(found, Err(RecvError::Empty), "{} receivers sleep for ever", tasks.len() - senders);
    }
    if senders > 0 {
        // When all is received, the others are served.
        tasks.retain(|task| task.is_sender);
        loop {
            while queue.1.try_recv().is_ok() {}
            // ORDER: SeqCst, for ease.
            let Some(at) = tasks.iter().position(|task| task.woken.load(SeqCst)) else { break };
            if tasks[at].poll().is_some() {
                drop(tasks.swap_remove(at));
            }
        }
        assert!(tasks.is_empty(), "{} senders sleep for ever", tasks.len());
    }
}
