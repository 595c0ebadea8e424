//! Bytes from one place of a program to another, through memory of the program's own.
//!
//! ```text
//!  positions      read (consumer's)            written (producer's)          read + capacity
//!                   |  filled: the consumer's     |  free: the producer's      |
//!                   |                             |                            |
//!  memory         | a b c d e f g h | a b c d e f g h |   each byte twice, `capacity` apart
//! ```
//!
//! # Invariants
//!
//! - P1: a position counts the bytes that its end has moved past, modulo 2^64 or 2^32, from 0. Its
//!   end alone stores it. `written - read` is at most the capacity.
//! - P2: an end touches the bytes from its position on, as many as it knows to be its own, each at
//!   both of its addresses. The consumer's are those that are written and not yet read, the
//!   producer's all others. The other end touches none of these before this one's position has
//!   gone past them.
//! - P3: what was done with bytes is ordered before the store of the position (Release), and what
//!   the other end does with them after its load (Acquire).
//! - P4: a byte that counts as written is the same at both of its addresses.

// First: documentation lists the methods of a type in the order of the modules that have them.
mod consumer;
mod producer;

mod end;

use core::cell::UnsafeCell;
use core::fmt;

pub use consumer::PipeConsumer;
pub use producer::PipeProducer;

use self::end::{End, Shared};

/// Carries bytes from one end to the other, without an allocator or an operating system: from an
/// interrupt handler to the main program, or between threads.
///
/// A pipe is `BYTES` bytes of memory and four words. It holds half as many bytes, its
/// [`capacity`](Self::capacity). Each byte is there twice, so that all room and all filled bytes
/// are one slice each, wherever in the ring they lie.
///
/// Threads: each end belongs to one place at a time, and can be sent to another. Neither end waits
/// for the other, masks interrupts, or executes a locked instruction. Nothing wakes a consumer: it
/// looks again. `channel` has ends that sleep, and needs `std`.
///
/// Cost: each byte is copied once more than through a mapped ring. The ends share cache lines,
/// which matters on several processors and not on one.
///
/// ```
/// use bufmirror::Pipe;
///
/// // On a microcontroller: `cortex_m::singleton!(: Pipe<128> = Pipe::new())`, or `static_cell`.
/// let pipe: &'static mut Pipe<128> = Box::leak(Box::new(Pipe::new()));
/// let (mut producer, mut consumer) = pipe.ends();
///
/// // In the interrupt handler of a serial port, which has the producer:
/// let received = std::thread::spawn(move || producer.put_some(b"$GPGGA,"));
/// assert_eq!(received.join().unwrap(), 7);
///
/// // In the main program:
/// assert_eq!(consumer.peek(), b"$GPGGA,");
/// consumer.consume(7);
/// assert!(consumer.is_closed() && consumer.is_empty()); // the producer was dropped
/// ```
///
/// It can be a field, or on the stack, and used again:
///
/// ```
/// let mut pipe = bufmirror::Pipe::<64>::new();
/// for round in 0..3 {
///     let (mut producer, mut consumer) = pipe.ends();
///     std::thread::scope(|scope| {
///         scope.spawn(move || producer.put(&[round; 32]));
///     });
///     assert_eq!(consumer.peek(), [round; 32]);
/// }
/// ```
///
/// Memory of less than two bytes is refused by the compiler:
///
/// ```compile_fail
/// let pipe = bufmirror::Pipe::<1>::new();
/// ```
pub struct Pipe<const BYTES: usize> {
    shared: Shared,
    /// Twice `CAPACITY` bytes are used.
    memory: UnsafeCell<[u8; BYTES]>,
}

impl<const BYTES: usize> Pipe<BYTES> {
    const CAPACITY: usize = {
        assert!(BYTES >= 2, "a pipe holds each byte twice");
        BYTES / 2
    };

    /// Makes an empty pipe.
    ///
    /// Cost: nothing, as the value of a static; `BYTES` bytes are zeroed otherwise.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub const fn new() -> Self {
        _ = Self::CAPACITY;
        Self { shared: Shared::new(), memory: UnsafeCell::new([0; BYTES]) }
    }

    /// As above; atomics of a checker are not made at compile time.
    #[cfg(any(loom, shuttle))]
    #[allow(clippy::new_without_default, reason = "for models")]
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Shared::new(), memory: UnsafeCell::new([0; BYTES]) }
    }

    /// Returns the two ends of the pipe, which is emptied.
    ///
    /// The pipe is borrowed as long as an end exists: for ever, if it is borrowed so. An end that
    /// is dropped tells the other one.
    ///
    /// Contents: what a reservation lends is zeros or recycled bytes.
    ///
    /// ```
    /// let mut pipe = bufmirror::Pipe::<64>::new();
    /// let (mut producer, consumer) = pipe.ends();
    /// producer.put(b"lost")?;
    /// drop((producer, consumer));
    /// let (_, consumer) = pipe.ends();
    /// assert!(consumer.is_empty());
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    #[must_use]
    pub fn ends(&mut self) -> (PipeProducer<'_>, PipeConsumer<'_>) {
        let this: &Self = self;
        this.shared.reset();
        let base = this.memory.get().cast::<u8>();
        // SAFETY:
        // - valid, initialised: `BYTES` bytes from `base` are, and twice the capacity is no more.
        // - exclusive: the pipe is borrowed mutably for as long as both ends, which are the only
        //   ones over it: earlier ends borrowed it, too. One is the producer's, one the consumer's.
        let (producer, consumer) = unsafe { End::pair(&this.shared, base, Self::CAPACITY) };
        (PipeProducer::new(producer), PipeConsumer::new(consumer))
    }

    /// Returns the bytes that the pipe holds when it is full: half of its memory.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        Self::CAPACITY
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<const BYTES: usize> Default for Pipe<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for Pipe<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}
