//! One end of a channel, whichever: a position of its own, and a look at the other's.
//!
//! ```text
//!  positions      read (consumer's)            written (producer's)          read + capacity
//!                   |  filled: the consumer's     |  free: the producer's      |
//!                   |                             |                            |
//! ```
//!
//! Each end remembers how far the other was when it last checked. So most calls use nothing that is
//! shared except their own position, which they write by one plain store.
//!
//! # Invariants
//!
//! - C1: a position counts the bytes that its end has moved past, modulo 2^64 or 2^32, from 0; it
//!   is stored by its end alone. `written - read` is at most the capacity.
//! - C2: an end touches the bytes from its position on, as many as it knows to be its own, and
//!   where nothing is mapped at both of their addresses. The consumer's are those that are written
//!   and not yet read, the producer's all others. The other end touches none of these before this
//!   one's position has gone past them.
//! - C3: what was done with bytes is ordered before the store of the position (Release), and what
//!   is done by the other end after its load (Acquire).
//! - C4: bytes come to be used through their other address only where `at` is taken back, and there
//!   [`end_of_addresses`] comes in between. Between threads, C3 orders them, whichever address they
//!   use. Where nothing is mapped, a byte that counts as written is the same at both.
//! - C5: an end that goes to sleep says so in its state, then reads the other's position and state.
//!   One that moves its position or closes reads the other's state afterwards. Between the two
//!   steps of each is a fence, so not both miss the other. The one of the end that moves may be the
//!   compiler's alone, as long as the system executes the other for both (`fences`). Where the
//!   system does so no more, both ends execute their own from then on (`Core::go_plain`).

use core::fmt;
use core::ptr::NonNull;

use bufkit::sync::{AtomicUsize, Ordering, RELEASE};

use crate::copy::copy;
use crate::map;
use crate::sync::end_of_addresses;

/// How an end uses the bytes that it has.
pub trait Access {
    /// Whether the other end keeps to the protocol, so that bytes can be lent.
    const LENDS: bool;

    /// Copies `from` to `place`, which is as long.
    ///
    /// # Safety
    ///
    /// `place` is within the ring's memory, and its bytes are the caller's (C2) and not lent.
    unsafe fn copy_in(place: NonNull<[u8]>, from: &[u8]);

    /// Copies `place` to `into`, which is as long.
    ///
    /// # Safety
    ///
    /// As [`copy_in`](Self::copy_in).
    unsafe fn copy_out(into: &mut [u8], place: NonNull<[u8]>);
}

/// Bytes are lent: the other end is the program's own, or trusted.
#[derive(Debug)]
pub struct Lending;

impl Access for Lending {
    const LENDS: bool = true;

    #[inline(always)]
    unsafe fn copy_in(mut place: NonNull<[u8]>, from: &[u8]) {
        // SAFETY: valid, initialised (M1) and the caller's alone, as it promises.
        copy(unsafe { place.as_mut() }, from);
    }

    #[inline(always)]
    unsafe fn copy_out(into: &mut [u8], place: NonNull<[u8]>) {
        // SAFETY: valid, initialised (M1) and the caller's alone, as it promises.
        copy(into, unsafe { place.as_ref() });
    }
}

/// The state that the two ends share, without the bytes of the ring.
///
/// # Safety
///
/// 1. Any thread may use it and drop it, and several through shared references at once: it is
///    atomics, locks, and what this end alone changes by `&mut`.
/// 2. [`position`](Self::position) returns the same word at each call, another one for each of the
///    two sides. If [`IS_OURS`](Self::IS_OURS), only the ends of this memory store there.
/// 3. [`is_mapped`](Self::is_mapped) returns the same at each call. It returns `true` only if the
///    memory is mapped twice, and [`CAN_BE_MAPPED`](Self::CAN_BE_MAPPED) is `true` then.
pub unsafe trait ChannelState {
    /// How the ends read and write the bytes of this memory.
    type Access: Access;
    /// Whether positions are this program's alone. Others are checked.
    const IS_OURS: bool;
    /// Whether the memory may be mapped twice.
    const CAN_BE_MAPPED: bool;

    /// Returns the position of the producer, or of the consumer.
    fn position(&self, producer: bool) -> &AtomicUsize;

    /// Returns whether one byte has two addresses, rather than two bytes one value.
    fn is_mapped(&self) -> bool;

    /// Notes that the other end's position makes no sense.
    fn note_corrupt(&self) {}

    /// Returns whether this end has said that it is done.
    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }

    /// Wakes the other end if it sleeps. After what it waits for (C5); `producer` says which end
    /// this is, here and below.
    fn moved(&self, producer: bool);

    /// Tells the other end that this one is gone.
    fn close(&self, producer: bool);

    /// Returns whether the other end is gone, or this one is done. If `asks`, an end between
    /// processes asks the system; otherwise it is what was last found.
    fn is_closed(&self, producer: bool, asks: bool) -> bool;
}

/// One end of a channel. Programs name it by its aliases: `Producer`, `Consumer`,
/// [`StaticProducer`](crate::StaticProducer), [`StaticConsumer`](crate::StaticConsumer),
/// `SharedProducer` and `SharedConsumer`.
///
/// Dropping it closes the channel for the other end.
///
/// ```
/// use bufmirror::{StaticChannel, StaticProducer};
///
/// fn send(end: &mut StaticProducer<'_>, byte: u8) -> bool {
///     end.put(&[byte]).is_ok()
/// }
///
/// let mut channel = StaticChannel::<512>::new(); // 256 bytes
/// let (mut producer, mut consumer) = channel.ends();
/// assert!(send(&mut producer, b'$'));
/// assert_eq!(consumer.peek(), b"$");
/// ```
pub struct End<const PRODUCER: bool, T: ChannelState> {
    pub(super) channel: T,
    /// Of the memory: twice `capacity` bytes are valid and initialised from here (M1).
    base: NonNull<u8>,
    /// Bytes, each with two addresses; not 0.
    pub(super) capacity: usize,
    /// The position, as an offset: less than the capacity.
    at: usize,
    /// C1.
    position: usize,
    /// How many bytes from here on are known to be this end's (C2).
    pub(super) cached_available: usize,
    /// Whether bytes of this end's may differ at their two addresses: they were lent to be changed
    /// in place where nothing is mapped. Those that count are the ones at the addresses from `at`
    /// on.
    pub(super) is_changed: bool,
}

// SAFETY: an end has its bytes alone (C2), as a `&mut [u8]` would; any thread may use what its
// channel shares (`ChannelState`, rule 1).
unsafe impl<const PRODUCER: bool, T: ChannelState> Send for End<PRODUCER, T> {}
// SAFETY: a shared end gives out nothing but numbers, and the same rule.
unsafe impl<const PRODUCER: bool, T: ChannelState> Sync for End<PRODUCER, T> {}

impl<const PRODUCER: bool, T: ChannelState> End<PRODUCER, T> {
    /// Makes an end at `position`, which is what the channel says.
    ///
    /// # Safety
    ///
    /// 1. `base` is valid for reads and writes of twice `capacity` initialised bytes as long as
    ///    `channel` exists, and `capacity` is not 0.
    /// 2. The bytes are used by this end and one of the other side only, over the same positions.
    #[inline]
    pub(super) unsafe fn over(channel: T, base: NonNull<u8>, capacity: usize, position: usize) -> Self {
        let at = position % capacity;
        let (cached_available, is_changed) = (0, false);
        let mut end = Self { channel, base, capacity, at, position, cached_available, is_changed };
        end.look();
        end
    }

    /// Returns whether the other end was dropped, or this one was closed. Bytes that a producer
    /// wrote before can still be read.
    ///
    /// Between two processes this is a system call.
    ///
    /// ```
    /// let mut channel = bufmirror::StaticChannel::<64>::new();
    /// let (mut producer, mut consumer) = channel.ends();
    /// producer.put(b"last")?;
    /// drop(producer);
    /// // Closed first, empty second: nothing can come in between.
    /// assert!(consumer.is_closed() && !consumer.is_empty());
    /// consumer.consume(4);
    /// assert!(consumer.is_closed() && consumer.is_empty()); // the end
    /// # Ok::<(), bufmirror::ReserveError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed(PRODUCER, true)
    }

    /// Returns the number of bytes that the ring holds when full.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the `len` bytes from the position on, which are known to be this end's.
    #[inline(always)]
    pub(super) fn window(&self, len: usize) -> NonNull<[u8]> {
        debug_assert!(len <= self.cached_available && self.at < self.capacity);
        // SAFETY: `at` is less than the capacity, of which the memory has twice as much (M1).
        let start = unsafe { self.base.add(self.at) };
        NonNull::slice_from_raw_parts(start, len)
    }

    /// Returns whether `n` bytes are this end's. It reads the other end's position only if they are
    /// not known to be.
    #[inline(always)]
    pub(super) fn has(&mut self, n: usize) -> bool {
        n <= self.cached_available || n <= self.look()
    }

    /// Returns how many of `n` bytes are this end's.
    #[inline(always)]
    pub(super) fn up_to(&mut self, n: usize) -> usize {
        if self.has(n) { n } else { self.cached_available }
    }

    /// Counts the bytes that are this end's, and notes and returns their number.
    #[inline]
    pub(super) fn look(&mut self) -> usize {
        self.cached_available = self.count();
        self.cached_available
    }

    /// Counts the bytes that are this end's, for those who only want to know. Returns 0 when the
    /// other end's position makes no sense.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        // ORDER: Acquire pairs with the store in `advance`: what the other end did with the bytes
        // happened before (C3).
        let other = self.channel.position(!PRODUCER).load(Ordering::Acquire);
        let filled =
            if PRODUCER { self.position.wrapping_sub(other) } else { other.wrapping_sub(self.position) };
        if !T::IS_OURS && filled > self.capacity {
            self.channel.note_corrupt();
            0
        } else if PRODUCER {
            // The other end may have read the last byte there will be.
            if self.channel.is_over() { 0 } else { self.capacity - filled }
        } else {
            filled
        }
    }

    /// Gives the next `n` bytes, which are known to be this end's, to the other end, and wakes it
    /// if it sleeps.
    #[inline(always)]
    pub(super) fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.cached_available);
        if T::CAN_BE_MAPPED {
            if PRODUCER && !self.channel.is_mapped() {
                self.reflect_apart(n);
            }
            end_of_addresses();
        } else if PRODUCER {
            self.reflect(n);
        }
        self.at += n;
        self.cached_available -= n;
        if self.at >= self.capacity {
            self.at -= self.capacity;
            if T::CAN_BE_MAPPED && !PRODUCER && self.is_changed {
                self.bring_down();
            }
        }
        self.position = self.position.wrapping_add(n);
        // ORDER: `RELEASE` pairs with the Acquire in `count`: C3.
        self.channel.position(PRODUCER).store(self.position, RELEASE);
        self.channel.moved(PRODUCER);
    }

    /// Makes the next `n` bytes, which are known to be this end's, the same at both addresses.
    #[inline(always)]
    fn reflect(&mut self, n: usize) {
        // SAFETY: within the memory (M1), since `at` is less than the capacity, and `n` at most
        // that. These bytes are this end's (C2), and nothing of them is lent: `&mut self`.
        unsafe { map::reflect(self.base, self.capacity, self.at, n) };
    }

    /// Does what `reflect` does, where most rings are mapped and need none.
    #[cold]
    #[inline(never)]
    fn reflect_apart(&mut self, n: usize) {
        self.reflect(n);
    }

    /// Repairs the bytes that are known to be this end's after `at` was taken back: it makes them
    /// at `at` what they were in the second half. Those that the other end has given meanwhile were
    /// not changed.
    #[cold]
    #[inline(never)]
    fn bring_down(&mut self) {
        self.is_changed = false;
        // SAFETY:
        // - `at` was not less than the capacity a moment ago, and so far from there the bytes that
        //   are known end before twice the capacity, because `at` was less than the capacity before
        //   and they were no more than that.
        // - these bytes are this end's (C2), at both addresses, and nothing of them is lent:
        //   `&mut self`.
        unsafe { map::rebase(self.base, self.capacity, self.capacity + self.at, self.cached_available) };
    }
}

impl<const PRODUCER: bool, T: ChannelState> Drop for End<PRODUCER, T> {
    fn drop(&mut self) {
        self.channel.close(PRODUCER);
    }
}

impl<const PRODUCER: bool, T: ChannelState> fmt::Debug for End<PRODUCER, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(if PRODUCER { "Producer" } else { "Consumer" })
            .field("capacity", &self.capacity)
            .field("is_closed", &self.channel.is_closed(PRODUCER, false))
            .finish_non_exhaustive()
    }
}
