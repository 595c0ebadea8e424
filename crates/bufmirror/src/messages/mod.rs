//! Messages between threads: framed, of any size up to the capacity, for many producers and
//! consumers.
//!
//! [`MessageQueue`] is a ring whose memory is mapped twice in a row, so each message is one slice,
//! wherever it lies. It is copied once in and once out, or at neither side ([`Sender::send_with`],
//! [`Receiver::recv`]).
//!
//! # What is guaranteed
//!
//! - Order: messages are received in the order in which their places were claimed, so each
//!   producer's in the order in which it sent them. Each has a sequence number.
//! - One receiver gets a message, whole. One that does not fit the buffer for it stays for the
//!   next.
//! - A lock is held for about a dozen instructions and a copy of 256 bytes at most. It is never
//!   held while a caller's code runs: a closure, a waker, its clone or its drop, the allocator.
//!   Each side has its own.
//! - A thread or task that waits for a message or for room is woken when there is one. A thread is
//!   woken only when there is something for it; tasks may be woken in vain, at most one for each
//!   message or each place that becomes free.
//! - A task that was woken and is not polled keeps no thread asleep, and no task for which there is
//!   another message.
//! - A sender that waits for much room is not overtaken for long by those that need less: after 50
//!   ms, when it is the first, others go behind it. If it does not look for so long after it was
//!   woken, they do no more.
//! - A task whose peer is always quick enough lets other tasks of its thread run. After 128
//!   completed operations of tasks on a thread, the next poll returns `Pending` and wakes its task.
//! - Closing wakes all threads and tasks that wait. Messages that were sent before are received.
//!
//! # What is not
//!
//! - Independence of what others are doing is not guaranteed. A message that is still being
//!   written, by a long copy or a [`Sender::send_with`], holds up receivers of later messages. One
//!   that a receiver keeps holds up senders when they have come round to it.
//! - The `try_` forms are not linearizable. While an earlier message is being written, the later
//!   ones are not received, although their `send` has returned: the queue reads as
//!   [`RecvError::Empty`]. While an earlier message is being read, the room of the later ones is
//!   not free, although they were received: the queue reads as [`SendError::Full`]. The same is
//!   true when a time-out ends. Other waits go on until the earlier message is done.
//! - This does not happen in a queue where all messages have up to 256 bytes and are copied in
//!   (`send`, `send_vectored`) and out (`recv_into`). These copies are made under the lock, so no
//!   other thread finds the message unfinished. From 257 bytes on the lock is not held.
//! - Where memory is not mapped twice the queue takes twice its capacity. Nothing is copied more
//!   for it, unlike in a [`MirrorRing`](crate::MirrorRing).
//!
//! # The frames
//!
//! ```text
//!  | length, state | message …            | pad |   8 bytes, the message, up to a multiple of 8
//!  | room, state   | message …     | … | length |   one that became shorter than its room
//! ```

mod error;
mod frames;
mod queue;
mod receiver;
mod sender;
mod side;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod wait_queue;

use alloc::sync::Arc;
use core::fmt;

pub use self::error::{RecvError, SendError};
pub use self::receiver::{Message, Received, Receiver};
pub use self::sender::{Sender, Written};

use self::queue::{Handle, Queue};
use crate::map::Mirror;
use crate::{Builder, MapError};

/// A queue of messages between threads, over memory that is mapped twice in a row. See
/// [`messages`](self).
///
/// ```
/// use std::thread;
/// use bufmirror::MessageQueue;
///
/// let (sender, receiver) = MessageQueue::new(64 * 1024)?.split(); // bytes
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
pub struct MessageQueue {
    sender: Sender,
    receiver: Receiver,
}

impl MessageQueue {
    /// Makes a queue of at least `bytes`: mapped twice where the system can, else on the heap, in
    /// twice the bytes.
    ///
    /// # Errors
    ///
    /// As [`MirrorRing::new`](crate::MirrorRing::new).
    ///
    /// ```
    /// use bufmirror::MessageQueue;
    ///
    /// let queue = MessageQueue::new(64 << 10)?;
    /// assert!(queue.capacity() >= 64 << 10);
    /// queue.sender().send(b"to myself")?; // one thread may have both ends
    /// assert_eq!(&*queue.receiver().recv()?, b"to myself");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(bytes: usize) -> Result<Self, MapError> {
        Builder::new().capacity(bytes).build_messages()
    }

    /// Makes a queue over memory of a multiple of [`frames::WORD_BYTES`].
    pub(crate) fn over(mirror: Mirror) -> Self {
        let queue = Arc::new(Queue::new(mirror));
        let (sender, receiver) = (Handle::first(&queue), Handle::first(&queue));
        Self { sender: Sender { queue: sender }, receiver: Receiver { queue: receiver } }
    }

    /// Splits the queue into its two ends, each of which can be cloned. When all of one side are
    /// dropped, the other side sees the queue closed.
    ///
    /// ```
    /// use bufmirror::MessageQueue;
    ///
    /// let (sender, receiver) = MessageQueue::new(4096)?.split();
    /// let producers = [1_u8, 2, 3].map(|id| {
    ///     let sender = sender.clone();
    ///     std::thread::spawn(move || sender.send(&[id; 4]))
    /// });
    /// drop(sender); // so that the queue is closed when the producers are done
    /// let mut sum = 0;
    /// while let Ok(message) = receiver.recv() {
    ///     sum += u32::from(message[0]);
    /// }
    /// assert_eq!(sum, 6);
    /// # producers.map(|producer| producer.join().unwrap().unwrap());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// Returns the end that sends, to send from here or to be cloned.
    ///
    /// ```
    /// use bufmirror::MessageQueue;
    ///
    /// let log = MessageQueue::new(4096)?; // kept by the thread that reads it now and then
    /// let worker = log.sender().clone();
    /// std::thread::spawn(move || worker.send(b"done").is_ok()).join().unwrap();
    /// assert!(!log.sender().is_closed()); // its own sender keeps the queue open
    /// assert_eq!(&*log.receiver().try_recv()?, b"done");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Returns the end that receives, to receive here or to be cloned.
    #[must_use]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Returns the bytes of the queue, which the frames of all its messages share. A frame is a
    /// message and 8 bytes, rounded up to a multiple of 8.
    ///
    /// ```
    /// use bufmirror::MessageQueue;
    ///
    /// let queue = MessageQueue::new(4096)?;
    /// let frame = 8 + 100_usize.next_multiple_of(8);
    /// for _ in 0..queue.capacity() / frame {
    ///     queue.sender().try_send(&[7; 100])?; // this number fits
    /// }
    /// assert!(queue.sender().try_send(&[7; 100]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.sender.queue.frames.capacity()
    }

    /// Returns the bytes of the longest message: the capacity, less 8.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.sender.queue.max_message()
    }

    /// Returns whether the memory is mapped twice. Otherwise it is twice the capacity.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.sender.queue.frames.is_mapped()
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageQueue")
            .field("capacity", &self.capacity())
            .field("is_mapped", &self.is_mapped())
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Builds a queue of messages: mapped twice where the system can, else on the heap.
    ///
    /// # Errors
    ///
    /// [`MapError::Empty`] without a capacity or with one of 0, and as
    /// [`MirrorRing::new`](crate::MirrorRing::new).
    ///
    /// ```
    /// use bufmirror::Builder;
    ///
    /// let queue = Builder::new().capacity(1 << 20).populate(true).build_messages()?;
    /// let (sender, receiver) = queue.split();
    /// sender.send_with(6, |room| room.copy_from_slice(b"sample"))?;
    /// assert_eq!(receiver.recv()?.len(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_messages(self) -> Result<MessageQueue, MapError> {
        Ok(MessageQueue::over(self.mirror(frames::WORD_BYTES)?))
    }
}
