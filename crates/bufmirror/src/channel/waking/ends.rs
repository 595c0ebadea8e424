//! The ends of a channel between threads, or between processes that trust each other.

use super::Waking;
use super::threads::Threads;
use super::transport::Core;
use crate::channel::end::{ChannelState, End, Lending};
use crate::map::Mirror;
use crate::{Builder, ConfigError};

/// The writing end of a [`channel`](crate::channel()). Dropping it closes the channel: the consumer
/// can read the remaining bytes.
///
/// [`reserve`](Self::reserve), [`commit`](Self::commit) and [`put`](Self::put) never wait.
/// [`wait`](Self::wait) and its siblings wait for room, by blocking the thread or as a future.
/// `std::io::Write` blocks, as a pipe does.
///
/// Contents: a reservation has zeros or recycled bytes.
///
/// ```
/// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
/// producer.reserve(5)?.copy_from_slice(b"hello"); // in place
/// producer.commit(5);
/// producer.put(b" world")?; // by copying
/// assert_eq!(consumer.peek(), b"hello world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Producer = End<true, Waking<Lending>>;

/// The reading end of a [`channel`](crate::channel()). Dropping it closes the channel: the
/// producer's waits and writes fail.
///
/// [`peek`](Self::peek), [`consume`](Self::consume) and [`get`](Self::get) never wait.
/// [`wait`](Self::wait) and its siblings wait for bytes, by blocking the thread or as a future.
/// `std::io::Read` and `BufRead` block, as a pipe does, and return 0 once the producer was dropped
/// and all bytes were read.
///
/// ```
/// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
/// producer.put(b"\x05hello\x05wor")?;
/// // Records with their length in front, each read in place.
/// while let [length, rest @ ..] = consumer.peek() {
///     let length = usize::from(*length);
///     let Some(word) = rest.get(..length) else { break }; // the rest has yet to come
///     assert_eq!(word, b"hello");
///     consumer.consume(1 + length);
/// }
/// assert_eq!(consumer.peek(), b"\x05wor");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Consumer = End<false, Waking<Lending>>;

/// Makes a channel of bytes for two threads, which holds at least `capacity` bytes. One end writes,
/// the other reads.
///
/// Both ends borrow slices of one ring, so only the user's own code copies bytes. No lock is taken
/// and no locked instruction is executed unless an end has to sleep. Capacity is rounded up to
/// whole pages. For other settings see [`Builder::channel`](crate::Builder::channel).
///
/// Cost: as [`MirrorRing::new`](crate::MirrorRing::new), and an allocation.
///
/// # Errors
///
/// The errors are those of [`MirrorRing::new`](crate::MirrorRing::new).
///
/// ```
/// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
/// let reader = std::thread::spawn(move || {
///     let mut text = String::new();
///     std::io::Read::read_to_string(&mut consumer, &mut text).map(|_| text)
/// });
/// std::io::Write::write_all(&mut producer, b"hello")?;
/// drop(producer); // the other end reads what is left, and then its end
/// assert_eq!(reader.join().unwrap()?, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Source
///
/// A queue without locks for one producer and one consumer is Lamport's (1983). The idea that each
/// end caches the position of the other is from FastForward and MCRingBuffer (Lee, Bu and
/// Chandranmenon 2010).
pub fn channel(capacity: usize) -> Result<(Producer, Consumer), ConfigError> {
    Builder::new().capacity(capacity).channel()
}

impl Builder {
    /// Builds the ends of a channel with these settings; see [`channel`](fn@crate::channel).
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// ```
    /// use bufmirror::Builder;
    ///
    /// let settings = Builder::new().capacity(64 << 10).populate(true); // no faults later
    /// let (mut producer, mut consumer) = settings.channel()?;
    /// let reader = std::thread::spawn(move || {
    ///     consumer.wait(4)?;
    ///     Ok::<_, bufmirror::WaitError>(consumer.peek().to_vec())
    /// });
    /// producer.put(b"ping")?;
    /// assert_eq!(reader.join().unwrap()?, b"ping");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn channel(self) -> Result<(Producer, Consumer), ConfigError> {
        self.mirror(1).map(over)
    }
}

/// Makes the ends of a channel over `mirror`.
pub(crate) fn over(mirror: Mirror) -> (Producer, Consumer) {
    let core = Core::new(mirror, Threads::new());
    (End::new(&core), End::new(&core))
}

impl Producer {
    /// Ends the stream as dropping this end would: the consumer reads the remaining bytes, then the
    /// end of the stream.
    ///
    /// Afterwards there is no room in this end, and waits fail as if the consumer had been dropped.
    /// A second call does nothing.
    ///
    /// Cost: a locked instruction. If the consumer sleeps, also the cost of waking it.
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
        if !self.channel.is_over {
            self.channel.is_over = true;
            self.channel.close(true);
            self.cached_available = 0;
        }
    }
}

impl Consumer {
    /// Returns all bytes that can be read now, oldest first, in one mutable slice: to unmask or
    /// decrypt them in place.
    ///
    /// Changes remain until the bytes are consumed.
    ///
    /// Cost: as [`len`](Self::len). If memory is not mapped twice, the unconsumed bytes are copied
    /// once when the ring's end is passed.
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
        self.look();
        self.is_changed = !self.is_mapped();
        let mut filled = self.window(self.cached_available);
        // SAFETY:
        // - valid and initialised: as in `lend`.
        // - exclusive: as in `lend`, and `&mut self` makes it the only borrow.
        unsafe { filled.as_mut() }
    }
}

bufcore::unwind_safe!(Producer, Consumer);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::over;
    use crate::map::Mirror;

    /// Where memory is not mapped twice: windows are contiguous all the same.
    #[test]
    fn a_channel_over_ordinary_memory() {
        for capacity in [1, 2, 7, 64] {
            let (mut producer, mut consumer) = over(Mirror::on_heap(capacity).unwrap());
            assert!(!producer.is_mapped() && !consumer.is_mapped());
            let (mut written, mut read) = (0_u8, 0_u8);
            for round in 0..2000 {
                let n = (round * 7 % capacity + 1).min(producer.spare_capacity());
                let bytes: Vec<u8> = (0..n).map(|at| written.wrapping_add(at as u8)).collect();
                producer.put(&bytes).unwrap();
                written = written.wrapping_add(n as u8);
                let n = (round * 5 % capacity + 1).min(consumer.len());
                let expected: Vec<u8> = (0..n).map(|at| read.wrapping_add(at as u8)).collect();
                assert_eq!(consumer.peek_exact(n), Some(&expected[..]));
                let mut found = vec![0; n];
                consumer.get(&mut found).unwrap();
                assert_eq!(found, expected);
                read = read.wrapping_add(n as u8);
            }
        }
    }

    /// What was changed in place stays so where it comes to be read at its other address. What
    /// comes meanwhile is as it was written.
    #[test]
    fn changes_in_place_over_ordinary_memory() {
        for capacity in [1_usize, 2, 7, 64] {
            let (mut producer, mut consumer) = over(Mirror::on_heap(capacity).unwrap());
            let mut expected = alloc::collections::VecDeque::new();
            let mut written = 0_u8;
            for round in 0..2000 {
                let mut write = |n: usize, expected: &mut alloc::collections::VecDeque<u8>| {
                    for _ in 0..n.min(producer.spare_capacity()) {
                        written = written.wrapping_add(1);
                        producer.put(&[written]).unwrap();
                        expected.push_back(written);
                    }
                };
                write(round * 7 % capacity + 1, &mut expected);
                if round % 3 != 0 {
                    consumer.peek_mut().iter_mut().for_each(|byte| *byte ^= 0xA5);
                    expected.iter_mut().for_each(|byte| *byte ^= 0xA5);
                }
                write(round * 3 % capacity + 1, &mut expected);
                let n = (round * 5 % capacity + 1).min(consumer.len());
                consumer.consume(n);
                expected.drain(..n);
                assert!(consumer.peek().iter().eq(&expected), "round {round} of {capacity}");
            }
        }
    }
}
