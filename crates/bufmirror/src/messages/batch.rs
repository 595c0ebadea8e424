//! Messages that are sent at once, or received at once: one lock for all of them.

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use super::error::{RecvError, SendError};
use super::queue::{Patience, TakenMany};
use super::receiver::Receiver;
use super::sender::Sender;

impl Sender {
    /// Sends all of these messages, as soon as there is room for all; returns their sequence
    /// numbers.
    ///
    /// They are consecutive: no other sender's message comes in between, and on an error none of
    /// them is sent. The frames of the batch must fit the [`capacity`](Self::capacity). For no
    /// messages the range is `0..0`, even if the queue is closed.
    ///
    /// Cost: as [`send`](Self::send) of one message as long as all the frames, and a copy of each
    /// message. The call spins for a moment, then sleeps.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`]; [`SendError::TooLong`] with the bytes of all frames, less 8.
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let lines = ["first", "second", "third"].map(str::as_bytes);
    /// assert_eq!(sender.send_many(&lines)?, 0..3);
    /// assert_eq!(&*receiver.recv()?, b"first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_many(&self, messages: &[&[u8]]) -> Result<Range<u64>, SendError> {
        self.side.queue.send_many(messages, Patience::Forever)
    }

    /// Sends all of these messages, as [`send_many`](Self::send_many) does, if there is room for
    /// all of them now.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] with the bytes of all frames, and as [`send_many`](Self::send_many).
    ///
    /// ```
    /// use bufmirror::messages::{self, SendError};
    ///
    /// let (sender, _receiver) = messages::channel(4096)?;
    /// let batch = [&[7; 1000][..]; 3];
    /// assert_eq!(sender.try_send_many(&batch), Ok(0..3));
    /// let refused = sender.try_send_many(&batch); // there is room for one of them
    /// assert_eq!(refused, Err(SendError::Full { requested: 3024, available: 1072 }));
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    pub fn try_send_many(&self, messages: &[&[u8]]) -> Result<Range<u64>, SendError> {
        self.side.queue.send_many(messages, Patience::Now)
    }

    /// Sends all of these messages, as [`send_many`](Self::send_many) does, if there is room for
    /// all of them within `timeout`.
    ///
    /// # Errors
    ///
    /// [`SendError::TimedOut`], and as [`send_many`](Self::send_many).
    pub fn send_many_timeout(&self, messages: &[&[u8]], timeout: Duration) -> Result<Range<u64>, SendError> {
        self.side.queue.send_many(messages, Patience::of(timeout))
    }

    /// Sends all of these messages, as [`send_many`](Self::send_many) does, without blocking the
    /// thread. The future may be dropped, as that of [`send_async`](Self::send_async).
    ///
    /// # Errors
    ///
    /// As [`send_many`](Self::send_many).
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// sender.send_many_async(&[b"head", b"body"]).await?;
    /// assert_eq!(receiver.recv_many_async(10).await?.iter().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn send_many_async(&self, messages: &[&[u8]]) -> Result<Range<u64>, SendError> {
        self.side.queue.send_many_async(messages).await
    }
}

impl Receiver {
    /// Takes up to `max` available messages, as soon as there is one, for reading in place. A `max`
    /// of 0 counts as 1.
    ///
    /// It does not wait for more than one. This call receives them: no other receiver gets any of
    /// them, whether they are read or not. They occupy the queue until the [`Messages`] are
    /// dropped, as a [`Message`](super::Message) does.
    ///
    /// Cost: one lock, and one for the drop, for all of them; no copy. The call spins for a moment,
    /// then sleeps.
    ///
    /// # Errors
    ///
    /// [`RecvError::Closed`].
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(1 << 16)?;
    /// let writer = std::thread::spawn(move || {
    ///     let mut log = Vec::new();
    ///     while let Ok(batch) = receiver.recv_many(1000) {
    ///         for line in batch.iter() {
    ///             log.write_all(line)?;
    ///         }
    ///     }
    ///     std::io::Result::Ok(log)
    /// });
    /// for line in 0..10_000 {
    ///     sender.send(format!("{line}\n").as_bytes())?;
    /// }
    /// drop(sender);
    /// let log = writer.join().unwrap()?;
    /// assert!(log.starts_with(b"0\n1\n2\n") && log.ends_with(b"9999\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_many(&self, max: usize) -> Result<Messages<'_>, RecvError> {
        self.lend_many(max, Patience::Forever)
    }

    /// Takes the available messages, as [`recv_many`](Self::recv_many) does, if there is one now.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`], as [`try_recv`](Self::try_recv); [`RecvError::Closed`].
    ///
    /// ```
    /// use bufmirror::messages::{self, RecvError};
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// assert_eq!(receiver.try_recv_many(10).unwrap_err(), RecvError::Empty);
    /// sender.send_many(&[b"a", b"b", b"c"])?;
    /// assert!(receiver.try_recv_many(2)?.iter().eq([b"a", b"b"]));
    /// assert_eq!(receiver.try_recv_many(2)?.iter().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_recv_many(&self, max: usize) -> Result<Messages<'_>, RecvError> {
        self.lend_many(max, Patience::Now)
    }

    /// Takes the available messages, as [`recv_many`](Self::recv_many) does, if there is one within
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// [`RecvError::TimedOut`], [`RecvError::Closed`].
    pub fn recv_many_timeout(&self, max: usize, timeout: Duration) -> Result<Messages<'_>, RecvError> {
        self.lend_many(max, Patience::of(timeout))
    }

    /// Takes the available messages, as [`recv_many`](Self::recv_many) does, without blocking the
    /// thread. The future may be dropped, as that of [`recv_async`](Self::recv_async).
    ///
    /// # Errors
    ///
    /// [`RecvError::Closed`].
    pub async fn recv_many_async(&self, max: usize) -> Result<Messages<'_>, RecvError> {
        let taken = self.side.queue.wait_async(1, |_| self.side.queue.take_many(max)).await?;
        Ok(Messages { taken })
    }

    fn lend_many(&self, max: usize, patience: Patience) -> Result<Messages<'_>, RecvError> {
        let taken = self.side.queue.receive(patience, || self.side.queue.take_many(max))?;
        Ok(Messages { taken })
    }
}

/// Messages that were received at once, and are read in place.
///
/// Dropping it, on any thread, releases all of them, read or not. Until then they occupy the queue
/// as one kept [`Message`](super::Message) does.
///
/// ```
/// use bufmirror::messages;
///
/// let (sender, receiver) = messages::channel(4096)?;
/// sender.send_many(&[b"first", b"second", b"third"])?;
/// let batch = receiver.recv_many(10)?;
/// let longest = batch.iter().max_by_key(|message| message.len()); // slices of the queue
/// assert_eq!((longest, batch.sequence()), (Some(&b"second"[..]), 0));
/// drop(batch);
/// assert!(receiver.try_recv().is_err()); // all are received
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Messages<'a> {
    taken: TakenMany<'a>,
}

impl Messages<'_> {
    /// Returns the messages, in the order in which they were sent; there is at least one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.taken.messages()
    }

    /// Returns the number of the first message, as [`Message::sequence`](super::Message::sequence).
    /// The others have the following numbers, with the same gaps.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.taken.number()
    }
}

impl fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("sequence", &self.sequence())
            .field("count", &self.iter().len())
            .finish()
    }
}
