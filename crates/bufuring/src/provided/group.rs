//! Buffers of a pool that the kernel has; see [`Group`].

use core::fmt;
use core::task::Waker;
use std::mem;
use std::sync::Arc;

use bufcore::strategy::caught;
use bufcore::strategy::sync::{Mutex, lock};
use bufcore::{AcquireError, Buf, BufferPool, Lease};

use super::Provided;
use crate::driver::MOST_BYTES;
use crate::tag::Tag;
use crate::{Driver, Refused};

/// The kernel takes no more in one group.
const MOST_BUFFERS: u16 = 1 << 15;

/// Lends buffers of a pool to the kernel, for what arrives at any of many sockets.
///
/// A server with a thousand idle connections needs no thousand buffers so: the kernel takes one
/// when bytes have arrived. [`Receiver::next`](crate::Receiver::next) returns it, and the group
/// takes another from the pool.
///
/// The budget is the number of buffers that the kernel has, or that hold bytes which no receiver
/// has returned yet. Where all of it is used, bytes stay in the sockets, and slow their senders
/// down.
///
/// Dropping the group takes the buffers back once its receivers are gone.
///
/// ```
/// use std::io::Write;
/// use std::net::{TcpListener, TcpStream};
///
/// use bufcore::MapOptions;
/// use bufuring::{Arena, Descriptor, Driver};
///
/// let arena = Arena::mapped(1 << 20, MapOptions::new())?;
/// let pool = bufslot::Builder::new().build_in(arena.part(512 << 10, 64)?, bufcore::Reject)?;
/// let driver = Driver::new(&arena);
/// let mut group = driver.group(pool, 16, 4096); // 16 buffers of 4 KiB, for all connections
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let mut receiver = driver.receive(&Descriptor::new(listener.accept()?.0), &group);
/// client.write_all(b"hello")?;
/// drop(client);
///
/// let mut received = Vec::new();
/// while let Some(bytes) = receiver.next(&driver, &mut group) {
///     received.extend_from_slice(&bytes?);
/// }
/// assert_eq!(received, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Group<P: BufferPool> {
    pool: P,
    /// `Some` until it is dropped.
    shared: Option<Arc<Shared<P::Lease>>>,
    /// The kernel's number of it, if that has the buffers.
    id: Option<u16>,
    refused: Option<Refused>,
    bytes: usize,
    tag: Tag,
}

impl<P: BufferPool> Group<P> {
    pub(crate) fn new(driver: &Driver, pool: P, buffers: u16, bytes: usize) -> Self {
        let budget = buffers.clamp(1, MOST_BUFFERS);
        let shared = Arc::new(Shared::new(budget));
        let owner: Arc<dyn Provided> = Arc::<Shared<P::Lease>>::clone(&shared);
        let none = Refused { call: "io_uring_setup", errno: libc::ENOSYS };
        let lent = match driver.ring() {
            Some(mut ring) => ring.lend(budget, owner),
            None => Err(none),
        };
        let (id, refused) = match lent {
            Ok(id) => (Some(id), None),
            Err(refused) => (None, Some(refused)),
        };
        Self { pool, shared: Some(shared), id, refused, bytes: bytes.max(1), tag: driver.tag() }
    }

    /// Returns what the system refused, if it provides no buffers. Receivers read one buffer at a
    /// time then.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Returns the number of buffers that the kernel has.
    #[must_use]
    pub fn provided(&self) -> usize {
        self.shared().lent()
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// Returns the pool, to take buffers of it for other uses.
    pub fn pool_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// Takes buffers from the pool and lends them to the kernel, until the budget is used.
    /// [`Receiver::next`](crate::Receiver::next) does so by itself.
    ///
    /// # Errors
    ///
    /// That of the pool. The buffers that were lent before remain so.
    ///
    /// # Panics
    ///
    /// Panics when the group is another driver's. A panic of the pool goes to the caller.
    pub fn refill(&mut self, driver: &Driver) -> Result<(), AcquireError> {
        assert!(self.is_of(&driver.tag()), "the group is another driver's");
        let Some(id) = self.id else { return Ok(()) };
        while self.shared().has_budget() {
            // Users' code, with nothing locked or borrowed.
            let mut buf = self.acquire()?;
            let spare = buf.spare_mut();
            let (start, len) = (spare.as_mut_ptr(), spare.len().min(self.bytes).min(MOST_BYTES) as u32);
            let Some(buffer) = self.shared().keep(buf) else { break };
            let Some(mut ring) = driver.ring() else { break };
            // SAFETY: the memory is the buffer's, which the group's owner has since `keep`. It
            // gives it to nobody before a completion names it.
            unsafe { ring.provide(id, buffer, start, len) };
        }
        Ok(())
    }

    /// A buffer with room for at least one byte.
    pub(super) fn acquire(&mut self) -> Result<Buf<P::Lease>, AcquireError> {
        let buf = self.pool.acquire(self.bytes)?;
        // A pool of the user's may return one that is full.
        match buf.spare_capacity() {
            0 => Err(AcquireError::Exhausted { requested: self.bytes, available: 0 }),
            _ => Ok(buf),
        }
    }

    /// The kernel's number of the group.
    pub(super) fn id(&self) -> Option<u16> {
        self.id
    }

    /// The bytes of a buffer.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_of(&self, tag: &Tag) -> bool {
        self.tag.is(tag)
    }

    pub(super) fn shared(&self) -> &Arc<Shared<P::Lease>> {
        self.shared.as_ref().expect("it is there until the group is dropped")
    }
}

impl<P: BufferPool> Drop for Group<P> {
    fn drop(&mut self) {
        // The share goes before the driver is told, which looks for groups without.
        drop(self.shared.take());
        if self.id.is_some() {
            self.tag.group_dropped();
        }
    }
}

impl<P: BufferPool> fmt::Debug for Group<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("provided", &self.provided())
            .field("bytes", &self.bytes)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

/// The owner of a group's buffers.
///
/// - L1: a buffer is in `lent` from before the kernel learns of it until a completion names it.
/// - L2: the buffers that are lent, and those that wait in receivers, are within the budget.
pub(crate) struct Shared<L: Lease> {
    budget: usize,
    lending: Mutex<Lending<L>>,
}

struct Lending<L: Lease> {
    /// By the number that the kernel knows them by.
    lent: Box<[Option<Buf<L>>]>,
    free: Vec<u16>,
    waiting: usize,
    /// Whom to tell when fewer wait.
    starved: Vec<Waker>,
}

impl<L: Lease> Lending<L> {
    fn has_budget(&self) -> bool {
        self.waiting < self.free.len()
    }
}

impl<L: Lease> Shared<L> {
    fn new(budget: u16) -> Self {
        let lent = (0..budget).map(|_| None).collect();
        let free = (0..budget).rev().collect();
        let lending = Mutex::new(Lending { lent, free, waiting: 0, starved: Vec::new() });
        Self { budget: usize::from(budget), lending }
    }

    /// The number of buffers that the kernel has.
    pub(super) fn lent(&self) -> usize {
        self.budget - lock(&self.lending).free.len()
    }

    /// The most buffers that are lent, or wait.
    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    fn has_budget(&self) -> bool {
        lock(&self.lending).has_budget()
    }

    /// Has `waker` woken when the budget allows another buffer. `false` if it does already.
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        // Users' code, with no lock held: the clone, the allocator, and the drop of a clone that
        // was not needed.
        let mut new = Some(waker.clone());
        let mut longer = Vec::new();
        loop {
            let mut lending = lock(&self.lending);
            if lending.has_budget() {
                return false;
            }
            if lending.starved.iter().any(|starved| starved.will_wake(waker)) {
                return true;
            }
            let number = lending.starved.len();
            if longer.capacity() > number {
                longer.append(&mut lending.starved);
                mem::swap(&mut longer, &mut lending.starved);
            }
            if lending.starved.capacity() > number {
                lending.starved.extend(new.take());
                return true;
            }
            drop(lending);
            longer.reserve(2 * number + 1);
        }
    }

    /// Keeps a buffer that is lent next, and returns its number.
    fn keep(&self, buf: Buf<L>) -> Option<u16> {
        let mut lending = lock(&self.lending);
        let Some(number) = lending.free.pop() else {
            drop(lending);
            drop(buf);
            return None;
        };
        lending.lent[usize::from(number)] = Some(buf);
        Some(number)
    }

    /// Takes the buffer that a completion names. It counts as waiting from now on.
    pub(super) fn returned(&self, number: u16) -> Option<Buf<L>> {
        let mut lending = lock(&self.lending);
        let buf = lending.lent.get_mut(usize::from(number))?.take()?;
        lending.free.push(number);
        lending.waiting += 1;
        Some(buf)
    }

    /// Notes that so many buffers wait no longer.
    pub(super) fn passed_on(&self, buffers: usize) {
        let mut lending = lock(&self.lending);
        lending.waiting -= buffers;
        let starved = if lending.has_budget() { mem::take(&mut lending.starved) } else { Vec::new() };
        drop(lending);
        // Users' code, with no lock held. A panic of one waker is neither for the others nor for
        // this caller.
        for waker in starved {
            caught(move || waker.wake());
        }
    }
}

impl<L: Lease> Provided for Shared<L> {}
