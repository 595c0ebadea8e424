//! The end that sends.

use core::fmt;
use core::time::Duration;
use std::io::IoSlice;

use super::error::SendError;
use super::queue::{Arc, Ends, Patience};
use crate::copy::copy;

/// The sending end of a [`channel`](super::channel()). It is cloned for each producer, or shared.
///
/// All its methods return the message's sequence number: frames are numbered from 0 on, in the
/// order in which receivers get them.
///
/// Dropping the last one closes the queue: receivers get the remaining messages, then
/// [`RecvError::Closed`](super::RecvError::Closed).
///
/// ```
/// use std::io::IoSlice;
/// use bufmirror::messages::{self, SendError};
///
/// let (sender, receiver) = messages::channel(4096)?;
/// assert_eq!(sender.send(b"hello")?, 0);
/// assert_eq!(sender.send_vectored(&[IoSlice::new(b"wor"), IoSlice::new(b"ld")])?, 1);
/// sender.send_with(2, |slot| slot.copy_from_slice(b"!!"))?; // written in place
///
/// let limit = sender.max_message();
/// let requested = limit + 1;
/// assert_eq!(sender.try_send(&vec![0; requested]), Err(SendError::TooLong { requested, limit }));
/// for wanted in [&b"hello"[..], b"world", b"!!"] {
///     assert_eq!(&*receiver.recv()?, wanted);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Sender {
    pub(super) side: Arc<Ends>,
}

/// The return value of the closure that writes a message: the number of bytes, or `()` for all of
/// them.
///
/// ```
/// use bufmirror::messages::Written;
///
/// assert_eq!((3_usize.of(5), ().of(5)), (3, 5));
/// ```
pub trait Written {
    /// Returns how many of `len` bytes were written. A send panics if it is more.
    fn of(self, len: usize) -> usize;
}

impl Written for () {
    #[inline]
    fn of(self, len: usize) -> usize {
        len
    }
}

impl Written for usize {
    #[inline]
    fn of(self, _: usize) -> usize {
        self
    }
}

impl Sender {
    /// Sends a message, as soon as there is room.
    ///
    /// Cost: one lock and one copy; two locks above 256 bytes, with the copy between them. The call
    /// spins for a moment, then sleeps.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLong`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send(b"hello")?; // waits while the queue is full
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn send(&self, message: &[u8]) -> Result<u64, SendError> {
        self.copy(message, Patience::Forever)
    }

    /// Sends a message if there is room now.
    ///
    /// The room of a received message is free once all earlier ones are read too. This call waits
    /// for a message that is being copied out. It does not wait for a kept
    /// [`Message`](super::Message), and may then return [`SendError::Full`].
    ///
    /// # Errors
    ///
    /// [`SendError::Full`], [`SendError::Closed`], [`SendError::TooLong`].
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// while sender.try_send(&[7; 100]).is_ok() {} // until there is no room
    /// assert_eq!(receiver.recv()?.len(), 100);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_send(&self, message: &[u8]) -> Result<u64, SendError> {
        self.copy(message, Patience::Now)
    }

    /// Sends a message if there is room within `timeout`.
    ///
    /// # Errors
    ///
    /// [`SendError::TimedOut`], [`SendError::Closed`], [`SendError::TooLong`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bufmirror::messages::{self, SendError};
    ///
    /// let (sender, _receiver) = messages::channel(4096)?;
    /// while sender.try_send(&[7; 1000]).is_ok() {} // until the queue is full
    /// let late = sender.send_timeout(&[7; 1000], Duration::from_millis(10));
    /// assert_eq!(late, Err(SendError::TimedOut));
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    pub fn send_timeout(&self, message: &[u8], timeout: Duration) -> Result<u64, SendError> {
        self.copy(message, Patience::of(timeout))
    }

    /// Sends a message, as soon as there is room, without blocking the thread.
    ///
    /// The future may be dropped at any time: it then sends nothing, and passes a wake-up on. A
    /// polled future should not be forgotten (`mem::forget`), or left unpolled after it was woken:
    /// the room of its wake-up may then remain unused until more is freed, if only tasks wait.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], [`SendError::TooLong`].
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let consumer = std::thread::spawn(move || receiver.recv().map(|message| message.len()));
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// sender.send_async(b"from a task").await?; // other tasks run while the queue is full
    /// # Ok::<(), bufmirror::messages::SendError>(())
    /// # })?;
    /// assert_eq!(consumer.join().unwrap()?, 11);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn send_async(&self, message: &[u8]) -> Result<u64, SendError> {
        Ok(self.side.queue.send_many_async(&[message]).await?.start)
    }

    /// Sends the parts as one message, as soon as there is room.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use std::io::IoSlice;
    ///
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send_vectored(&[IoSlice::new(b"head "), IoSlice::new(b"body")])?;
    /// assert_eq!(&*receiver.recv()?, b"head body"); // one message
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64, SendError> {
        self.gather(parts, Patience::Forever)
    }

    /// Sends the parts as one message if there is room now.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Self::try_send).
    ///
    /// ```
    /// use std::io::IoSlice;
    ///
    /// use bufmirror::messages::{self, SendError};
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let (header, body) = (b"sample ", vec![7; 1000]);
    /// let parts = [IoSlice::new(header), IoSlice::new(&body)];
    /// while sender.try_send_vectored(&parts).is_ok() {} // until the queue is full
    /// assert!(matches!(sender.try_send_vectored(&parts), Err(SendError::Full { .. })));
    /// assert_eq!(receiver.recv()?.len(), 1007);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_send_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64, SendError> {
        self.gather(parts, Patience::Now)
    }

    /// Sends a message of up to `max` bytes, which `write` writes in place, as soon as there is
    /// room for `max` bytes. `write` returns the number of bytes, or `()` for all: the message is
    /// the first bytes of the slice. The room for `max` bytes is occupied until the message was
    /// received.
    ///
    /// No lock is held while `write` runs, and other threads may send. However, receivers get later
    /// messages only after this one. `write` should therefore not take long, and must not wait for
    /// receivers.
    ///
    /// Contents: `write` gets recycled bytes of earlier messages; bytes that it does not write are
    /// sent unchanged.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); `write` is not called then.
    ///
    /// # Panics
    ///
    /// Panics if `write` does, or returns more than `max`. Nothing is sent then, and the message's
    /// sequence number is skipped.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// sender.send_with(5, |room| room.copy_from_slice(b"hello"))?; // written into the queue
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Messages that are read or encoded in place, and whose length is known only afterwards:
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let mut number = 42_u64;
    /// sender.send_with(10, |room| {
    ///     let mut len = 0;
    ///     while number >= 0x80 {
    ///         room[len] = number as u8 | 0x80;
    ///         (number, len) = (number >> 7, len + 1);
    ///     }
    ///     room[len] = number as u8;
    ///     len + 1
    /// })?;
    /// assert_eq!(&*receiver.recv()?, [42]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_with<W: Written>(
        &self,
        max: usize,
        write: impl FnOnce(&mut [u8]) -> W,
    ) -> Result<u64, SendError> {
        self.side.queue.send(max, Patience::Forever, false, write)
    }

    /// Sends as [`send_with`](Self::send_with) does, if there is room now.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Self::try_send); `write` is not called then.
    ///
    /// # Panics
    ///
    /// Panics as [`send_with`](Self::send_with) does.
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let mut encoded = 0;
    /// while sender.try_send_with(1000, |room| room.fill(7)).is_ok() {
    ///     encoded += 1; // only messages that there is room for are encoded
    /// }
    /// assert!(encoded > 0);
    /// assert_eq!(*receiver.recv()?, [7; 1000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let mut socket = &b"a datagram"[..];
    /// // Reads straight into the queue; a failed read sends a message of no bytes.
    /// sender.try_send_with(1500, |room| socket.read(room).unwrap_or(0))?;
    /// assert_eq!(&*receiver.recv()?, b"a datagram");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_send_with<W: Written>(
        &self,
        max: usize,
        write: impl FnOnce(&mut [u8]) -> W,
    ) -> Result<u64, SendError> {
        self.side.queue.send(max, Patience::Now, false, write)
    }

    #[inline]
    fn copy(&self, message: &[u8], patience: Patience) -> Result<u64, SendError> {
        self.side.queue.send(message.len(), patience, true, |slot| copy(slot, message))
    }

    fn gather(&self, parts: &[IoSlice<'_>], patience: Patience) -> Result<u64, SendError> {
        // Several parts may be the same bytes, so that their sum overflows.
        let len = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        self.side.queue.send(len, patience, true, |mut slot| {
            for part in parts {
                let (first, rest) = slot.split_at_mut(part.len());
                copy(first, part);
                slot = rest;
            }
        })
    }

    /// Closes the queue: all later sends fail. Messages in it can still be received.
    ///
    /// ```
    /// use bufmirror::messages::{self, RecvError, SendError};
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let other = sender.clone();
    /// sender.send(b"the last one")?;
    /// sender.close(); // for all senders
    /// assert_eq!(other.send(b"too late"), Err(SendError::Closed));
    /// assert_eq!(&*receiver.recv()?, b"the last one");
    /// assert_eq!(receiver.recv().unwrap_err(), RecvError::Closed);
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
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, receiver) = messages::channel(4096)?;
    /// let file = vec![7; 3 * sender.max_message() / 2];
    /// let reader = std::thread::spawn(move || {
    ///     let mut bytes = 0;
    ///     while let Ok(part) = receiver.recv() {
    ///         bytes += part.len();
    ///     }
    ///     bytes
    /// });
    /// for part in file.chunks(sender.max_message()) {
    ///     sender.send(part)?; // longer ones would never fit
    /// }
    /// drop(sender);
    /// assert_eq!(reader.join().unwrap(), file.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.side.queue.max_message()
    }

    /// Returns the bytes of the queue, which the frames of all messages share. A frame is a message
    /// and 8 bytes, rounded up to a multiple of 8.
    ///
    /// ```
    /// use bufmirror::messages;
    ///
    /// let (sender, _receiver) = messages::channel(4096)?;
    /// let frame = 8 + 100_usize.next_multiple_of(8);
    /// for _ in 0..sender.capacity() / frame {
    ///     sender.try_send(&[7; 100])?; // this number fits
    /// }
    /// assert!(sender.try_send(&[7; 100]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.side.queue.frames.capacity()
    }

    /// Returns whether the memory is mapped twice. Otherwise it takes twice the capacity.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.side.queue.frames.is_mapped()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
