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

/// Blocks until there is room for a byte at least. `BrokenPipe` when the consumer is gone.
impl<A: Access> Write for End<true, Waking<A>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(usize::from(!bytes.is_empty()))?;
        Ok(self.put_some(bytes))
    }

    /// Does nothing: what was written is on its way already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Producer {
    /// Blocks until there is room for at least one byte, then reads once from `reader` into the
    /// room. Returns how many bytes came, 0 at the reader's end only.
    ///
    /// It reads up to 32 KiB, or an eighth of the ring where that is more. So the consumer works on
    /// a part while the next one is read.
    ///
    /// So `while producer.read_from(&mut reader)? > 0 {}` sends the whole stream.
    ///
    /// Cost: one `read` of the reader; no copy, no zeroing. While the reader blocks, this does not
    /// see that the consumer goes.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` when the consumer is gone; else what the reader returns. Nothing is sent then.
    /// A reader that claims more bytes than it was lent room for is broken and gets `InvalidData`.
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
    /// Blocks until there is at least one byte, then writes bytes to `writer`, once. It drops those
    /// that the writer took and returns their number, 0 only when the producer has ended the stream
    /// and all was read.
    ///
    /// It writes up to 32 KiB, or an eighth of the ring where that is more.
    ///
    /// So `while consumer.write_to(&mut writer)? > 0 {}` passes the whole stream on.
    ///
    /// Cost: one `write` of the writer; no copy.
    ///
    /// # Errors
    ///
    /// `WriteZero` when the writer takes nothing; else what it returns. Nothing is dropped then. A
    /// writer that claims more bytes than it was given is broken and gets `InvalidData`.
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

/// Blocks until there is a byte at least, or the producer is gone and all was read.
impl<A: Access> Read for End<false, Waking<A>> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        or_end(self.wait(1))?;
        Ok(self.get_some(into))
    }
}

/// Blocks as `read` does, and lends all bytes that can be read, at once.
impl BufRead for Consumer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        or_end(self.wait(1))?;
        Ok(self.peek())
    }

    /// Drops the oldest `bytes` bytes.
    ///
    /// # Panics
    ///
    /// When `bytes` is over the length of what there is.
    fn consume(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}
