//! The end that receives, and the message that is read in place.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::error::RecvError;
use super::queue::{Arc, Ends, Patience, Taken};

/// The receiving end of a [`channel`](super::channel()). It is cloned for each consumer, or shared;
/// each message is received by one of them.
///
/// Dropping the last one closes the queue: senders get
/// [`SendError::Closed`](super::SendError::Closed), and the remaining messages are dropped.
///
/// ```
/// use bufmirror::messages::{self, RecvError};
///
/// let (sender, receiver) = messages::channel(4096)?;
/// sender.send(b"read in place")?;
/// sender.send(b"copied")?;
///
/// let message = receiver.recv()?;
/// assert_eq!((&*message, message.sequence()), (&b"read in place"[..], 0));
/// drop(message); // its place is free again
///
/// let mut small = [0; 4];
/// let too_small = RecvError::TooSmall { needed: 6, available: 4 };
/// assert_eq!(receiver.recv_into(&mut small), Err(too_small));
/// let mut large = [0; 100];
/// let received = receiver.recv_into(&mut large)?; // it is still there
/// assert_eq!((&large[..received.len], received.sequence), (&b"copied"[..], 1));
///
/// drop(sender);
/// assert_eq!(receiver.recv_into(&mut large), Err(RecvError::Closed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Receiver {
    pub(super) side: Arc<Ends>,
}

/// The length and the number of a message that [`recv_into`](Receiver::recv_into) copied.
///
/// ```
/// use bufmirror::messages::{self, Received};
///
/// let (sender, receiver) = messages::channel(4096)?;
/// sender.send(b"a")?;
/// sender.send(b"longer")?;
/// let mut buffer = [0; 64]; // reused for all messages
/// assert_eq!(receiver.recv_into(&mut buffer)?, Received { len: 1, sequence: 0 });
/// assert_eq!(receiver.recv_into(&mut buffer)?, Received { len: 6, sequence: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Received {
    /// Bytes of the message, which are the first bytes of the buffer.
    pub len: usize,
    /// Its number, as in [`Message::sequence`].
    pub sequence: u64,
}

impl Receiver {
    /// Takes the next message, as soon as there is one, for reading in place.
    ///
    /// It occupies the queue until the [`Message`] is dropped. Other receivers get later messages
    /// in the meantime, but their frames are not reused before. A queue whose oldest message is
    /// kept, or forgotten, is therefore full once senders have filled the ring up to it.
    ///
    /// Cost: one lock, and one for the drop; no copy. The call spins for a moment, then sleeps.
    ///
    /// # Errors
    ///
    /// [`RecvError::Closed`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send(b"hello")?;
    /// let message = receiver.recv()?;
    /// assert_eq!(&*message, b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv(&self) -> Result<Message<'_>, RecvError> {
        self.lend(Patience::Forever)
    }

    /// Takes the next message if there is one now.
    ///
    /// A message whose `send` has returned is available: this call waits for an earlier one that is
    /// being copied. It does not wait for the closure of a [`send_with`](super::Sender::send_with):
    /// until that returns, later messages are not available.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`], [`RecvError::Closed`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// assert!(receiver.try_recv().is_err());
    /// sender.send(b"hello")?;
    /// assert_eq!(receiver.try_recv()?.len(), 5);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_recv(&self) -> Result<Message<'_>, RecvError> {
        self.lend(Patience::Now)
    }

    /// Takes the next message if there is one within `timeout`.
    ///
    /// # Errors
    ///
    /// [`RecvError::TimedOut`], [`RecvError::Closed`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bufmirror::messages::{self, RecvError};
    ///
    /// let (_sender, receiver) = messages::channel(4096)?;
    /// let silence = receiver.recv_timeout(Duration::from_millis(10)).unwrap_err();
    /// assert_eq!(silence, RecvError::TimedOut); // time to look after something else
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Message<'_>, RecvError> {
        self.lend(Patience::of(timeout))
    }

    /// Takes the next message, as soon as there is one, without blocking the thread.
    ///
    /// The future may be dropped at any time: it then receives nothing, and passes a wake-up on. A
    /// polled future should not be forgotten (`mem::forget`), or left unpolled after it was woken.
    /// The message of its wake-up may then wait until the next one is sent, if only tasks are
    /// waiting.
    ///
    /// # Errors
    ///
    /// [`RecvError::Closed`].
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let producer = std::thread::spawn(move || sender.send(b"from a thread"));
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let message = receiver.recv_async().await?; // in a task
    /// assert_eq!(&*message, b"from a thread");
    /// # Ok::<(), bufmirror::messages::RecvError>(())
    /// # })?;
    /// # producer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn recv_async(&self) -> Result<Message<'_>, RecvError> {
        let taken = self.side.queue.wait_async(1, |_| self.side.queue.take()).await?;
        Ok(Message { taken })
    }

    /// Copies the next message into the first bytes of `buffer`, as soon as there is one.
    ///
    /// Cost: one lock and one copy; two locks above 256 bytes, with the copy between them. The call
    /// spins for a moment, then sleeps.
    ///
    /// # Errors
    ///
    /// [`RecvError::TooSmall`] with the needed length: the message remains the next one, for any
    /// receiver. [`RecvError::Closed`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send(b"hello")?;
    /// let mut buffer = [0; 100];
    /// let received = receiver.recv_into(&mut buffer)?;
    /// assert_eq!(&buffer[..received.len], b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn recv_into(&self, buffer: &mut [u8]) -> Result<Received, RecvError> {
        self.copy(buffer, Patience::Forever)
    }

    /// Copies the next message if there is one now, as [`try_recv`](Self::try_recv) takes it.
    ///
    /// # Errors
    ///
    /// [`RecvError::Empty`], and as [`recv_into`](Self::recv_into).
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// for part in [&b"all "[..], b"that ", b"has come"] {
    ///     sender.send(part)?;
    /// }
    /// let (mut batch, mut len) = ([0; 100], 0);
    /// while let Ok(received) = receiver.try_recv_into(&mut batch[len..]) {
    ///     len += received.len;
    /// }
    /// assert_eq!(&batch[..len], b"all that has come");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_recv_into(&self, buffer: &mut [u8]) -> Result<Received, RecvError> {
        self.copy(buffer, Patience::Now)
    }

    fn lend(&self, patience: Patience) -> Result<Message<'_>, RecvError> {
        let taken = self.side.queue.receive(patience, || self.side.queue.take())?;
        Ok(Message { taken })
    }

    #[inline]
    fn copy(&self, buffer: &mut [u8], patience: Patience) -> Result<Received, RecvError> {
        let copied = self.side.queue.receive(patience, || self.side.queue.copy_next(buffer))?;
        Ok(Received { len: copied.0, sequence: copied.1 })
    }

    /// Closes the queue: later sends fail. Messages in it can still be received.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send(b"before")?;
    /// receiver.close();
    /// assert!(sender.send(b"after").is_err());
    /// assert_eq!(receiver.recv()?.len(), 6);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        self.side.queue.close();
    }

    /// Returns whether the queue is closed for senders.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.side.queue.is_closed()
    }

    /// Returns the bytes of the longest message: the capacity, less 8.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.side.queue.max_message()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// A message, read in place.
///
/// Dropping it, on any thread, releases its frame in the queue. A forgotten message keeps its
/// frame, and all frames after it can be used only once more.
///
/// ```
/// use bufmirror::messages::{self, Message};
///
/// fn checksum(message: &Message<'_>) -> u32 {
///     message.iter().map(|&byte| u32::from(byte)).sum() // derefs to the bytes, in the queue
/// }
///
/// let (sender, receiver) = messages::channel(4096)?;
/// sender.send(&[1, 2, 3])?;
/// sender.send(&[4])?;
/// let (first, second) = (receiver.recv()?, receiver.recv()?); // several at a time
/// assert_eq!((checksum(&first), checksum(&second)), (6, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Message<'a> {
    taken: Taken<'a>,
}

impl Message<'_> {
    /// Returns the message's number. All frames are counted, from 0, in the order in which senders
    /// claimed them. The number of a [`send_with`](super::Sender::send_with) that panicked is
    /// skipped.
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let sent = [sender.send(b"a")?, sender.send(b"b")?];
    /// // Several receivers work at once; the numbers put their results in order again.
    /// let received = [receiver.recv()?.sequence(), receiver.recv()?.sequence()];
    /// assert_eq!((sent, received), ([0, 1], [0, 1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.taken.number()
    }
}

impl Deref for Message<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.taken.bytes()
    }
}

impl AsRef<[u8]> for Message<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("sequence", &self.sequence()).field("len", &self.len()).finish()
    }
}
