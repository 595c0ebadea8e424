//! Bytes from one place of a program to another: between threads, through memory that is mapped
//! twice; without an operating system, through memory of the program's own; and between processes.

// First: documentation lists the methods of a type in the order of the modules that have them.
mod consumer;
mod producer;

pub(crate) mod end;
#[cfg(feature = "std")]
pub(crate) mod header;
#[cfg(feature = "std")]
pub(crate) mod io;
#[cfg(feature = "std")]
pub(crate) mod link;
#[cfg(feature = "std")]
mod pieces;
mod static_channel;
#[cfg(feature = "std")]
mod threads;
#[cfg(feature = "std")]
mod wait_error;
#[cfg(feature = "std")]
mod waiting;
#[cfg(feature = "std")]
pub(crate) mod waking;

#[cfg(feature = "std")]
pub use consumer::Consumer;
pub use end::{End, Reads, Writes};
#[cfg(feature = "std")]
pub use producer::Producer;
pub use static_channel::{StaticChannel, StaticConsumer, StaticProducer};
#[cfg(feature = "std")]
pub use wait_error::WaitError;

#[cfg(feature = "std")]
use self::link::Core;
#[cfg(feature = "std")]
use self::threads::Threads;
#[cfg(feature = "std")]
use crate::map::Mirror;
#[cfg(feature = "std")]
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
#[cfg(feature = "std")]
pub fn channel(capacity: usize) -> Result<(Producer, Consumer), MapError> {
    MirrorRing::builder().capacity(capacity).channel()
}

/// Makes the ends of a channel over `mirror`.
#[cfg(feature = "std")]
pub(crate) fn over(mirror: Mirror) -> (Producer, Consumer) {
    let core = Core::new(mirror, Threads::new());
    (End::new(&core), End::new(&core))
}

#[cfg(all(test, feature = "std", not(any(loom, shuttle))))]
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
