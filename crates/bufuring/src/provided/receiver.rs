//! What arrives at one stream; see [`Receiver`].

use core::fmt;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use bufcore::strategy::sync::{Mutex, lock};
use bufcore::{AcquireError, Buf, BufferPool, Lease};
use io_uring::{cqueue, opcode, types};

use super::group::{Group, Shared};
use crate::flights::Pending;
use crate::setup::Tag;
use crate::{Descriptor, Driver, ReceiveError};

/// Receives the bytes of a stream in buffers that the kernel picks from a [`Group`].
///
/// One request serves until the stream ends (multishot), where the kernel can.
///
/// Dropping it cancels the request when the driver next has something to do. The stream is open
/// until then.
pub struct Receiver<L: Lease> {
    /// `Some` until it is dropped.
    stream: Option<Arc<Stream<L>>>,
    tag: Tag,
    /// Whether each buffer needs a request of its own.
    is_single: bool,
}

/// What a driver and a receiver share.
struct Stream<L: Lease> {
    group: Arc<Shared<L>>,
    file: Descriptor,
    state: Mutex<State<L>>,
}

struct State<L: Lease> {
    /// What has arrived, with room for the group's budget.
    arrived: VecDeque<Buf<L>>,
    error: Option<io::Error>,
    /// Whether a request is in flight.
    is_armed: bool,
    has_ended: bool,
    /// Whether the kernel has answered as an old one does, which knows no such request.
    is_unknown: bool,
    is_dropped: bool,
}

/// What a receiver finds.
enum Found<L: Lease> {
    Bytes(Buf<L>),
    Error(io::Error),
    End,
    /// Nothing yet; a request is in flight.
    Armed,
    /// Nothing, and no request.
    Idle,
    /// No request of this kind can be made.
    Unknown,
}

impl<L: Lease> Receiver<L> {
    pub(crate) fn new<P: BufferPool<Lease = L>>(
        driver: &Driver,
        file: &Descriptor,
        group: &Group<P>,
    ) -> Self {
        let tag = driver.tag();
        assert!(group.is_of(&tag), "the group is another driver's");
        let shared = group.shared();
        let state = State {
            arrived: VecDeque::with_capacity(shared.budget()),
            error: None,
            is_armed: false,
            has_ended: false,
            is_unknown: false,
            is_dropped: false,
        };
        let group_share = Arc::clone(shared);
        let stream = Stream { group: group_share, file: file.clone(), state: Mutex::new(state) };
        Self { stream: Some(Arc::new(stream)), tag, is_single: group.id().is_none() }
    }

    /// Waits for bytes of the stream, and returns a buffer with them; `None` at its end.
    ///
    /// Cost: no call of the kernel while bytes have arrived. Each buffer that is returned is
    /// replaced by one of the pool's.
    ///
    /// # Errors
    ///
    /// - [`ReceiveError::Acquire`]: the kernel has no buffer, and the pool none to give. Also when
    ///   other receivers of the group have the whole budget: their bytes have to be taken first.
    /// - [`ReceiveError::Io`]: that of the stream, or of waiting.
    ///
    /// # Panics
    ///
    /// Panics when driver or group are not those that the receiver was made with. A panic of the
    /// pool goes to the caller.
    pub fn next<P: BufferPool<Lease = L>>(
        &mut self,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Option<Result<Buf<L>, ReceiveError>> {
        assert!(self.tag.is(&driver.tag()), "the receiver is another driver's");
        let stream = Arc::clone(self.stream.as_ref()?);
        assert!(Arc::ptr_eq(&stream.group, group.shared()), "the receiver is another group's");
        loop {
            if self.is_single {
                return stream.read_one(driver, group);
            }
            match stream.find() {
                Found::Bytes(buf) => return Some(Ok(buf)),
                Found::Error(error) => return Some(Err(error.into())),
                Found::End => return None,
                Found::Unknown => self.is_single = true,
                Found::Armed => {
                    // Without another buffer it still waits for those that the kernel has.
                    let _ = group.refill(driver);
                    if let Err(error) = driver.wait_any() {
                        return Some(Err(error.into()));
                    }
                }
                Found::Idle => {
                    let refilled = group.refill(driver);
                    if group.provided() == 0 {
                        let used = AcquireError::Exhausted { requested: group.bytes(), available: 0 };
                        return Some(Err(refilled.err().unwrap_or(used).into()));
                    }
                    if let Err(error) = stream.arm(driver, group.id().unwrap_or_default()) {
                        return Some(Err(error.into()));
                    }
                }
            }
        }
    }

    /// Returns the number of buffers that have arrived and were not taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| lock(&stream.state).arrived.len())
    }
}

impl<L: Lease> Stream<L> {
    fn find(&self) -> Found<L> {
        let mut state = lock(&self.state);
        if let Some(buf) = state.arrived.pop_front() {
            drop(state);
            self.group.passed_on(1);
            return Found::Bytes(buf);
        }
        match state.error.take() {
            Some(error) => Found::Error(error),
            None if state.is_armed => Found::Armed,
            None if state.has_ended => Found::End,
            None if state.is_unknown => Found::Unknown,
            None => Found::Idle,
        }
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
        if pushed.is_err() {
            lock(&self.state).is_armed = false;
        }
        pushed.map(drop)
    }

    /// Reads into one buffer of the pool's.
    fn read_one<P: BufferPool<Lease = L>>(
        &self,
        driver: &Driver,
        group: &mut Group<P>,
    ) -> Option<Result<Buf<L>, ReceiveError>> {
        if lock(&self.state).has_ended {
            return None;
        }
        let buf = match group.acquire() {
            Ok(buf) => buf,
            Err(error) => return Some(Err(error.into())),
        };
        let operation = driver.read(&self.file, buf, group.bytes());
        let done = match driver.wait(operation) {
            Ok(done) => done,
            Err(refused) => return Some(Err(refused.error.into())),
        };
        match done.result {
            Ok(0) => {
                lock(&self.state).has_ended = true;
                None
            }
            Ok(_) => Some(Ok(done.buf)),
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl<L: Lease> Pending for Stream<L> {
    fn complete(&self, result: i32, flags: u32) {
        let mut buf = cqueue::buffer_select(flags).and_then(|number| self.group.returned(number));
        let mut state = lock(&self.state);
        state.is_armed = cqueue::more(flags);
        match (usize::try_from(result), &mut buf) {
            (Ok(0), _) => state.has_ended = true,
            (Ok(count), Some(arrived)) => {
                arrived.commit(count.min(arrived.spare_capacity()));
                if !state.is_dropped {
                    // There is room: it is within the budget (L2).
                    state.arrived.extend(buf.take());
                }
            }
            // Bytes without a buffer do not come.
            (Ok(_), None) => {}
            (Err(_), _) => match result.wrapping_neg() {
                // Buffers were missing, or nobody wants the bytes any more.
                libc::ENOBUFS | libc::ECANCELED => {}
                libc::EINVAL if state.arrived.is_empty() => state.is_unknown = true,
                error => state.error = Some(io::Error::from_raw_os_error(error)),
            },
        }
        drop(state);
        if let Some(buf) = buf {
            self.group.passed_on(1);
            // Users' code, with no lock held.
            drop(buf);
        }
    }
}

impl<L: Lease> Drop for Receiver<L> {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        let mut state = lock(&stream.state);
        state.is_dropped = true;
        let arrived = mem::take(&mut state.arrived);
        drop(state);
        stream.group.passed_on(arrived.len());
        // The share goes before the driver is told, which looks for streams without.
        drop(stream);
        self.tag.ring();
        drop(arrived);
    }
}

impl<L: Lease> fmt::Debug for Receiver<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
