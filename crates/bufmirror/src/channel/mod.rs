//! Bytes from one thread to another, through memory that is mapped twice.

// First: documentation lists the methods of a type in the order of the modules that have them.
mod consumer;
mod producer;

pub(crate) mod end;
pub(crate) mod header;
pub(crate) mod io;
pub(crate) mod link;
mod pieces;
mod threads;
pub(crate) mod waits;

use core::fmt;

pub use consumer::Consumer;
pub use producer::Producer;

use self::end::End;
use self::link::Core;
use self::threads::Threads;
use crate::map::Mirror;
use crate::{MapError, MirrorRing};

/// Makes a channel of bytes for two threads, which holds at least `capacity` bytes. One end writes,
/// the other reads.
///
/// Both ends borrow slices of the one ring, so only the user's own code copies bytes. No lock is
/// taken and no locked instruction is executed unless an end has to sleep. Capacity is rounded up
/// to whole pages. For other settings see [`Builder::channel`](crate::Builder::channel).
///
/// Cost: as [`MirrorRing::new`], and an allocation.
///
/// # Errors
///
/// As [`MirrorRing::new`].
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
/// end remembers how far the other was is from FastForward and MCRingBuffer (Lee, Bu and
/// Chandranmenon 2010).
pub fn channel(capacity: usize) -> Result<(Producer, Consumer), MapError> {
    MirrorRing::builder().capacity(capacity).channel()
}

/// Makes the ends of a channel over `mirror`.
pub(crate) fn over(mirror: Mirror) -> (Producer, Consumer) {
    let core = Core::new(mirror, Threads::new());
    (Producer::new(End::new(&core)), Consumer::new(End::new(&core)))
}

/// The reason why a wait ended without the bytes that were waited for. Nothing was read, written or
/// lost.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use bufmirror::{WaitError, channel};
///
/// let (producer, mut consumer) = channel(4096)?;
/// drop(producer);
/// assert!(matches!(consumer.wait(1), Err(WaitError::Closed { .. })));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The other end is gone. A consumer can still read the bytes that are left.
    Closed {
        /// Bytes waited for.
        requested: usize,
        /// Bytes that were available.
        available: usize,
    },
    /// Time was up.
    TimedOut {
        /// Bytes waited for.
        requested: usize,
        /// Bytes that were available.
        available: usize,
    },
    /// The other end is another process, which wrote nonsense into what both share. No bytes are
    /// lent or copied by a position that makes no sense. From then on each wait for more than can
    /// be had at once ends so, also if the header makes sense again.
    Corrupt,
    /// Tasks cannot be woken by another process; only ends that threads wait with can be shared
    /// between processes.
    NoTasks,
    /// The ring is smaller: this number of bytes will never be available at once.
    TooLong {
        /// Bytes asked for.
        requested: usize,
        /// Bytes the ring holds.
        capacity: usize,
    },
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed { requested, available } => {
                write!(f, "other end closed: {requested} bytes waited for, {available} bytes available")
            }
            Self::TimedOut { requested, available } => {
                write!(f, "time is up: {requested} bytes waited for, {available} bytes available")
            }
            Self::Corrupt => write!(f, "the other process wrote nonsense into the ring's header"),
            Self::NoTasks => write!(f, "tasks cannot wait for another process"),
            Self::TooLong { requested, capacity } => {
                write!(f, "cannot wait for {requested} bytes in a ring of {capacity} bytes")
            }
        }
    }
}

impl core::error::Error for WaitError {}

/// `BrokenPipe`, `TimedOut` or `InvalidInput`.
impl From<WaitError> for std::io::Error {
    fn from(error: WaitError) -> Self {
        let kind = match error {
            WaitError::Closed { .. } => std::io::ErrorKind::BrokenPipe,
            WaitError::TimedOut { .. } => std::io::ErrorKind::TimedOut,
            WaitError::NoTasks => std::io::ErrorKind::Unsupported,
            WaitError::Corrupt => std::io::ErrorKind::InvalidData,
            WaitError::TooLong { .. } => std::io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

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
