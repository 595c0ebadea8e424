//! The `io_uring`, and what it may still write: the only place that tells the kernel of memory.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bufcore::author::catch_user_panic;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::driver_id::DriverId;
use crate::in_flight::{InFlight, Pending};
use crate::provided::{BufRing, BufRingOwner};
use crate::sleeper::WakeFd;
use crate::{Arena, Refused};

/// The number of completions that nobody waits for: those of cancellations.
const NO_OWNER: u64 = u64::MAX;
/// The number of the operation that is completed when the descriptor is signalled. The table has
/// no place for it, nor for `NO_OWNER`.
const WAKE_KEY: u64 = u64::MAX - 1;
/// The kernel takes at most so many bytes as one registered buffer.
pub(crate) const MOST_REGISTERED_BYTES: usize = 1 << 30;
/// How long the end of a ring waits for what is in flight.
const PATIENCE: Duration = Duration::from_secs(10);

/// An `io_uring` with the owners of the memory that it may write.
///
/// - G1: what the kernel may access of our memory belongs to an entry of `in_flight`, or of
///   `groups`, or to `registered`.
/// - G2: entries of `in_flight` leave after their last completion, those of `groups` once no
///   operation refers to them and the kernel has forgotten them. Whatever is left at the end is
///   leaked.
pub(crate) struct Ring {
    uring: ManuallyDrop<IoUring>,
    in_flight: ManuallyDrop<InFlight>,
    groups: ManuallyDrop<Vec<Option<BufRing>>>,
    registered: Option<Arena>,
    /// Ends a wait for completions.
    wake_fd: WakeFd,
    /// Whether the kernel polls the descriptor.
    is_armed: bool,
    /// How many groups were dropped that are in `groups` yet.
    closing: usize,
    driver_id: DriverId,
}

impl Ring {
    /// Makes a ring that knows the memory of `registered`, if that was registered with it.
    pub(crate) fn new(uring: IoUring, wake_fd: WakeFd, registered: Option<Arena>) -> Self {
        Self {
            uring: ManuallyDrop::new(uring),
            in_flight: ManuallyDrop::default(),
            groups: ManuallyDrop::default(),
            registered,
            wake_fd,
            is_armed: false,
            closing: 0,
            driver_id: DriverId::new(),
        }
    }

    /// What tells this driver from others.
    pub(crate) fn driver_id(&self) -> &DriverId {
        &self.driver_id
    }

    /// What ends a wait for completions, once it is armed.
    pub(crate) fn wake_fd(&self) -> &WakeFd {
        &self.wake_fd
    }

    /// Has the descriptor end the next wait for completions. `false` if completions have to be
    /// taken first.
    pub(crate) fn poll_wake_fd(&mut self) -> io::Result<bool> {
        if !self.is_armed && self.make_room()? {
            let file = types::Fd(self.wake_fd.descriptor());
            let entry = opcode::PollAdd::new(file, libc::POLLIN as u32).build().user_data(WAKE_KEY);
            // SAFETY: it names no memory. The ring has the file until it is dropped, and the kernel
            // for longer, if it learns of the entry.
            self.is_armed = unsafe { self.uring.submission().push(&entry) }.is_ok();
        }
        Ok(self.is_armed)
    }

    /// The number of operations in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The most completions that the ring holds.
    pub(crate) fn completions(&self) -> u32 {
        self.uring.params().cq_entries()
    }

    /// The number of the registered buffer that has all of these bytes.
    pub(crate) fn registered(&self, start: *const u8, len: usize) -> Option<u16> {
        let arena = self.registered.as_ref().filter(|arena| len > 0 && arena.contains(start, len))?;
        let offset = start.addr() - arena.as_ptr().addr().get();
        let (first, last) = (offset / MOST_REGISTERED_BYTES, (offset + len - 1) / MOST_REGISTERED_BYTES);
        u16::try_from(first).ok().filter(|_| first == last)
    }

    /// Sees to it that one more entry can be pushed; `false` if completions have to be taken first.
    pub(crate) fn make_room(&mut self) -> io::Result<bool> {
        if self.uring.submission().is_full() {
            self.enter(0)?;
        }
        Ok(!self.uring.submission().is_full())
    }

    /// Starts an operation: the kernel learns of it at the next [`enter`](Self::enter). Returns its
    /// number.
    ///
    /// # Safety
    ///
    /// 1. All memory that `entry` names belongs to `pending`, which keeps it valid until its last
    ///    completion, or for ever. If the kernel writes it, nobody else uses it meanwhile.
    /// 2. `pending` has the file that `entry` names for as long.
    pub(crate) unsafe fn push(
        &mut self,
        entry: squeue::Entry,
        pending: Arc<dyn Pending>,
    ) -> Result<u64, io::Error> {
        // It has an owner in the table before the kernel learns of it (F1).
        let key = self.in_flight.insert(pending);
        let entry = entry.user_data(key);
        // SAFETY: the caller's promise; `pending` stays in the table until its last completion
        // (G2).
        match unsafe { self.uring.submission().push(&entry) } {
            Ok(()) => Ok(key),
            Err(_) => {
                self.in_flight.remove(key);
                Err(io::Error::from_raw_os_error(libc::EBUSY))
            }
        }
    }

    /// Whether `key` is the number of an operation in flight.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.in_flight.get(key).is_some()
    }

    /// Asks the kernel to end an operation soon. It is completed in any case.
    pub(crate) fn cancel(&mut self, key: u64) {
        let entry = opcode::AsyncCancel::new(key).build().user_data(NO_OWNER);
        // SAFETY: it names no memory and no file.
        if unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.driver_id.operation_dropped(key);
        }
    }

    /// Cancels operations whose handles were dropped, and returns the groups that nobody uses any
    /// more, for the caller to drop.
    pub(crate) fn tidy(&mut self) -> Vec<BufRing> {
        if let Some(dropped) = self.driver_id.news() {
            self.closing += dropped.groups;
            match dropped.operations() {
                Some(keys) => self.cancel_all(keys),
                None => self.cancel_all(&self.in_flight.keys(|pending| pending.is_unwanted())),
            }
        }
        let mut closed = Vec::new();
        if self.closing == 0 {
            return closed;
        }
        for (at, place) in self.groups.iter_mut().enumerate() {
            // Each operation of the group shares it, so none is in flight (G2).
            if place.as_ref().is_some_and(BufRing::is_unused)
                && self.uring.submitter().unregister_buf_ring(at as u16).is_ok()
            {
                closed.extend(place.take());
                self.closing = self.closing.saturating_sub(1);
            }
        }
        closed
    }

    /// Cancels those of these operations that are in flight.
    fn cancel_all(&mut self, keys: &[u64]) {
        for &key in keys {
            if !self.has(key) {
                continue;
            }
            match self.make_room() {
                Ok(true) => self.cancel(key),
                // At the next call.
                _ => self.driver_id.operation_dropped(key),
            }
        }
    }

    /// Gives the kernel what was pushed, and waits until `want` completions are there.
    pub(crate) fn enter(&self, want: usize) -> io::Result<()> {
        loop {
            let Err(error) = self.uring.submit_and_wait(want) else { return Ok(()) };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // Completions have to be taken first, or the system is short of memory.
                Some(libc::EBUSY | libc::EAGAIN) => {
                    thread::yield_now();
                    return Ok(());
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether entries were pushed that the kernel does not know yet.
    pub(crate) fn has_news(&mut self) -> bool {
        !self.uring.submission().is_empty()
    }

    /// Takes the next completion of the queue. The kernel keeps what does not fit in there until it
    /// is entered.
    fn next_entry(&mut self) -> Option<cqueue::Entry> {
        let entry = self.uring.completion().next();
        if entry.is_some() || !self.uring.submission().cq_overflow() {
            return entry;
        }
        // Where the kernel refuses it, the caller's next wait says so.
        self.enter(0).ok()?;
        self.uring.completion().next()
    }

    /// Takes one completion: whom it is for, the result, and flags. The caller passes it on.
    pub(crate) fn next_completion(&mut self) -> Option<(Arc<dyn Pending>, i32, u32)> {
        loop {
            let entry = self.next_entry()?;
            let (key, flags) = (entry.user_data(), entry.flags());
            if key == WAKE_KEY {
                self.is_armed = false;
                self.wake_fd.clear();
            }
            let pending = match cqueue::more(flags) {
                true => self.in_flight.get(key).cloned(),
                false => self.in_flight.remove(key),
            };
            if let Some(pending) = pending {
                return Some((pending, entry.result(), flags));
            }
        }
    }

    /// Registers a ring of `buffers` places for provided buffers, which `owner` owns. Returns its
    /// number.
    pub(crate) fn lend(&mut self, buffers: u16, owner: Arc<dyn BufRingOwner>) -> Result<u16, Refused> {
        let none = || Refused { call: "io_uring_register", errno: libc::ENOSPC };
        let at = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
        let id = u16::try_from(at).map_err(|_| none())?;
        let lent = BufRing::new(buffers, owner)?;
        // SAFETY: the places stay until the ring was unregistered, or for ever (G2).
        unsafe { lent.register(&self.uring, id)? };
        if at == self.groups.len() {
            self.groups.push(None);
        }
        self.groups[at] = Some(lent);
        Ok(id)
    }

    /// Lends the kernel `len` bytes from `start` on, as buffer `buffer` of the group `id`.
    ///
    /// # Safety
    ///
    /// The memory belongs to the group's owner. It stays valid, and nobody else uses it, until a
    /// completion names the buffer, or the group's owner is dropped by [`tidy`](Self::tidy).
    pub(crate) unsafe fn provide(&mut self, id: u16, buffer: u16, start: *mut u8, len: u32) {
        if let Some(Some(lent)) = self.groups.get_mut(usize::from(id)) {
            // SAFETY: the caller's promise.
            unsafe { lent.provide(buffer, start, len) };
        }
    }

    /// Drops the buffers of groups that the kernel has forgotten.
    fn end_groups(&mut self) {
        for (at, place) in self.groups.iter_mut().enumerate() {
            let Some(lent) = place.take() else { continue };
            match self.uring.submitter().unregister_buf_ring(at as u16) {
                Ok(()) => {
                    catch_user_panic(move || drop(lent));
                }
                Err(_) => std::mem::forget(lent),
            }
        }
    }

    /// Cancels everything and waits for it. Whether nothing is in flight any more.
    fn settle(&mut self) -> bool {
        let started = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            // In each turn, as the kernel may have no room for some of these in the first.
            self.cancel_all(&self.in_flight.keys(|_| true));
            let entered = self.enter(0);
            while let Some((pending, result, flags)) = self.next_completion() {
                // It may run users' code: what is behind it has to be settled in any case.
                catch_user_panic(move || pending.complete(result, flags));
            }
            if self.in_flight.len() == 0 {
                return true;
            }
            if entered.is_err() || started.elapsed() > PATIENCE {
                return false;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.settle() {
            self.end_groups();
            // SAFETY: it is not used again. No operation is in it.
            unsafe { ManuallyDrop::drop(&mut self.in_flight) };
            // SAFETY: it is not used again. No group is in it.
            unsafe { ManuallyDrop::drop(&mut self.groups) };
        }
        // Else the kernel may still write: the owners of its memory are leaked.
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.uring) };
    }
}
