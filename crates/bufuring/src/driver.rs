//! The driver: starts operations, and waits for their completions; see [`Driver`].

use core::cell::{RefCell, RefMut};
use core::fmt;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bufcore::{Buf, Lease};
use io_uring::{opcode, squeue, types};

use crate::driver_id::DriverId;
use crate::in_flight::Pending;
use crate::operation::{Kind, OperationCell};
use crate::ring::Ring;
use crate::sleeper::Sleeper;
use crate::{Completion, Descriptor, Mode, Operation};

/// The offset of files and sockets that have a position of their own, or none.
const AT_POSITION: u64 = u64::MAX;
/// The largest offset that is passed on. The kernel refuses it, as all from 2^63 on.
const LAST_OFFSET: u64 = AT_POSITION - 1;
/// The most bytes that the kernel transfers at once, a page less than 2 GiB.
pub(crate) const MOST_BYTES: usize = 0x7fff_f000;

/// Starts reads and writes, and waits for them: one `io_uring`, or blocking calls if there is none.
///
/// Operations are submitted in batches: at the next wait, or by [`submit`](Self::submit).
///
/// Dropping it cancels the operations in flight and waits for them, at most ten seconds. Buffers
/// that the kernel still uses after that are leaked. The operations return their partial results.
///
/// Threads: one at a time (`Send`, not `Sync`).
///
/// Between `fork` and `exec` a child process must not use or drop a driver.
///
/// Memory for its table of operations comes from the global allocator, as that of a `Vec` does.
///
/// ```
/// use std::fs::File;
///
/// use bufcore::{MapOptions, NoFallback};
/// use bufuring::{Arena, Descriptor, Driver};
///
/// let arena = Arena::mapped(256 << 10, MapOptions::new())?;
/// let mut pool = bufslot::Builder::new().build_in(arena.part(128 << 10, 64)?, NoFallback)?;
/// let driver = Driver::new(&arena);
///
/// // Eight reads in flight.
/// let file = Descriptor::new(File::open("Cargo.toml")?);
/// let mut reads = Vec::new();
/// for at in 0..8 {
///     reads.push(driver.read_at(&file, pool.acquire(64)?, 64, at * 64));
/// }
/// let mut text = Vec::new();
/// for mut read in reads {
///     text.extend_from_slice(&driver.wait(&mut read)?.into_result()?);
/// }
/// assert_eq!(text[..], std::fs::read("Cargo.toml")?[..8 * 64]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driver {
    /// `None` where each operation is a blocking call. It is borrowed for no longer than one step,
    /// and never while users' code runs.
    ring: RefCell<Option<Box<Ring>>>,
    driver_id: DriverId,
    mode: Mode,
}

impl Driver {
    pub(crate) fn over(ring: Option<Box<Ring>>, mode: Mode) -> Self {
        let driver_id = ring.as_ref().map_or_else(DriverId::new, |ring| ring.driver_id().clone());
        Self { ring: RefCell::new(ring), driver_id, mode }
    }

    /// Returns how the driver reaches the kernel, and the refusal of the system, if any.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the number of operations that the kernel has not completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.ring().map_or(0, |ring| ring.in_flight())
    }

    /// Returns whether the next `len` bytes that a read appends to `buf` are in registered memory.
    ///
    /// ```
    /// use bufcore::{HeapPool, MapOptions};
    /// use bufuring::{Arena, Driver, Mode};
    ///
    /// let arena = Arena::mapped(64 << 10, MapOptions::new())?;
    /// let mut ring = bufring::Builder::new().build_in(arena.part(32 << 10, 64)?)?;
    /// let driver = Driver::new(&arena);
    /// let is_registered = driver.mode() == Mode::Registered;
    /// assert_eq!(driver.is_fixed(&ring.acquire(4096)?, 4096), is_registered);
    /// assert!(!driver.is_fixed(&HeapPool::new().acquire(4096)?, 4096)); // a plain read will do
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_fixed<L: Lease>(&self, buf: &Buf<L>, len: usize) -> bool {
        let start = buf.as_slice().as_ptr().wrapping_add(buf.len());
        let len = len.min(buf.spare_capacity());
        self.ring().is_some_and(|ring| ring.registered(start, len).is_some())
    }

    /// Starts a read of at most `len` bytes at `offset` of a file, which are appended to `buf`.
    ///
    /// The kernel may read fewer bytes, for example at the end of the file, and never more than
    /// `buf` has room for. For files opened with `O_DIRECT` the start of the memory, `len` and
    /// `offset` must be multiples of 512 or 4096. An `offset` from 2^63 on is an error (`EINVAL`).
    ///
    /// Cost: an allocation of about a hundred bytes for the operation. If all entries are used, a
    /// system call. In [`Mode::Blocking`], the read.
    ///
    /// # Panics
    ///
    /// Never. All errors are in the operation's result.
    pub fn read_at<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, len: usize, offset: u64) -> Operation<L> {
        self.start(Kind::Read, file, buf, len, offset.min(LAST_OFFSET))
    }

    /// Starts a read of at most `len` bytes from a socket, a pipe, or at a file's own position.
    ///
    /// Otherwise as [`read_at`](Self::read_at). Two reads of one socket may complete in any order.
    pub fn read<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, len: usize) -> Operation<L> {
        self.start(Kind::Read, file, buf, len, AT_POSITION)
    }

    /// Starts a write of the filled bytes of `buf` at `offset` of a file.
    ///
    /// The kernel may write fewer bytes; the result has their number.
    ///
    /// Cost and panics: as [`read_at`](Self::read_at).
    pub fn write_at<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, offset: u64) -> Operation<L> {
        let len = buf.len();
        self.start(Kind::Write, file, buf, len, offset.min(LAST_OFFSET))
    }

    /// Starts a write of the filled bytes of `buf` to a socket, a pipe, or at a file's own
    /// position.
    ///
    /// Otherwise as [`write_at`](Self::write_at).
    pub fn write<L: Lease>(&self, file: &Descriptor, buf: Buf<L>) -> Operation<L> {
        let len = buf.len();
        self.start(Kind::Write, file, buf, len, AT_POSITION)
    }

    /// Waits until the kernel has completed `operation`, and returns its result and buffer.
    ///
    /// Other operations that complete in the meantime keep their results.
    ///
    /// # Errors
    ///
    /// The kernel's error of the wait. The operation is still in flight, and can be waited for
    /// again. The error of the operation itself is in [`Completion::result`].
    ///
    /// # Panics
    ///
    /// Panics if another driver started the operation and has not completed it. Panics if the
    /// operation has already returned its result.
    pub fn wait<L: Lease>(&self, operation: &mut Operation<L>) -> io::Result<Completion<L>> {
        loop {
            if let Some(done) = operation.take() {
                return Ok(done);
            }
            assert!(operation.is_of(&self.driver_id), "the operation is another driver's");
            assert!(self.has(operation.key()), "the result was taken already");
            self.wait_any()?;
        }
    }

    /// Submits all started operations to the kernel, without waiting.
    ///
    /// Cost: a system call, if operations were started.
    ///
    /// # Errors
    ///
    /// The kernel's error. All operations remain in flight.
    pub fn submit(&self) -> io::Result<()> {
        self.tidy();
        let Some(mut ring) = self.ring() else { return Ok(()) };
        if ring.has_news() { ring.enter(0) } else { Ok(()) }
    }

    /// Processes the available completions, without waiting, and returns their number.
    ///
    /// Tasks that await operations are woken. Buffers of operations whose handle was dropped return
    /// to their pools.
    ///
    /// # Panics
    ///
    /// A panic of a waker, or of a buffer's drop, propagates to the caller. All other state remains
    /// consistent.
    pub fn reap(&self) -> usize {
        self.tidy();
        let most = self.ring().map_or(0, |ring| ring.completions());
        let mut count = 0;
        // A peer that sends without end does not keep the caller here.
        for _ in 0..most {
            let Some((pending, result, flags)) = self.ring().and_then(|mut ring| ring.next_completion())
            else {
                break;
            };
            pending.complete(result, flags);
            count += 1;
        }
        if count > 0 {
            // The last operation of a group that was dropped may be among them.
            self.tidy();
        }
        count
    }

    /// Submits the started operations, waits until at least one is completed, and returns the
    /// number of completions. It is 0 if none is in flight.
    ///
    /// # Errors
    ///
    /// The kernel's error of the wait. All operations remain in flight.
    pub fn wait_any(&self) -> io::Result<usize> {
        loop {
            let count = self.reap();
            let Some(mut ring) = self.ring() else { return Ok(count) };
            let is_over = count > 0 || ring.in_flight() == 0;
            if !is_over || ring.has_news() {
                ring.enter(usize::from(!is_over))?;
            }
            if is_over {
                return Ok(count);
            }
        }
    }

    /// Runs `future` to completion on this thread, and waits for operations whenever it is pending.
    ///
    /// A wake from another thread ends the wait as well. Such a wake costs a system call if this
    /// thread sleeps, and a lock otherwise.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses the wait. A panic of the future propagates to the caller.
    ///
    /// ```
    /// let driver = bufuring::Driver::builder().build();
    /// assert_eq!(driver.block_on(async { 1 + 1 }), 2);
    /// ```
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let sleeper = Arc::new(Sleeper::new(self.ring().map(|ring| ring.wake_fd().clone())));
        let waker = Waker::from(Arc::clone(&sleeper));
        loop {
            sleeper.begin();
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            if let Err(error) = self.wait_or_woken(&sleeper) {
                panic!("io_uring cannot be waited for: {error}");
            }
        }
    }

    /// Submits what was started, and waits until an operation is completed or the future of
    /// `sleeper` was woken. It may return for no reason.
    fn wait_or_woken(&self, sleeper: &Sleeper) -> io::Result<()> {
        let is_over = self.reap() > 0;
        if let Some(mut ring) = self.ring() {
            let in_flight = ring.in_flight() > 0;
            let waits = in_flight && !is_over && ring.poll_wake_fd()? && sleeper.may_wait();
            if waits || ring.has_news() {
                ring.enter(usize::from(waits))?;
            }
            if in_flight {
                return Ok(());
            }
        }
        if !is_over {
            sleeper.park();
        }
        Ok(())
    }

    /// Returns the ring, if there is one.
    pub(crate) fn ring(&self) -> Option<RefMut<'_, Ring>> {
        RefMut::filter_map(self.ring.borrow_mut(), Option::as_deref_mut).ok()
    }

    pub(crate) fn driver_id(&self) -> &DriverId {
        &self.driver_id
    }

    /// Whether `key` is the number of an operation in flight.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.ring().is_some_and(|ring| ring.has(key))
    }

    /// Sees to dropped handles.
    fn tidy(&self) {
        let closed = self.ring().map(|mut ring| ring.tidy());
        // Users' code: the buffers of groups.
        drop(closed);
    }

    /// A ring with room for an entry.
    pub(crate) fn ring_with_room(&self) -> io::Result<RefMut<'_, Ring>> {
        loop {
            let mut ring = self.ring().ok_or(io::ErrorKind::Unsupported)?;
            if ring.make_room()? {
                return Ok(ring);
            }
            drop(ring);
            self.reap();
        }
    }

    fn start<L: Lease>(
        &self,
        kind: Kind,
        file: &Descriptor,
        mut buf: Buf<L>,
        len: usize,
        offset: u64,
    ) -> Operation<L> {
        let driver_id = self.driver_id.clone();
        if self.ring().is_none() {
            return Operation::completed(file.clone(), call(kind, file, buf, len, offset), driver_id);
        }
        let range = match kind {
            Kind::Read => {
                let spare = buf.spare_mut();
                (spare.as_mut_ptr(), len.min(spare.len()).min(MOST_BYTES))
            }
            Kind::Write => (buf.as_slice().as_ptr().cast_mut(), len.min(buf.len()).min(MOST_BYTES)),
        };
        let cell = Arc::new(OperationCell::new(kind, range.1, file.clone(), buf));
        let pushed = self.ring_with_room().and_then(|mut ring| {
            let entry = entry(kind, file, range, offset, ring.registered(range.0, range.1));
            // SAFETY:
            // - memory: the range is a part of `buf`'s memory, which is valid until the lease is
            //   dropped, and exclusive (`Lease`, rule 1). The cell has the buffer, and gives it to
            //   nobody before its completion (U1). To read its filled part, the kernel needs no
            //   more.
            // - file: the cell has a share of it.
            unsafe { ring.push(entry, Arc::<OperationCell<L>>::clone(&cell)) }
        });
        let key = pushed.unwrap_or_else(|error| {
            cell.complete(-error.raw_os_error().unwrap_or(libc::EIO), 0);
            u64::MAX
        });
        Operation::new(cell, key, driver_id)
    }
}

/// The kernel's entry of an operation on the bytes `range`, a start and a length.
fn entry(
    kind: Kind,
    file: &Descriptor,
    range: (*mut u8, usize),
    offset: u64,
    registered: Option<u16>,
) -> squeue::Entry {
    let fd = types::Fd(file.as_fd().as_raw_fd());
    // At most `MOST_BYTES`.
    let (start, len) = (range.0, range.1 as u32);
    match (kind, registered) {
        (Kind::Read, Some(at)) => opcode::ReadFixed::new(fd, start, len, at).offset(offset).build(),
        (Kind::Read, None) => opcode::Read::new(fd, start, len).offset(offset).build(),
        (Kind::Write, Some(at)) => opcode::WriteFixed::new(fd, start, len, at).offset(offset).build(),
        (Kind::Write, None) => opcode::Write::new(fd, start, len).offset(offset).build(),
    }
}

/// Performs an operation by a blocking call.
fn call<L: Lease>(kind: Kind, file: &Descriptor, mut buf: Buf<L>, len: usize, offset: u64) -> Completion<L> {
    let mut file = file.file();
    let result = loop {
        let result = match kind {
            Kind::Read => {
                let spare = buf.spare_mut();
                let len = len.min(spare.len());
                match offset {
                    AT_POSITION => file.read(&mut spare[..len]),
                    _ => file.read_at(&mut spare[..len], offset),
                }
            }
            Kind::Write if offset == AT_POSITION => file.write(&buf[..len.min(buf.len())]),
            Kind::Write => file.write_at(&buf[..len.min(buf.len())], offset),
        };
        if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
            break result;
        }
    };
    if let (Kind::Read, &Ok(count)) = (kind, &result) {
        buf.commit(count);
    }
    Completion { result, buf, kind }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("mode", &format_args!("{}", self.mode))
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
