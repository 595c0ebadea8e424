//! Pieces that end with one byte, and the waits for them.

use core::time::Duration;
use std::time::Instant;

use bufcore::author::find_byte;

use super::ends::Consumer;
use super::wait_error::WaitError;

impl Consumer {
    /// Blocks until a complete piece can be read, with its `delimiter`.
    ///
    /// A loop with [`pieces`](Self::pieces) processes each piece of a stream. Bytes that remain at
    /// the end are a last piece without its delimiter.
    ///
    /// Cost: one comparison for each byte up to the first delimiter; waits as [`wait`](Self::wait)
    /// does.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the producer was dropped and no complete piece is left,
    /// [`WaitError::TooLong`] if one piece fills the ring.
    ///
    /// ```
    /// use bufmirror::WaitError;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let writer = std::thread::spawn(move || producer.put(b"one\ntwo\nthr"));
    /// let mut lines = Vec::new();
    /// let end = loop {
    ///     if let Err(error) = consumer.wait_piece(b'\n') {
    ///         break error;
    ///     }
    ///     for line in &mut consumer.pieces(b'\n') {
    ///         lines.push(line.to_vec());
    ///     }
    /// };
    /// assert!(matches!(end, WaitError::Closed { .. }), "a line that is longer than the ring");
    /// assert_eq!((lines, consumer.peek()), (vec![b"one".to_vec(), b"two".to_vec()], &b"thr"[..]));
    /// # writer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_piece(&mut self, delimiter: u8) -> Result<(), WaitError> {
        self.wait_piece_until(delimiter, None)
    }

    /// Waits as [`wait_piece`](Self::wait_piece) does, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait_piece`](Self::wait_piece), and [`WaitError::TimedOut`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bufmirror::WaitError;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"half a li")?;
    /// let late = consumer.wait_piece_timeout(b'\n', Duration::from_millis(10)).unwrap_err();
    /// assert_eq!(late, WaitError::TimedOut { requested: 10, available: 9 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_piece_timeout(&mut self, delimiter: u8, timeout: Duration) -> Result<(), WaitError> {
        self.wait_piece_until(delimiter, Instant::now().checked_add(timeout))
    }

    /// Waits as [`wait_piece`](Self::wait_piece) does, as a future for any executor. Dropping it
    /// loses nothing.
    ///
    /// # Errors
    ///
    /// As [`wait_piece`](Self::wait_piece).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let reader = async move {
    ///     consumer.wait_piece_async(b'\n').await?; // other tasks can run
    ///     Ok::<_, bufmirror::WaitError>(consumer.peek().to_vec())
    /// };
    /// let writer = async move { producer.put(b"a line\n") };
    /// let (read, written) = tokio::join!(reader, writer);
    /// written?;
    /// assert_eq!(read?, b"a line\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn wait_piece_async(&mut self, delimiter: u8) -> Result<(), WaitError> {
        // Lets other tasks run, where pieces are always there already.
        self.wait_async(0).await?;
        let mut searched = 0;
        while let Some(wanted) = self.more_for_piece(delimiter, &mut searched) {
            self.wait_async(wanted).await?;
        }
        Ok(())
    }

    fn wait_piece_until(&mut self, delimiter: u8, until: Option<Instant>) -> Result<(), WaitError> {
        let mut searched = 0;
        while let Some(wanted) = self.more_for_piece(delimiter, &mut searched) {
            self.wait_until(wanted, until)?;
        }
        Ok(())
    }

    /// Searches the bytes behind the first `searched` ones for a delimiter. Returns how many bytes
    /// there have to be before it is worth to look again; `None` when a delimiter is there.
    ///
    /// That is one more than were looked at. More may have come since, so it is not one more than
    /// there are.
    fn more_for_piece(&mut self, delimiter: u8, searched: &mut usize) -> Option<usize> {
        let bytes = self.peek();
        if find_byte(&bytes[*searched..], delimiter).is_some() {
            return None;
        }
        *searched = bytes.len();
        Some(*searched + 1)
    }
}
