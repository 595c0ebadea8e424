//! `std::io` for the ends of a channel: they block, as the ends of a pipe do.

use std::io::{self, BufRead, Read, Write};

use crate::integrations::std_io::{drain, fill};

use super::Waking;
use super::ends::{Consumer, Producer};
use super::wait_error::WaitError;
use crate::channel::end::{Access, End};

/// Parts of a ring that are read or written at once, so that both ends have work at one time.
const PARTS: usize = 8;
/// A part has at least so many bytes: a call of the system costs little beside them.
const LEAST_PART: usize = 32 << 10;

/// Returns how many bytes one call of a reader or writer moves at most. If it were the whole ring,
/// each end would wait for the other one.
fn most_at_once(capacity: usize) -> usize {
    (capacity / PARTS).max(LEAST_PART)
}

/// Blocks until there is room for at least one byte. `BrokenPipe` if the consumer was dropped.
impl<A: Access> Write for End<true, Waking<A>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(usize::from(!bytes.is_empty()))?;
        Ok(self.put_some(bytes))
    }

    /// Does nothing: written bytes are visible already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Producer {
    /// Blocks until there is room for at least one byte, then reads once from `reader` into the
    /// room. Returns the number of bytes, 0 only at the reader's end.
    ///
    /// It reads up to 32 KiB, or an eighth of the ring if that is more. The consumer thus works on
    /// one part while the next one is read.
    ///
    /// `while producer.read_from(&mut reader)? > 0 {}` sends the whole stream.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing. While the reader blocks, this does not
    /// notice that the consumer is dropped.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` if the consumer was dropped; otherwise the reader's error. Nothing is sent
    /// then. A reader that reports more bytes than fit is broken: the error is `InvalidData`.
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let mut socket = &b"request"[..];
    /// while producer.read_from(&mut socket)? > 0 {}
    /// assert_eq!(consumer.peek(), b"request");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_from(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        self.wait(1)?;
        let n = fill(self.room_for_a_read(), reader)?;
        self.commit(n);
        Ok(n)
    }

    /// Reserves the room for one read.
    pub(crate) fn room_for_a_read(&mut self) -> &mut [u8] {
        let room = self.spare_capacity().min(most_at_once(self.capacity()));
        // There is so much.
        self.reserve(room).unwrap_or_default()
    }
}

impl Consumer {
    /// Blocks until there is at least one byte, then calls `write` of `writer` once. It drops the
    /// bytes that the writer took and returns their number: 0 only after the producer ended the
    /// stream and all bytes were read.
    ///
    /// It writes up to 32 KiB, or an eighth of the ring if that is more.
    ///
    /// `while consumer.write_to(&mut writer)? > 0 {}` forwards the whole stream.
    ///
    /// Cost: one `write` of the writer; no copy.
    ///
    /// # Errors
    ///
    /// `WriteZero` if the writer takes nothing; otherwise its error. Nothing is dropped then. A
    /// writer that reports more bytes than it was given is broken: the error is `InvalidData`.
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"response")?;
    /// drop(producer);
    /// let mut socket = Vec::new();
    /// while consumer.write_to(&mut socket)? > 0 {}
    /// assert_eq!(socket, b"response");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&mut self, writer: &mut impl Write) -> io::Result<usize> {
        or_end(self.wait(1))?;
        let most = most_at_once(self.capacity());
        let bytes = self.peek();
        let n = drain(&bytes[..bytes.len().min(most)], writer)?;
        self.consume(n);
        Ok(n)
    }
}

/// Takes the end of the stream for a success: there is nothing to wait for.
pub(crate) fn or_end(waited: Result<(), WaitError>) -> Result<(), WaitError> {
    if let Err(WaitError::Closed { .. }) = waited { Ok(()) } else { waited }
}

/// Blocks until there is at least one byte, or the producer was dropped and all bytes were read.
impl<A: Access> Read for End<false, Waking<A>> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        or_end(self.wait(1))?;
        Ok(self.get_some(into))
    }
}

/// Blocks as `read` does, and returns all bytes that can be read.
impl BufRead for Consumer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        or_end(self.wait(1))?;
        Ok(self.peek())
    }

    /// Drops the oldest `bytes` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` is over the available number.
    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}
