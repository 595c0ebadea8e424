//! The end that reads.

use core::fmt;

use bufcore::ByteSource;

use super::end::{End, Reads};
use super::waits::{task_waits, waits};
use crate::GetError;
use crate::copy::copy;
use crate::ring::over;

/// The end of a [`channel`](super::channel) that reads. Dropping it closes the channel: the
/// producer's waits and writes fail.
///
/// [`peek`](Self::peek), [`consume`](Self::consume) and [`get`](Self::get) never wait.
/// [`wait`](Self::wait) and its siblings wait for bytes, by blocking the thread or as a future.
/// `std::io::Read` and `BufRead` block, as a pipe does, and read an end when the producer is gone
/// and all was read.
///
/// ```
/// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
/// producer.put(b"\x05hello\x05wor")?;
/// // Records with their length in front, each looked at where it is.
/// while let [length, rest @ ..] = consumer.peek() {
///     let length = usize::from(*length);
///     let Some(word) = rest.get(..length) else { break }; // the rest has yet to come
///     assert_eq!(word, b"hello");
///     consumer.consume(1 + length);
/// }
/// assert_eq!(consumer.peek(), b"\x05wor");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Consumer {
    pub(super) end: End<Reads>,
}

impl Consumer {
    pub(crate) fn new(end: End<Reads>) -> Self {
        Self { end }
    }

    /// Returns all bytes that can be read now, oldest first, in one piece.
    ///
    /// Cost: as [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"one\ntwo")?;
    /// let line = consumer.peek().iter().position(|&byte| byte == b'\n');
    /// assert_eq!(line, Some(3));
    /// consumer.consume(4);
    /// assert_eq!(consumer.peek(), b"two");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek(&mut self) -> &[u8] {
        self.end.look();
        self.lend(self.end.known())
    }

    /// Returns the oldest `n` bytes, if there are as many.
    ///
    /// Cost: a comparison; when there seem to be too few, a look at the producer's position. So
    /// this method reads many short things fast.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"\0\x05hel")?;
    /// assert_eq!(consumer.peek_exact(2), Some(&b"\0\x05"[..]));
    /// assert_eq!(consumer.peek_exact(7), None); // half of a record
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek_exact(&mut self, n: usize) -> Option<&[u8]> {
        if self.end.has(n) { Some(self.lend(n)) } else { None }
    }

    /// Returns all bytes that can be read now, oldest first, in one piece, to be changed in place:
    /// unmasked, decrypted.
    ///
    /// They stay as they are left, until they are consumed.
    ///
    /// Cost: as [`len`](Self::len). Where memory is not mapped twice, what is left of them is
    /// copied once when the ring's end is passed.
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"TEXT")?;
    /// consumer.peek_mut()[1..].make_ascii_lowercase();
    /// assert_eq!(consumer.peek(), b"Text");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn peek_mut(&mut self) -> &mut [u8] {
        self.end.look();
        self.end.note_changes();
        let mut filled = self.end.window(self.end.known());
        // SAFETY:
        // - valid and initialised: as in `lend`.
        // - exclusive: as in `lend`, and `&mut self` makes it the only borrow.
        unsafe { filled.as_mut() }
    }

    /// Drops the `n` oldest bytes. The producer can write there, and is woken if it waits.
    ///
    /// Cost: a plain store that the producer sees, and a load. If the producer sleeps, what waking
    /// it costs.
    ///
    /// # Panics
    ///
    /// When `n` is over [`len`](Self::len).
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let capacity = producer.capacity();
    /// producer.put(&vec![7; capacity])?;
    /// assert!(producer.put(b"more").is_err()); // the ring is full
    /// consumer.consume(1000);
    /// assert_eq!(producer.spare_capacity(), 1000); // room again, in one piece
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, n: usize) {
        if !self.end.has(n) {
            over("consume", n, self.end.known(), "to read");
        }
        self.end.advance(n);
    }

    /// Moves the oldest bytes into `into`, and fills all of it.
    ///
    /// Cost: one copy, wherever in the ring, and as [`consume`](Self::consume).
    ///
    /// # Errors
    ///
    /// When there are fewer now; then nothing is read.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"\0\x05hello")?;
    /// let mut header = [0; 2];
    /// consumer.get(&mut header)?;
    /// assert_eq!((header, consumer.peek()), ([0, 5], &b"hello"[..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        let n = into.len();
        let Some(bytes) = self.peek_exact(n) else {
            return Err(GetError { requested: n, available: self.end.known() });
        };
        copy(into, bytes);
        self.end.advance(n);
        Ok(())
    }

    /// Moves as many bytes into `into` as there are now; returns their number.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"abc")?;
    /// let mut into = [0; 8];
    /// assert_eq!(consumer.get_some(&mut into), 3);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = self.end.up_to(into.len());
        // There are `n` bytes.
        let _ = self.get(&mut into[..n]);
        n
    }

    /// Returns the bytes that can be read now, in one piece. There may be more a moment later,
    /// never less.
    ///
    /// Cost: a look at the producer's position, which may be in another processor's cache.
    ///
    /// ```
    /// let (mut producer, consumer) = bufmirror::channel(4096)?;
    /// producer.reserve(100)?; // lent, not yet committed
    /// assert_eq!(consumer.len(), 0);
    /// producer.commit(60);
    /// assert_eq!(consumer.len(), 60);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.count()
    }

    /// Returns whether there is nothing to read now.
    ///
    /// Cost: as [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the producer has ended the stream. Bytes that it wrote may still be there to
    /// read.
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"last")?;
    /// drop(producer);
    /// // Closed first, empty second: nothing can come in between.
    /// assert!(consumer.is_closed() && !consumer.is_empty());
    /// consumer.consume(4);
    /// assert!(consumer.is_closed() && consumer.is_empty()); // the end
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.end.is_closed()
    }

    /// Returns the bytes that the ring holds when it is full.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }

    /// Returns whether the memory is mapped twice; see
    /// [`Producer::is_mapped`](super::Producer::is_mapped).
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.end.is_mapped()
    }

    /// Lends the oldest `n` bytes, which are known to be there.
    #[inline(always)]
    fn lend(&self, n: usize) -> &[u8] {
        let filled = self.end.window(n);
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1), since `at` is less than the
        //   capacity, and `n` at most that.
        // - not written meanwhile: it borrows this end, which has the bytes alone (C2), and has no
        //   byte twice, being no longer than the capacity (M2). What was done through their other
        //   addresses was ended (C4).
        unsafe { filled.as_ref() }
    }
}

waits!(
    Consumer,
    until "`n` bytes can be read",
    cost "It looks for some microseconds, then sleeps. If it had to wait, it continues to wait while more keeps coming, up to a quarter of the capacity.",
    example "
```
use std::io::Write;

let (mut producer, mut consumer) = bufmirror::channel(4096)?;
let writer = std::thread::spawn(move || producer.write_all(b\"\\x05hello\"));
consumer.wait(1)?; // the length
let length = usize::from(consumer.peek()[0]);
consumer.wait(1 + length)?; // all of the record
assert_eq!(&consumer.peek()[1..], b\"hello\");
# writer.join().unwrap()?;
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    timeout "
```
use std::time::Duration;

use bufmirror::WaitError;

let (mut producer, mut consumer) = bufmirror::channel(4096)?;
producer.put(b\"he\")?;
let late = consumer.wait_timeout(5, Duration::from_millis(10)).unwrap_err();
assert_eq!(late, WaitError::TimedOut { requested: 5, available: 2 });
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    errors "[`WaitError::Closed`](crate::WaitError::Closed) when the producer is gone and fewer are left, [`WaitError::TooLong`](crate::WaitError::TooLong) for more than the capacity."
);
task_waits!(
    Consumer,
    example "
```
# tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
let (mut producer, mut consumer) = bufmirror::channel(4096)?;
let reader = async move {
    consumer.wait_async(5).await?; // other tasks run meanwhile
    Ok::<_, bufmirror::WaitError>(consumer.peek().to_vec())
};
let writer = async move { producer.put(b\"hello\") };
let (read, written) = tokio::join!(reader, writer);
written?;
assert_eq!(read?, b\"hello\");
# Ok::<(), Box<dyn std::error::Error>>(())
# })?;
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    poll "
```
use std::task::{Context, Poll, Waker};

let (mut producer, mut consumer) = bufmirror::channel(4096)?;
let cx = Context::from_waker(Waker::noop()); // in a future, the context of its `poll`
assert!(consumer.poll_wait(&cx, 5).is_pending());
producer.put(b\"hello\")?; // wakes the waker
assert_eq!(consumer.poll_wait(&cx, 5), Poll::Ready(Ok(())));
# Ok::<(), Box<dyn std::error::Error>>(())
```"
);

/// Lends all bytes that can be read, at once.
impl ByteSource for Consumer {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self.peek()
    }

    #[inline]
    #[track_caller]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
