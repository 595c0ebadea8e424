//! Buffers of a pool that the kernel has; see [`Group`].

use core::fmt;
use std::sync::Arc;

use bufcore::{AcquireError, Buf, BufferPool};

use super::BufRingOwner;
use super::buffer_loans::BufferLoans;
use crate::driver::MOST_BYTES;
use crate::driver_id::DriverId;
use crate::{Driver, Refused};

/// The kernel takes no more in one group.
const MOST_BUFFERS: u16 = 1 << 15;

/// Provides buffers of a pool to the kernel, for data that arrives on any of many sockets.
///
/// A server with a thousand idle connections therefore does not need a thousand buffers: the kernel
/// takes one when bytes arrive. [`Receiver::next`](crate::Receiver::next) returns it, and the group
/// takes another one from the pool.
///
/// The budget limits the buffers that the kernel has, plus those with bytes that no receiver has
/// returned yet. When it is used up, bytes stay in the sockets, and slow their senders down.
///
/// Dropping the group reclaims the buffers once its receivers are dropped.
///
/// ```
/// use std::io::Write;
/// use std::net::{TcpListener, TcpStream};
///
/// use bufcore::MapOptions;
/// use bufuring::{Arena, Descriptor, Driver};
///
/// let arena = Arena::mapped(1 << 20, MapOptions::new())?;
/// let pool = bufslot::Builder::new().build_in(arena.part(512 << 10, 64)?, bufcore::NoFallback)?;
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
    shared: Option<Arc<BufferLoans<P::Lease>>>,
    /// The kernel's number of it, or why that has no buffers of it.
    id: Result<u16, Refused>,
    bytes: usize,
    driver_id: DriverId,
}

impl Driver {
    /// Provides up to `buffers` buffers of `pool`, of `bytes` each, to the kernel for arriving
    /// data.
    ///
    /// # Panics
    ///
    /// Never. If the system does not support provided buffers, [`Group::refused`] returns the
    /// refusal, and receivers read one buffer at a time.
    ///
    /// [`Group`] has an example.
    #[must_use]
    pub fn group<P: BufferPool>(&self, pool: P, buffers: u16, bytes: usize) -> Group<P> {
        let budget = buffers.clamp(1, MOST_BUFFERS);
        let shared = Arc::new(BufferLoans::new(budget));
        let owner: Arc<dyn BufRingOwner> = Arc::<BufferLoans<P::Lease>>::clone(&shared);
        let none = Refused { call: "io_uring_setup", errno: libc::ENOSYS };
        let id = self.ring().ok_or(none).and_then(|mut ring| ring.lend(budget, owner));
        Group { pool, shared: Some(shared), id, bytes: bytes.max(1), driver_id: self.driver_id().clone() }
    }
}

impl<P: BufferPool> Group<P> {
    /// Returns the refusal of the system, if it does not support provided buffers. Receivers then
    /// read one buffer at a time.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        self.id.err()
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

    /// Returns the pool, for acquiring buffers for other uses.
    pub fn pool_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// Takes buffers from the pool and provides them to the kernel, until the budget is used up.
    /// [`Receiver::next`](crate::Receiver::next) does so automatically.
    ///
    /// # Errors
    ///
    /// The error of the pool. The buffers that were provided before remain with the kernel.
    ///
    /// # Panics
    ///
    /// Panics if the group belongs to another driver. A panic of the pool propagates to the caller.
    pub fn refill(&mut self, driver: &Driver) -> Result<(), AcquireError> {
        assert!(self.is_of(driver.driver_id()), "the group is another driver's");
        let Ok(id) = self.id else { return Ok(()) };
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
        self.id.ok()
    }

    /// The bytes of a buffer.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_of(&self, driver_id: &DriverId) -> bool {
        self.driver_id.is(driver_id)
    }

    pub(super) fn shared(&self) -> &Arc<BufferLoans<P::Lease>> {
        self.shared.as_ref().expect("it is there until the group is dropped")
    }
}

impl<P: BufferPool> Drop for Group<P> {
    fn drop(&mut self) {
        // The share goes before the driver is told, which looks for groups without.
        drop(self.shared.take());
        if self.id.is_ok() {
            self.driver_id.group_dropped();
        }
    }
}

impl<P: BufferPool> fmt::Debug for Group<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("provided", &self.provided())
            .field("bytes", &self.bytes)
            .field("refused", &self.refused())
            .finish_non_exhaustive()
    }
}
