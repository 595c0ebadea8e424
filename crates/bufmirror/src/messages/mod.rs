//! Messages between threads: framed, of any size up to the capacity, for many producers and
//! consumers.
//!
//! [`channel`] makes a ring whose memory is mapped twice, back to back, so each message is one
//! slice. A message is copied once in and once out, or not at all ([`Sender::send_with`],
//! [`Receiver::recv`]).
//!
//! # What is guaranteed
//!
//! - Order: messages are received in the order in which their frames were claimed, so each
//!   producer's in the order in which it sent them. Each has a sequence number.
//! - Each message is received by one receiver, whole. A message that does not fit the receiver's
//!   buffer remains for the next call.
//! - A lock is held for about a dozen instructions and a copy of at most 256 bytes, and for one or
//!   two comparisons for each message of a batch ([`Receiver::recv_many`], [`Sender::send_many`]).
//!   It is never held while the caller's code runs: a closure, a waker, its clone or its drop, the
//!   allocator. Each side has its own lock.
//! - A thread or task that waits for a message or for room is woken when there is one. A thread is
//!   woken only if there is work for it; tasks may be woken spuriously, at most one for each
//!   message or freed frame.
//! - A task that was woken and is not polled delays no thread, and no task for which there is
//!   another message.
//! - A polled task takes the available messages like a new caller, whether it was woken or not.
//! - A sender that waits for much room is not overtaken for long by senders that need less: once it
//!   is the first and has waited 50 ms, others queue after it. If it is a task that is not polled
//!   for as long after it was woken, others overtake it again. A sleeping thread notices that on
//!   its own. A task notices it when it is polled, when another thread sends or receives, or when
//!   all messages are read.
//! - A task whose peer is always ready lets other tasks of its thread run. After 128 completed
//!   operations of tasks on a thread, the next poll returns `Pending` and wakes its task. With the
//!   feature `tokio` they count against the budget of tokio's tasks as well.
//! - Closing wakes all waiting threads and tasks. Messages that were sent before can still be
//!   received.
//!
//! # What is not
//!
//! - The queue is not wait-free or lock-free. A message that is still being written, by a long copy
//!   or a [`Sender::send_with`], holds up receivers of later messages. A message that a receiver
//!   keeps holds up senders once the ring is full up to it. Before that, it holds up a sender to
//!   which it leaves too little room, and the senders that wait after this one.
//! - The `try_` methods are linearizable with respect to copies, but not to closures and kept
//!   messages. A message whose `send` has returned can be received, even while an earlier one is
//!   being copied in: the call waits for that copy, as it waits for the lock. While a
//!   [`Sender::send_with`] writes an earlier message, the queue reads as [`RecvError::Empty`].
//!   While a [`Message`] or [`Messages`] are kept, the room of later ones that were received is not
//!   free: the queue reads as [`SendError::Full`]. The same applies when a timeout ends. Other
//!   waits continue until the earlier message is complete.
//! - If memory is not mapped twice, the queue takes twice its capacity. This costs no additional
//!   copies, unlike in a [`MirrorRing`](crate::MirrorRing).
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

/// Makes a queue of messages between threads, of at least `bytes`: mapped twice if the system
/// supports it, else on the heap, in twice the bytes. See [`messages`](self).
///
/// Each of the two ends can be cloned, and one thread may have both. When all ends of one side are
/// dropped, the other side sees the queue closed.
///
/// # Errors
///
/// The errors are those of [`MirrorRing::new`](crate::MirrorRing::new).
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
    /// Builds a queue of messages: mapped twice if the system supports it, else on the heap.
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
