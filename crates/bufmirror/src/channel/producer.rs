//! The end that writes.

use core::fmt;

use bufcore::{ByteSink, ReserveError};

use super::end::{End, Writes};
use super::waits::{task_waits, waits};
use crate::copy::copy;
use crate::ring::over;

/// The end of a [`channel`](super::channel) that writes. Dropping it closes the channel: the
/// consumer reads what is left.
///
/// [`reserve`](Self::reserve), [`commit`](Self::commit) and [`put`](Self::put) never wait.
/// [`wait`](Self::wait) and its siblings wait for room, by blocking the thread or as a future.
/// `std::io::Write` blocks, as a pipe does.
///
/// Contents: what a reservation lends is zeros or recycled bytes.
///
/// ```
/// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
/// producer.reserve(5)?.copy_from_slice(b"hello"); // in place
/// producer.commit(5);
/// producer.put(b" world")?; // by copying
/// assert_eq!(consumer.peek(), b"hello world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Producer {
    end: End<Writes>,
}

impl Producer {
    pub(crate) fn new(end: End<Writes>) -> Self {
        Self { end }
    }

    /// Appends all of `bytes`.
    ///
    /// Cost: one copy, wherever in the ring, and as [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// When there is less room now; then nothing is written.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// producer.put(b"hello")?;
    /// assert_eq!(consumer.peek(), b"hello");
    /// assert!(producer.put(&[0; 1 << 20]).is_err()); // nothing is written
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        copy(self.reserve(bytes.len())?, bytes);
        self.end.advance(bytes.len());
        Ok(())
    }

    /// Appends as many of `bytes` as there is room for now; returns their number.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, mut consumer) = channel(4096)?;
    /// let more = vec![7; producer.capacity() + 1];
    /// let written = producer.put_some(&more);
    /// assert_eq!((written, consumer.len()), (more.len() - 1, more.len() - 1));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = self.end.up_to(bytes.len());
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }

    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// Cost: a comparison; when there seems to be too little room, a look at the consumer's
    /// position.
    ///
    /// # Errors
    ///
    /// When there is less room now.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufmirror::channel;
    ///
    /// let (mut producer, consumer) = channel(4096)?;
    /// producer.reserve(5)?.copy_from_slice(b"hello");
    /// producer.commit(5);
    /// # let mut consumer = consumer;
    /// assert_eq!(consumer.peek(), b"hello");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        if !self.end.has(n) {
            return Err(ReserveError { requested: n, available: self.end.known() });
        }
        let mut room = self.end.window(n);
        // SAFETY:
        // - valid and initialised: within the mirror's memory (M1), since `at` is less than the
        //   capacity, and `n` at most that.
        // - exclusive: it borrows this end, which has the bytes alone (C2), and has no byte twice,
        //   being no longer than the capacity (M2). What was done through their other addresses was
        //   ended (C4).
        Ok(unsafe { room.as_mut() })
    }

    /// Counts the next `n` bytes of room as written: the consumer can read them, and is woken if it
    /// waits.
    ///
    /// They are what was written into the last reservation, or recycled bytes.
    ///
    /// Cost: a plain store that the consumer sees, and a load. If the consumer sleeps, what waking
    /// it costs.
    ///
    /// # Panics
    ///
    /// When `n` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let mut room = producer.reserve(100)?;
    /// write!(room, "{:>6.2} degrees", 21.5)?;
    /// let n = 100 - room.len(); // what `write!` left is not committed
    /// producer.commit(n);
    /// assert_eq!(consumer.peek(), b" 21.50 degrees");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, n: usize) {
        if !self.end.has(n) {
            over("commit", n, self.end.known(), "of room");
        }
        self.end.advance(n);
    }

    /// Returns the bytes that can be written now, in one piece. There may be more a moment later,
    /// never less.
    ///
    /// Cost: a look at the consumer's position, which may be in another processor's cache.
    ///
    /// ```
    /// let (mut producer, consumer) = bufmirror::channel(4096)?;
    /// let free = producer.spare_capacity();
    /// producer.reserve(free)?.fill(b'.'); // all of it, in one slice
    /// producer.commit(free);
    /// assert_eq!((producer.spare_capacity(), consumer.len()), (0, consumer.capacity()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.end.count()
    }

    /// Ends the stream as dropping this would: the consumer reads what is left, and then its end.
    ///
    /// From now on there is no room here, and waits fail as if the consumer had been dropped. A
    /// second call does nothing.
    ///
    /// Cost: a locked instruction. If the consumer sleeps, what waking it costs.
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"last words")?;
    /// producer.close();
    /// assert_eq!(producer.put_some(b"more"), 0);
    /// assert!(consumer.is_closed());
    /// assert_eq!(consumer.peek(), b"last words");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&mut self) {
        if !self.end.is_over() {
            self.end.close();
        }
    }

    /// Returns whether nothing that is written will be read: the consumer was dropped, or this end
    /// was [closed](Self::close).
    ///
    /// ```
    /// let (producer, consumer) = bufmirror::channel(4096)?;
    /// assert!(!producer.is_closed());
    /// drop(consumer);
    /// assert!(producer.is_closed()); // no need to read more from the source
    /// # Ok::<(), bufmirror::MapError>(())
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

    /// Returns whether the memory is mapped twice. Otherwise each byte is copied once more, by
    /// [`commit`](Self::commit).
    ///
    /// ```
    /// let (producer, consumer) = bufmirror::channel(4096)?;
    /// assert_eq!(producer.is_mapped(), consumer.is_mapped()); // one ring
    /// if !producer.is_mapped() {
    ///     eprintln!("this system does not map memory twice: the channel copies more");
    /// }
    /// # Ok::<(), bufmirror::MapError>(())
    /// ```
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.end.is_mapped()
    }
}

waits!(
    Producer,
    until "there is room for `n` bytes",
    cost "It looks for some microseconds, then sleeps. If it had to wait, it continues to wait while more keeps coming, up to a quarter of the capacity.",
    example "
```
let (mut producer, mut consumer) = bufmirror::channel(4096)?;
let rounds = 10 * producer.capacity() / 1000;
let reader = std::thread::spawn(move || {
    let mut sum = 0;
    while consumer.wait(1).is_ok() {
        let filled = consumer.peek().len(); // more may come at any moment
        consumer.consume(filled);
        sum += filled;
    }
    sum
});
for _ in 0..rounds {
    producer.wait(1000)?; // until the reader has made room
    producer.put(&[7; 1000])?;
}
drop(producer);
assert_eq!(reader.join().unwrap(), rounds * 1000);
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    timeout "
```
use std::time::Duration;

use bufmirror::WaitError;

let (mut producer, _consumer) = bufmirror::channel(4096)?;
producer.put(&vec![0; producer.capacity()])?;
match producer.wait_timeout(1, Duration::from_millis(10)) {
    Err(WaitError::TimedOut { .. }) => {} // the consumer is slow: drop the sample, count it
    other => panic!(\"{other:?}\"),
}
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    errors "[`WaitError::Closed`](crate::WaitError::Closed) when the consumer is gone, [`WaitError::TooLong`](crate::WaitError::TooLong) for more than the capacity."
);
task_waits!(
    Producer,
    example "
```
# tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
let (mut producer, mut consumer) = bufmirror::channel(4096)?;
producer.put(&vec![0; producer.capacity()])?; // no room is left
let writer = async move {
    producer.wait_async(5).await?; // until the other task has read
    producer.put(b\"hello\").map_err(Box::<dyn std::error::Error>::from)
};
let reader = async { consumer.consume(100) };
let (written, ()) = tokio::join!(writer, reader);
written?;
# Ok::<(), Box<dyn std::error::Error>>(())
# })?;
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    poll "
```
use std::task::{Context, Poll, Waker};

let (mut producer, mut consumer) = bufmirror::channel(4096)?;
let cx = Context::from_waker(Waker::noop()); // in a future, the context of its `poll`
assert_eq!(producer.poll_wait(&cx, 100), Poll::Ready(Ok(())));
producer.put(&vec![0; producer.capacity()])?;
assert!(producer.poll_wait(&cx, 100).is_pending());
consumer.consume(100); // wakes the waker
assert!(producer.poll_wait(&cx, 100).is_ready());
# Ok::<(), Box<dyn std::error::Error>>(())
```"
);

impl ByteSink for Producer {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.reserve(n)
    }

    #[inline]
    #[track_caller]
    fn commit(&mut self, n: usize) {
        self.commit(n);
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
