//! Messages between threads: framed, of any size up to the capacity, for many producers and
//! consumers.
//!
//! [`channel`] makes a ring whose memory is mapped twice in a row, so each message is one slice,
//! wherever it lies. It is copied once in and once out, or at neither side ([`Sender::send_with`],
//! [`Receiver::recv`]).
//!
//! # What is guaranteed
//!
//! - Order: messages are received in the order in which their places were claimed, so each
//!   producer's in the order in which it sent them. Each has a sequence number.
//! - One receiver gets a message, whole. One that does not fit the buffer for it stays for the
//!   next.
//! - A lock is held for about a dozen instructions and a copy of 256 bytes at most, and for a
//!   comparison or two for each message of a batch ([`Receiver::recv_many`],
//!   [`Sender::send_many`]). It is never held while a caller's code runs: a closure, a waker, its clone or its drop, the allocator.
//!   Each side has its own.
//! - A thread or task that waits for a message or for room is woken when there is one. A thread is
//!   woken only when there is something for it; tasks may be woken in vain, at most one for each
//!   message or each place that becomes free.
//! - A task that was woken and is not polled keeps no thread asleep, and no task for which there is
//!   another message.
//! - A task that is polled takes what there is as one that comes then, whether it was woken or not.
//! - A sender that waits for much room is not overtaken for long by those that need less: after 50
//!   ms, when it is the first, others go behind it. If it is a task that is not polled for so long
//!   after it was woken, they do no more. A thread that sleeps sees that by itself. A task sees it
//!   when it is polled, when somebody else sends or receives, or when all that was sent is read.
//! - A task whose peer is always quick enough lets other tasks of its thread run. After 128
//!   completed operations of tasks on a thread, the next poll returns `Pending` and wakes its task.
//!   With the feature `tokio` they count against the budget of tokio's tasks as well.
//! - Closing wakes all threads and tasks that wait. Messages that were sent before are received.
//!
//! # What is not
//!
//! - Independence of what others are doing is not guaranteed. A message that is still being
//!   written, by a long copy or a [`Sender::send_with`], holds up receivers of later messages. One
//!   that a receiver keeps holds up senders when they have come round to it. Before that, it holds
//!   up a sender to which it leaves too little room, and those that wait behind this one.
//! - The `try_` forms are linearizable beside copies, and not beside closures and kept messages. A
//!   message whose `send` has returned is received, also while an earlier one is being copied in:
//!   the call waits for that copy, as it waits for the lock. While a [`Sender::send_with`] writes
//!   an earlier message, the queue reads as [`RecvError::Empty`]. While a [`Message`] or
//!   [`Messages`] are kept, the room of later ones that were received is not free: the queue reads
//!   as [`SendError::Full`]. The same is true when a time-out ends. Other waits go on until the
//!   earlier message is done.
//! - Where memory is not mapped twice the queue takes twice its capacity. Nothing is copied more
//!   for it, unlike in a [`MirrorRing`](crate::MirrorRing).
//!
//! # The frames
//!
//! ```text
//!  | length, state | message …            | pad |   8 bytes, the message, up to a multiple of 8
//!  | room, state   | message …     | … | length |   one that became shorter than its room
//! ```

mod batch;
mod error;
mod frames;
mod queue;
mod receiver;
mod sender;
mod side;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod wait_queue;

pub use self::batch::Messages;
pub use self::error::{RecvError, SendError};
pub use self::receiver::{Message, Received, Receiver};
pub use self::sender::{Sender, Written};

use self::queue::{Arc, Ends, Queue};
use crate::map::Mirror;
use crate::{Builder, ConfigError};

/// Makes a queue of messages between threads, of at least `bytes`: mapped twice where the system
/// can, else on the heap, in twice the bytes. See [`messages`](self).
///
/// Each of the two ends can be cloned, and one thread may have both. When all of one side are
/// dropped, the other side sees the queue closed.
///
/// # Errors
///
/// As [`MirrorRing::new`](crate::MirrorRing::new).
///
/// ```
/// use std::thread;
/// use bufmirror::messages;
///
/// let (sender, receiver) = messages::channel(64 * 1024)?; // bytes
/// let consumers = [receiver.clone(), receiver].map(|receiver| {
///     thread::spawn(move || {
///         let mut sum = 0;
///         while let Ok(message) = receiver.recv() {
///             sum += message.len(); // in place
///         }
///         sum
///     })
/// });
/// for len in 0..100 {
///     sender.send(&vec![0; len])?;
/// }
/// drop(sender); // closes the queue
/// let received: usize = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
/// assert_eq!(received, (0..100).sum());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn channel(bytes: usize) -> Result<(Sender, Receiver), ConfigError> {
    Builder::new().capacity(bytes).build_messages()
}

/// Makes the ends of a queue over memory of a multiple of [`frames::WORD_BYTES`].
pub(crate) fn over(mirror: Mirror) -> (Sender, Receiver) {
    let queue = Arc::new(Queue::new(mirror));
    let receiver = Receiver { side: Arc::new(Ends { queue: Arc::clone(&queue) }) };
    (Sender { side: Arc::new(Ends { queue }) }, receiver)
}

impl Builder {
    /// Builds a queue of messages: mapped twice where the system can, else on the heap.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`] without a capacity or with one of 0, and as
    /// [`MirrorRing::new`](crate::MirrorRing::new).
    ///
    /// ```
    /// use bufmirror::Builder;
    ///
    /// let settings = Builder::new().capacity(1 << 20).populate(true); // no faults later
    /// let (sender, receiver) = settings.build_messages()?;
    /// sender.send_with(6, |room| room.copy_from_slice(b"sample"))?;
    /// assert_eq!(receiver.recv()?.len(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_messages(self) -> Result<(Sender, Receiver), ConfigError> {
        Ok(over(self.mirror(frames::WORD_BYTES)?))
    }
}
