//! The ends that trust nobody: they copy, and lend nothing.

use core::fmt;
use std::io::{self, Read, Write};

use bufcore::ReserveError;

use super::copy::{copy_in, copy_out};
use crate::GetError;
use crate::channel::end::{End, Reads, Writes};
use crate::channel::waits::waits;

/// The end of a [`SharedRing`](super::SharedRing) that writes. Dropping it tells the other process.
///
/// Cost: as of a [`Producer`](crate::Producer), and a locked instruction for each call that writes,
/// since the other process may sleep.
///
/// ```
/// use std::io::Write;
///
/// use bufmirror::SharedRing;
///
/// let ring = SharedRing::create(64 << 10)?;
/// let mut producer = ring.producer()?;
/// // In the process that has the other end:
/// let mut consumer = ring.consumer()?;
/// let reader = std::thread::spawn(move || std::io::read_to_string(&mut consumer));
///
/// for number in 0..3 {
///     writeln!(producer, "sample {number}")?; // waits while the ring is full
/// }
/// drop(producer); // ends the stream
/// assert_eq!(reader.join().unwrap()?, "sample 0\nsample 1\nsample 2\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedProducer {
    end: End<Writes>,
}

impl SharedProducer {
    pub(super) fn new(end: End<Writes>) -> Self {
        Self { end }
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// When there is less room now; then nothing is written.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let (mut producer, consumer) = (ring.producer()?, ring.consumer()?);
    /// producer.put(&vec![7; ring.capacity() - 3])?;
    /// let full = producer.put(b"record").unwrap_err(); // no half of it
    /// assert_eq!((full.requested, full.available), (6, 3));
    /// assert_eq!(consumer.len(), ring.capacity() - 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        let n = bytes.len();
        if !self.end.has(n) {
            return Err(ReserveError { requested: n, available: self.end.known() });
        }
        // SAFETY: within the ring's memory (M1), as much as is this end's; an end that copies uses
        // nothing else (S3).
        unsafe { copy_in(self.end.window(n), bytes) };
        self.end.advance(n);
        Ok(())
    }

    /// Appends as many of `bytes` as there is room for now; returns their number.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let mut producer = ring.producer()?;
    /// let file = vec![7; ring.capacity() + 100];
    /// let written = producer.put_some(&file);
    /// assert_eq!(file.len() - written, 100); // for later
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = self.end.up_to(bytes.len());
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }

    /// Returns the number of bytes that can be written now; 0 when the other process wrote
    /// nonsense.
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.end.count()
    }

    /// Returns whether the consumer has ended, in good order or not. One that has not come yet has
    /// not ended.
    ///
    /// Cost: a system call.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let mut producer = ring.producer()?;
    /// assert!(!producer.is_closed()); // no consumer has come yet
    /// drop(ring.consumer()?);
    /// assert!(producer.is_closed());
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub fn is_closed(&mut self) -> bool {
        self.end.look_for_death();
        self.end.is_closed()
    }

    /// Returns the bytes that the ring holds when it is full.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }
}

waits!(
    SharedProducer,
    until "there is room for `n` bytes, or the consumer is gone",
    cost "The end of a process that was killed is seen after a tenth of a second.",
    example "
```
use bufmirror::{SharedRing, WaitError};

let ring = SharedRing::create(4096)?;
let (mut producer, consumer) = (ring.producer()?, ring.consumer()?);
producer.wait(100)?; // there is room
producer.put(&vec![0; ring.capacity()])?;
drop(consumer);
assert!(matches!(producer.wait(100), Err(WaitError::Closed { .. })));
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    timeout "
```
use std::time::Duration;

use bufmirror::{SharedRing, WaitError};

let ring = SharedRing::create(4096)?;
let mut producer = ring.producer()?;
producer.put(&vec![0; ring.capacity()])?;
let waited = producer.wait_timeout(1, Duration::from_millis(10));
assert!(matches!(waited, Err(WaitError::TimedOut { .. }))); // no consumer has come yet
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    errors "[`WaitError::Closed`](crate::WaitError::Closed), [`WaitError::TooLong`](crate::WaitError::TooLong), and [`WaitError::Corrupt`](crate::WaitError::Corrupt) when the other process wrote nonsense."
);

/// Blocks until there is room for a byte at least. `BrokenPipe` when the consumer is gone.
impl Write for SharedProducer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(usize::from(!bytes.is_empty()))?;
        Ok(self.put_some(bytes))
    }

    /// Does nothing: what was written is on its way already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for SharedProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedProducer").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// The end of a [`SharedRing`](super::SharedRing) that reads. Dropping it tells the other process.
///
/// Cost: as of a [`Consumer`](crate::Consumer), and a locked instruction for each call that reads,
/// since the other process may sleep.
///
/// ```
/// use std::io::{BufRead, BufReader};
///
/// use bufmirror::SharedRing;
///
/// let ring = SharedRing::create(64 << 10)?;
/// let consumer = ring.consumer()?;
/// // In the process that has the other end:
/// let mut producer = ring.producer()?;
/// producer.put(b"one\ntwo\n")?;
/// drop(producer);
///
/// let lines: Result<Vec<_>, _> = BufReader::new(consumer).lines().collect(); // to the end
/// assert_eq!(lines?, ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedConsumer {
    end: End<Reads>,
}

impl SharedConsumer {
    pub(super) fn new(end: End<Reads>) -> Self {
        Self { end }
    }

    /// Moves the oldest bytes into `into`, and fills all of it.
    ///
    /// # Errors
    ///
    /// When there are fewer now; then nothing is read.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let (mut producer, mut consumer) = (ring.producer()?, ring.consumer()?);
    /// producer.put(b"\x03ab")?; // the record's last byte has yet to come
    /// let (mut length, mut record) = ([0], [0; 3]);
    /// consumer.get(&mut length)?;
    /// assert_eq!(consumer.get(&mut record).unwrap_err().available, 2);
    /// producer.put(b"c")?;
    /// consumer.get(&mut record)?;
    /// assert_eq!(&record, b"abc");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        let n = into.len();
        if !self.end.has(n) {
            return Err(GetError { requested: n, available: self.end.known() });
        }
        // SAFETY: within the ring's memory (M1), as much as is this end's; an end that copies uses
        // nothing else (S3).
        unsafe { copy_out(into, self.end.window(n)) };
        self.end.advance(n);
        Ok(())
    }

    /// Moves as many bytes into `into` as there are now; returns their number.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let (mut producer, mut consumer) = (ring.producer()?, ring.consumer()?);
    /// let mut into = [0; 64];
    /// assert_eq!(consumer.get_some(&mut into), 0); // nothing yet
    /// producer.put(b"some")?;
    /// assert_eq!(consumer.get_some(&mut into), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = self.end.up_to(into.len());
        // There are `n` bytes.
        let _ = self.get(&mut into[..n]);
        n
    }

    /// Returns the number of bytes that can be read now; 0 when the other process wrote nonsense.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.count()
    }

    /// Returns whether there is nothing to read now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the producer has ended, in good order or not; bytes that it wrote may still
    /// be there. One that has not come yet has not ended.
    ///
    /// Cost: a system call.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let mut consumer = ring.consumer()?;
    /// ring.producer()?.put(b"last words").unwrap(); // comes, writes, and goes
    /// assert!(consumer.is_closed() && !consumer.is_empty());
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub fn is_closed(&mut self) -> bool {
        self.end.look_for_death();
        self.end.is_closed()
    }

    /// Returns the bytes that the ring holds when it is full.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }
}

waits!(
    SharedConsumer,
    until "`n` bytes can be read, or the producer is gone",
    cost "The end of a process that was killed is seen after a tenth of a second.",
    example "
```
use bufmirror::{SharedRing, WaitError};

let ring = SharedRing::create(4096)?;
let (mut producer, mut consumer) = (ring.producer()?, ring.consumer()?);
producer.put(b\"half\")?;
consumer.wait(4)?;
drop(producer);
// The rest will not come; the four bytes can still be read.
assert_eq!(consumer.wait(8), Err(WaitError::Closed { requested: 8, available: 4 }));
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    timeout "
```
use std::time::Duration;

use bufmirror::{SharedRing, WaitError};

let ring = SharedRing::create(4096)?;
let mut consumer = ring.consumer()?;
let waited = consumer.wait_timeout(1, Duration::from_millis(10));
assert!(matches!(waited, Err(WaitError::TimedOut { .. }))); // no producer has come yet
# Ok::<(), Box<dyn std::error::Error>>(())
```",
    errors "[`WaitError::Closed`](crate::WaitError::Closed) when fewer are left, [`WaitError::TooLong`](crate::WaitError::TooLong), and [`WaitError::Corrupt`](crate::WaitError::Corrupt) when the other process wrote nonsense."
);

/// Blocks until there is a byte at least, or the producer is gone and all was read.
///
/// A process that was killed reads as ended, like one that went in good order:
/// [`wait`](SharedConsumer::wait) tells no more either. A program that has to know sends a last
/// message.
impl Read for SharedConsumer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        match self.wait(1) {
            Ok(()) => Ok(self.get_some(into)),
            Err(crate::WaitError::Closed { .. }) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Debug for SharedConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConsumer").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}
