//! A channel in memory of the program's own, whose ends do not wait.
//!
//! ```text
//!  memory         | a b c d e f g h | a b c d e f g h |   each byte twice, `capacity` apart
//! ```

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;

use bufkit::sync::{AtomicBool, AtomicUsize, Ordering};

use super::end::{ChannelState, End, Lending};

/// What both ends see: of the consumer, and of the producer.
#[derive(Debug)]
#[cfg_attr(all(test, any(loom, shuttle)), derive(Default))]
struct Positions {
    /// C1.
    positions: [AtomicUsize; 2],
    /// Whether the end was dropped.
    closed: [AtomicBool; 2],
}

/// The shared state of two ends that do not wake each other, as one end holds it.
#[derive(Debug)]
pub struct Polled<'a>(&'a Positions);

// SAFETY: two words and two flags, all atomic, which the channel lends to one end of each side at a
// time; nothing is mapped.
unsafe impl ChannelState for Polled<'_> {
    type Access = Lending;
    const CAN_BE_MAPPED: bool = false;
    const IS_OURS: bool = true;

    #[inline(always)]
    fn position(&self, producer: bool) -> &AtomicUsize {
        &self.0.positions[usize::from(producer)]
    }

    #[inline(always)]
    fn is_mapped(&self) -> bool {
        false
    }

    #[inline(always)]
    fn moved(&self, _producer: bool) {}

    #[inline]
    fn close(&self, producer: bool) {
        // ORDER: Release pairs with the Acquire in `is_closed`.
        self.0.closed[usize::from(producer)].store(true, Ordering::Release);
    }

    #[inline]
    fn is_closed(&self, producer: bool, _asks: bool) -> bool {
        // ORDER: Acquire pairs with the Release in `close`: an end that sees the other gone sees
        // its last position.
        self.0.closed[usize::from(!producer)].load(Ordering::Acquire)
    }
}

/// Carries bytes from one end to the other, without an allocator or an operating system: from an
/// interrupt handler to the main program, or between threads.
///
/// A static channel is `BYTES` bytes of memory and four words. It holds half as many bytes: its
/// [`capacity`](Self::capacity). Each byte is stored twice, so that the free part and the filled
/// part are always one slice each.
///
/// Threads: each end is used by one thread or interrupt handler at a time, and can be sent to
/// another. Neither end waits for the other, masks interrupts, or executes a locked instruction.
/// Nothing wakes a consumer: it must poll. `channel` has ends that sleep, and needs `std`.
///
/// Cost: each byte is copied once more than through a mapped ring. The ends share cache lines,
/// which costs time only on several processors.
///
/// ```
/// use bufmirror::StaticChannel;
///
/// // On a microcontroller: `cortex_m::singleton!(: StaticChannel<128> = StaticChannel::new())`, or `static_cell`.
/// let channel: &'static mut StaticChannel<128> = Box::leak(Box::new(StaticChannel::new()));
/// let (mut producer, mut consumer) = channel.ends();
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
/// It can be a field, or a local variable, and be reused:
///
/// ```
/// let mut channel = bufmirror::StaticChannel::<64>::new();
/// for round in 0..3 {
///     let (mut producer, mut consumer) = channel.ends();
///     std::thread::scope(|scope| {
///         scope.spawn(move || producer.put(&[round; 32]));
///     });
///     assert_eq!(consumer.peek(), [round; 32]);
/// }
/// ```
///
/// Memory of less than two bytes does not compile:
///
/// ```compile_fail
/// let channel = bufmirror::StaticChannel::<1>::new();
/// ```
pub struct StaticChannel<const BYTES: usize> {
    positions: Positions,
    /// Twice `CAPACITY` bytes are used.
    memory: UnsafeCell<[u8; BYTES]>,
}

impl<const BYTES: usize> StaticChannel<BYTES> {
    const CAPACITY: usize = {
        assert!(BYTES >= 2, "a channel holds each byte twice");
        BYTES / 2
    };

    /// Makes an empty channel.
    ///
    /// Cost: nothing in a static; otherwise `BYTES` bytes are zeroed.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub const fn new() -> Self {
        _ = Self::CAPACITY;
        Self {
            positions: Positions {
                positions: [AtomicUsize::new(0), AtomicUsize::new(0)],
                closed: [AtomicBool::new(false), AtomicBool::new(false)],
            },
            memory: UnsafeCell::new([0; BYTES]),
        }
    }

    /// As above; atomics of a checker are not made at compile time.
    #[cfg(all(test, any(loom, shuttle)))]
    #[allow(clippy::new_without_default, reason = "for models")]
    #[must_use]
    pub fn new() -> Self {
        Self { positions: Positions::default(), memory: UnsafeCell::new([0; BYTES]) }
    }

    /// Empties the channel, and returns its two ends.
    ///
    /// The channel is borrowed while an end exists, which may be for `'static`. Dropping an end
    /// closes the channel for the other one.
    ///
    /// Contents: a reservation has zeros or recycled bytes.
    ///
    /// ```
    /// let mut channel = bufmirror::StaticChannel::<64>::new();
    /// let (mut producer, consumer) = channel.ends();
    /// producer.put(b"lost")?;
    /// drop((producer, consumer));
    /// let (_, consumer) = channel.ends();
    /// assert!(consumer.is_empty());
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    #[must_use]
    pub fn ends(&mut self) -> (StaticProducer<'_>, StaticConsumer<'_>) {
        let this: &Self = self;
        for (position, closed) in this.positions.positions.iter().zip(&this.positions.closed) {
            // ORDER: Relaxed, here and below: no other end exists, and whatever hands a new one to
            // another thread orders it.
            position.store(0, Ordering::Relaxed);
            closed.store(false, Ordering::Relaxed);
        }
        let base = NonNull::from(&this.memory).cast::<u8>();
        // SAFETY:
        // - valid, initialised: `BYTES` bytes from `base` are, in a cell, and twice the capacity is
        //   no more.
        // - exclusive: the channel is borrowed mutably for as long as both ends, which are the only
        //   ones over it: earlier ends borrowed it, too. One is the producer, one the consumer.
        let producer = unsafe { End::over(Polled(&this.positions), base, Self::CAPACITY, 0) };
        // SAFETY: as above.
        let consumer = unsafe { End::over(Polled(&this.positions), base, Self::CAPACITY, 0) };
        (producer, consumer)
    }

    /// Returns the number of bytes that the channel holds when full: half of its memory.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        Self::CAPACITY
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<const BYTES: usize> Default for StaticChannel<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for StaticChannel<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticChannel").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// The writing end of a [`StaticChannel`]. Dropping it closes the channel for the consumer.
///
/// No method waits, and an interrupt handler must not use an end whose method it interrupted.
///
/// Contents: a reservation has zeros or recycled bytes.
///
/// ```
/// let mut channel = bufmirror::StaticChannel::<64>::new();
/// let (mut producer, mut consumer) = channel.ends();
/// producer.reserve(5)?.copy_from_slice(b"hello"); // in place
/// producer.commit(5);
/// assert_eq!(consumer.peek(), b"hello");
/// # Ok::<(), bufmirror::ReserveError>(())
/// ```
pub type StaticProducer<'a> = End<true, Polled<'a>>;

/// The reading end of a [`StaticChannel`]. Dropping it closes the channel for the producer.
///
/// No method waits, and an interrupt handler must not use an end whose method it interrupted.
///
/// ```
/// let mut channel = bufmirror::StaticChannel::<64>::new();
/// let (mut producer, mut consumer) = channel.ends();
/// producer.put(b"one\ntwo\nthr")?;
/// let lines = consumer.pieces(b'\n').into_iter().count();
/// assert_eq!((lines, consumer.peek()), (2, &b"thr"[..]));
/// # Ok::<(), bufmirror::ReserveError>(())
/// ```
pub type StaticConsumer<'a> = End<false, Polled<'a>>;
