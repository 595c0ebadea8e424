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
pub struct SharedProducer {
    end: End<Writes>,
}

impl SharedProducer {
    pub(super) fn new(end: End<Writes>) -> Self {
        Self { end }
    }

    /// Returns the bytes that the ring holds when it is full.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }

    /// Returns whether the consumer has ended, in good order or not. One that has not come yet has
    /// not ended.
    ///
    /// Cost: a system call.
    pub fn is_closed(&mut self) -> bool {
        self.end.look_for_death();
        self.end.is_closed()
    }

    /// Returns the bytes that can be written now; 0 when the other process wrote nonsense.
    #[must_use]
    pub fn spare_capacity(&self) -> usize {
        self.end.count()
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    ///
    /// When there is less room now; then nothing is written.
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
    pub fn put_some(&mut self, bytes: &[u8]) -> usize {
        let n = self.end.up_to(bytes.len());
        // There is room.
        let _ = self.put(&bytes[..n]);
        n
    }
}

waits!(
    SharedProducer,
    until "there is room for `n` bytes, or the consumer is gone",
    cost "That a process has ended without a word is seen after a tenth of a second.",
    errors "[`WaitError::Closed`](crate::WaitError::Closed), [`WaitError::TooLong`](crate::WaitError::TooLong), and [`WaitError::Corrupt`](crate::WaitError::Corrupt) when the other process wrote nonsense."
);

/// Blocks until there is room for a byte at least. `BrokenPipe` when the consumer is gone.
impl Write for SharedProducer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(usize::from(!bytes.is_empty()))?;
        Ok(self.put_some(bytes))
    }

    /// What was written is on its way already.
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
pub struct SharedConsumer {
    end: End<Reads>,
}

impl SharedConsumer {
    pub(super) fn new(end: End<Reads>) -> Self {
        Self { end }
    }

    /// Returns the bytes that the ring holds when it is full.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.end.capacity()
    }

    /// Returns whether the producer has ended, in good order or not; bytes that it wrote may still
    /// be there. One that has not come yet has not ended.
    ///
    /// Cost: a system call.
    pub fn is_closed(&mut self) -> bool {
        self.end.look_for_death();
        self.end.is_closed()
    }

    /// Returns the bytes that can be read now; 0 when the other process wrote nonsense.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.count()
    }

    /// Returns whether there is nothing to read now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves the oldest bytes into `into`, and fills all of it.
    ///
    /// # Errors
    ///
    /// When there are fewer now; then nothing is read.
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
    pub fn get_some(&mut self, into: &mut [u8]) -> usize {
        let n = self.end.up_to(into.len());
        // There are so many.
        let _ = self.get(&mut into[..n]);
        n
    }
}

waits!(
    SharedConsumer,
    until "`n` bytes can be read, or the producer is gone",
    cost "That a process has ended without a word is seen after a tenth of a second.",
    errors "[`WaitError::Closed`](crate::WaitError::Closed) when fewer are left, [`WaitError::TooLong`](crate::WaitError::TooLong), and [`WaitError::Corrupt`](crate::WaitError::Corrupt) when the other process wrote nonsense."
);

/// Blocks until there is a byte at least, or the producer is gone and all was read.
///
/// A process that was killed reads as ended, like one that went in good order:
/// [`wait`](SharedConsumer::wait) tells no more either. Who has to know sends a last word.
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
