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

/// Starts reads and writes, and waits for them: one `io_uring`, or blocking calls where there is
/// none.
///
/// Operations start together: the kernel learns of them at the next wait, or at
/// [`submit`](Self::submit).
///
/// Dropping it cancels what is in flight and waits for it, ten seconds at most. Buffers that the
/// kernel has not let go of by then are leaked. The operations return what they have got.
///
/// Threads: one at a time (`Send`, not `Sync`).
///
/// Between fork and exec a child uses and drops no driver.
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

    /// Returns how the driver reaches the kernel, and what the system refused.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the number of operations that the kernel has not completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.ring().map_or(0, |ring| ring.in_flight())
    }

    /// Returns whether the next `len` bytes that a read puts into `buf` are registered memory.
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

    /// Starts a read of at most `len` bytes from `offset` of a file on, behind what `buf` has.
    ///
    /// Fewer are read at the end of the file, where `buf` has room for fewer, and sometimes
    /// otherwise. Files that are open with `O_DIRECT` want the start of the memory, `len` and
    /// `offset` to be multiples of 512 or 4096. An `offset` from 2^63 on is an error (`EINVAL`).
    ///
    /// Cost: an allocation of a hundred bytes for the operation. Where all entries are taken, a
    /// call of the kernel. In [`Mode::Blocking`], the read.
    ///
    /// # Panics
    ///
    /// Never. All errors are in the operation's result.
    pub fn read_at<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, len: usize, offset: u64) -> Operation<L> {
        self.start(Kind::Read, file, buf, len, offset.min(LAST_OFFSET))
    }

    /// Starts a read of at most `len` bytes from a socket, a pipe, or a file's own position on.
    ///
    /// Otherwise as [`read_at`](Self::read_at). Two reads of one socket may come back in any order.
    pub fn read<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, len: usize) -> Operation<L> {
        self.start(Kind::Read, file, buf, len, AT_POSITION)
    }

    /// Starts a write of what `buf` has, at `offset` of a file.
    ///
    /// Fewer bytes may be written than `buf` has; the result says how many.
    ///
    /// Cost and panics: as [`read_at`](Self::read_at).
    pub fn write_at<L: Lease>(&self, file: &Descriptor, buf: Buf<L>, offset: u64) -> Operation<L> {
        let len = buf.len();
        self.start(Kind::Write, file, buf, len, offset.min(LAST_OFFSET))
    }

    /// Starts a write of what `buf` has to a socket, a pipe, or at a file's own position.
    ///
    /// Otherwise as [`write_at`](Self::write_at).
    pub fn write<L: Lease>(&self, file: &Descriptor, buf: Buf<L>) -> Operation<L> {
        let len = buf.len();
        self.start(Kind::Write, file, buf, len, AT_POSITION)
    }

    /// Waits until the kernel is done with `operation`, and returns its result and buffer.
    ///
    /// Other operations that complete meanwhile keep their results.
    ///
    /// # Errors
    ///
    /// What the kernel refuses to wait with. The operation is still in flight, and can be waited
    /// for again. An error of the file is in [`Completion::result`].
    ///
    /// # Panics
    ///
    /// Panics when another driver started the operation, and that one is not done. Panics when the
    /// operation has returned its result already.
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

    /// Gives the kernel all that was started, without waiting.
    ///
    /// Cost: a call of the kernel, if something was started.
    ///
    /// # Errors
    ///
    /// What the kernel refuses it with. Everything remains in flight.
    pub fn submit(&self) -> io::Result<()> {
        self.tidy();
        let Some(mut ring) = self.ring() else { return Ok(()) };
        if ring.has_news() { ring.enter(0) } else { Ok(()) }
    }

    /// Takes the completions that there are, without waiting, and returns their number.
    ///
    /// Tasks that await operations are woken. Buffers of operations whose handle was dropped go
    /// back to their pools.
    ///
    /// # Panics
    ///
    /// A panic of a waker, or of a buffer's drop, goes to the caller. All else remains in order.
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

    /// Submits what was started, waits until one operation at least is completed, and returns how
    /// many were. It is 0 when none is in flight.
    ///
    /// # Errors
    ///
    /// What the kernel refuses to wait with. Everything remains in flight.
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

    /// Runs `future` to its end on this thread, and waits for operations meanwhile.
    ///
    /// A wake from another thread ends the wait as well. It costs a call of the kernel where this
    /// thread sleeps, and a lock otherwise.
    ///
    /// # Panics
    ///
    /// Panics when the kernel refuses to be waited for. A panic of the future goes to the caller.
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
