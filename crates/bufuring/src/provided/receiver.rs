//! What arrives at one stream; see [`Receiver`].

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use bufcore::author::catch_user_panic;
use bufcore::{AcquireError, Buf, BufferPool, Lease};
use bufkit::sync::{Mutex, lock};
use io_uring::{cqueue, opcode, types};

use super::buffer_loans::BufferLoans;
use super::group::Group;
use crate::driver_id::DriverId;
use crate::in_flight::Pending;
use crate::{Completion, Descriptor, Driver, Operation};

/// After so many buffers in one go the kernel waits for the stream to be ready again. Linux 6.18
/// then misses the end of a local stream that came before the last bytes were read. Another request
/// finds it.
const LONG_BURST: u32 = 32;

/// Receives the bytes of a stream in buffers that the kernel picks from a [`Group`].
///
/// One request serves until the stream ends (multishot), if the kernel supports it.
///
/// [`next`](Self::next) waits for bytes of this stream only. A program that serves many at once
/// polls each of them with [`poll_next`](Self::poll_next), in a future.
///
/// Dropping it cancels the request at the driver's next submission. The stream is open until then.
///
/// ```
/// use std::io::Write;
/// use std::os::unix::net::UnixStream;
///
/// use bufcore::HeapPool;
/// use bufuring::{Descriptor, Driver};
///
/// let driver = Driver::builder().build();
/// let mut group = driver.group(HeapPool::new(), 4, 4096);
/// let (mut near, far) = UnixStream::pair()?;
/// let mut receiver = driver.receive(&Descriptor::new(far), &group);
/// near.write_all(b"hello")?;
/// let bytes = receiver.next(&driver, &mut group).expect("the stream is open")?;
/// assert_eq!(&bytes[..], b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Receiver<L: Lease> {
    stream: Arc<Stream<L>>,
    /// Whether each buffer needs a request of its own.
    is_single: bool,
    /// That request.
    reading: Option<Operation<L>>,
}

/// What a driver and a receiver share.
struct Stream<L: Lease> {
    group: Arc<BufferLoans<L>>,
    file: Descriptor,
    driver_id: DriverId,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The slots of what has arrived.
    arrived: VecDeque<u16>,
    error: Option<io::Error>,
    /// Whether a request is in flight.
    is_armed: bool,
    /// The driver's number of the last one, if there was one.
    key: u64,
    /// How many buffers in a row the kernel has filled while it had more bytes.
    burst: u32,
    /// Whether the request in flight may miss the end of the stream, and is to be cancelled.
    has_stalled: bool,
    has_ended: bool,
    /// Whether the kernel has answered as an old one does, which knows no such request.
    is_unknown: bool,
    is_dropped: bool,
    /// Whom to tell of the next completion.
    waker: Option<Waker>,
}

/// The bytes of a stream, an error, or its end.
type Received<L> = Option<io::Result<Buf<L>>>;

/// What a receiver finds.
enum Found<L: Lease> {
    Ready(Received<L>),
    /// Nothing yet; a request is in flight.
    Armed,
    /// Nothing, and no request: other receivers of the group have the whole budget.
    Starved,
    /// No request of this kind can be made.
    Unknown,
}

impl Driver {
    /// Receives from a stream, into buffers of `group`.
    ///
    /// # Panics
    ///
    /// Panics if `group` belongs to another driver.
    ///
    /// [`Group`] has an example.
    #[must_use]
    pub fn receive<P: BufferPool>(&self, stream: &Descriptor, group: &Group<P>) -> Receiver<P::Lease> {
        assert!(group.is_of(self.driver_id()), "the group is another driver's");
        let stream = Stream {
            group: Arc::clone(group.shared()),
            file: stream.clone(),
            driver_id: self.driver_id().clone(),
            state: Mutex::default(),
        };
        Receiver { stream: Arc::new(stream), is_single: group.id().is_none(), reading: None }
    }
}

impl<L: Lease> Receiver<L> {
    /// Waits for bytes of the stream, and returns a buffer with them; `None` at its end.
    ///
    /// Cost: no system call while bytes are available. Each returned buffer is replaced by one of
    /// the pool's.
    ///
    /// # Errors
    ///
    /// - An [`AcquireError`] as source: the kernel has no buffer, and the pool has none. This also
    ///   happens if other receivers of the group use the whole budget: take their bytes first.
    /// - Otherwise the error of the stream, or of the wait.
    ///
    /// # Panics
    ///
    /// Panics if driver or group are not those that the receiver was made with. A panic of the pool
    /// propagates to the caller.
    pub fn next<P: BufferPool<Lease = L>>(
        &mut self,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Option<io::Result<Buf<L>>> {
        loop {
            match self.find(&mut Context::from_waker(Waker::noop()), driver, group) {
                Found::Ready(received) => return received,
                Found::Starved => {
                    let used = AcquireError::Exhausted { requested: group.bytes(), available: 0 };
                    return Some(Err(used.into()));
                }
                Found::Armed | Found::Unknown => {
                    if let Err(error) = driver.wait_any() {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// Returns a buffer with bytes of the stream, if some have arrived; `None` at its end.
    ///
    /// Otherwise the task of `context` is woken when more arrive, while the driver is waited on
    /// ([`Driver::block_on`]). Only the task of the last call is woken. In
    /// [`Mode::Blocking`](crate::Mode) it blocks until bytes arrive, as every read does there.
    ///
    /// If other receivers of the group use the whole budget, the task is woken when their bytes
    /// were taken. The program must therefore poll those receivers, or drop them.
    ///
    /// Cost: as [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// The pool's [`AcquireError`] if the kernel has no buffer, or the error of the stream. The
    /// task is then not woken: poll again when buffers were released.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// ```
    /// use core::future::poll_fn;
    /// use core::task::Poll;
    /// use std::io::Write;
    /// use std::os::unix::net::UnixStream;
    ///
    /// use bufcore::HeapPool;
    /// use bufuring::{Descriptor, Driver};
    ///
    /// let driver = Driver::builder().build();
    /// let mut group = driver.group(HeapPool::new(), 4, 512);
    /// let ((_idle, first), (mut client, second)) = (UnixStream::pair()?, UnixStream::pair()?);
    /// let mut receivers = [first, second].map(|one| driver.receive(&Descriptor::new(one), &group));
    /// client.write_all(b"hello")?;
    /// # if matches!(driver.mode(), bufuring::Mode::Blocking { .. }) {
    /// #     return Ok(()); // each read would block
    /// # }
    ///
    /// // Whichever stream has something.
    /// let bytes = driver.block_on(poll_fn(|context| {
    ///     for receiver in &mut receivers {
    ///         if let Poll::Ready(found) = receiver.poll_next(context, &driver, &mut group) {
    ///             return Poll::Ready(found);
    ///         }
    ///     }
    ///     Poll::Pending
    /// }));
    /// assert_eq!(&bytes.expect("no stream has ended")?[..], b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_next<P: BufferPool<Lease = L>>(
        &mut self,
        context: &mut Context<'_>,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Poll<Option<io::Result<Buf<L>>>> {
        loop {
            match self.find(context, driver, group) {
                Found::Ready(received) => return Poll::Ready(received),
                // The budget allows another buffer by now.
                Found::Starved if !group.shared().will_wake(context.waker()) => {}
                _ => return Poll::Pending,
            }
        }
    }

    /// Finds what has arrived. If nothing has, the task of `context` is woken by the next
    /// completion, unless the receiver is starved.
    fn find<P: BufferPool<Lease = L>>(
        &mut self,
        context: &mut Context<'_>,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Found<L> {
        let stream = &self.stream;
        assert!(stream.driver_id.is(driver.driver_id()), "the receiver is another driver's");
        assert!(Arc::ptr_eq(&stream.group, group.shared()), "the receiver is another group's");
        while !self.is_single {
            match stream.find(driver, group) {
                Found::Unknown => self.is_single = true,
                Found::Armed if !stream.will_wake(context.waker()) => {}
                found => return found,
            }
        }
        let mut read = match self.reading.take().map(Ok).or_else(|| stream.read_one(driver, group)) {
            Some(Ok(read)) => read,
            Some(Err(error)) => return Found::Ready(Some(Err(error))),
            None => return Found::Ready(None),
        };
        match Pin::new(&mut read).poll(context) {
            Poll::Ready(done) => Found::Ready(stream.read(done)),
            Poll::Pending => {
                self.reading = Some(read);
                Found::Armed
            }
        }
    }

    /// Returns the number of buffers that arrived and were not yet returned.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.stream.state).arrived.len()
    }
}

impl<L: Lease> Stream<L> {
    /// Finds what has arrived. If nothing has, a request is in flight, and the kernel has as many
    /// buffers as the budget and the pool allow.
    fn find<P: BufferPool<Lease = L>>(self: &Arc<Self>, driver: &Driver, group: &mut Group<P>) -> Found<L> {
        let mut state = lock(&self.state);
        if let Some(buf) = self.group.take(&mut state.arrived) {
            drop(state);
            self.group.wake_starved();
            return Found::Ready(Some(Ok(buf)));
        }
        let is_armed = state.is_armed;
        match state.error.take() {
            Some(error) => return Found::Ready(Some(Err(error))),
            None if is_armed => {}
            None if state.has_ended => return Found::Ready(None),
            None if state.is_unknown => return Found::Unknown,
            None => {}
        }
        drop(state);
        let refilled = group.refill(driver);
        if is_armed {
            // Without another buffer it still waits for those that the kernel has.
            return Found::Armed;
        }
        if group.provided() == 0 {
            return match refilled {
                Ok(()) => Found::Starved,
                Err(error) => Found::Ready(Some(Err(error.into()))),
            };
        }
        match self.arm(driver, group.id().unwrap_or_default()) {
            Ok(()) => Found::Armed,
            Err(error) => Found::Ready(Some(Err(error))),
        }
    }

    /// Has the next completion wake `waker`. `false` if there may be something already.
    fn will_wake(&self, waker: &Waker) -> bool {
        // Users' code, with no lock held: the clone, and the drop of the old one.
        let mut waker = Some(waker.clone());
        let mut state = lock(&self.state);
        let will_wake = state.is_armed && state.arrived.is_empty() && state.error.is_none();
        if will_wake {
            mem::swap(&mut state.waker, &mut waker);
        }
        drop(state);
        will_wake
    }

    /// Asks the kernel for all that arrives.
    fn arm(self: &Arc<Self>, driver: &Driver, group: u16) -> io::Result<()> {
        let mut ring = driver.ring_with_room()?;
        let fd = types::Fd(self.file.as_fd().as_raw_fd());
        let entry = opcode::RecvMulti::new(fd, group).build();
        lock(&self.state).is_armed = true;
        // SAFETY:
        // - memory: the entry names none. The kernel writes to buffers of the group only, of which
        //   this has a share.
        // - file: this has a share of it.
        let pushed = unsafe { ring.push(entry, Arc::<Self>::clone(self)) };
        let mut state = lock(&self.state);
        match pushed {
            Ok(key) => state.key = key,
            Err(_) => state.is_armed = false,
        }
        pushed.map(drop)
    }

    /// Starts to read into one buffer of the pool's; `None` at the stream's end.
    fn read_one<P: BufferPool<Lease = L>>(
        &self,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Option<io::Result<Operation<L>>> {
        if lock(&self.state).has_ended {
            return None;
        }
        let buf = group.acquire().map_err(io::Error::from);
        Some(buf.map(|buf| driver.read(&self.file, buf, group.bytes())))
    }

    /// Takes the result of such a read.
    fn read(&self, done: Completion<L>) -> Received<L> {
        match done.result {
            Ok(0) => {
                lock(&self.state).has_ended = true;
                None
            }
            Ok(_) => Some(Ok(done.buf)),
            Err(error) => Some(Err(error)),
        }
    }
}

impl<L: Lease> Pending for Stream<L> {
    fn complete(&self, result: i32, flags: u32) {
        let number = cqueue::buffer_select(flags);
        let mut state = lock(&self.state);
        state.is_armed = cqueue::more(flags);
        let burst = mem::take(&mut state.burst);
        if state.is_armed && cqueue::sock_nonempty(flags) {
            state.burst = burst.saturating_add(1);
        }
        let has_stalled = state.is_armed && state.burst == 0 && burst >= LONG_BURST;
        state.has_stalled = has_stalled;
        let key = state.key;
        let mut wanted = None;
        match usize::try_from(result) {
            Ok(0) => state.has_ended = true,
            Ok(count) => wanted = Some(count).filter(|_| !state.is_dropped),
            Err(_) => match result.wrapping_neg() {
                // Buffers were missing, or nobody wants the bytes any more.
                libc::ENOBUFS | libc::ECANCELED => {}
                libc::EINVAL if state.arrived.is_empty() => state.is_unknown = true,
                error => state.error = Some(io::Error::from_raw_os_error(error)),
            },
        }
        // Bytes without a buffer do not come.
        let unwanted = match (number, wanted) {
            (Some(number), Some(count)) => {
                self.group.arrive(number, count, &mut state.arrived);
                None
            }
            (Some(number), None) => self.group.take_back(number),
            (None, _) => None,
        };
        let waker = state.waker.take();
        drop(state);
        if has_stalled {
            self.driver_id.operation_dropped(key);
        }
        if unwanted.is_some() {
            self.group.wake_starved();
        }
        // Users' code, with no lock held: the waker, and the drop of a buffer that nobody wants.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_unwanted(&self) -> bool {
        let state = lock(&self.state);
        state.is_dropped || state.has_stalled
    }
}

impl<L: Lease> Drop for Receiver<L> {
    fn drop(&mut self) {
        let stream = &self.stream;
        let mut state = lock(&stream.state);
        state.is_dropped = true;
        let mut arrived = mem::take(&mut state.arrived);
        let waker = state.waker.take();
        let in_flight = state.is_armed.then_some(state.key);
        drop(state);
        // Users' code, with no lock held: the drop of buffers, and that of the waker. A panic of
        // one buffer is neither for the others nor for this caller.
        while let Some(buf) = stream.group.take(&mut arrived) {
            catch_user_panic(move || drop(buf));
        }
        stream.group.wake_starved();
        if let Some(key) = in_flight {
            stream.driver_id.operation_dropped(key);
        }
        drop(waker);
    }
}

impl<L: Lease> fmt::Debug for Receiver<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
