//! The recorder of the heap: what happens at a request and at a release.
//!
//! # Invariants
//!
//! - E1: a thread that is inside the recorder does not enter it again. A request of the recorder
//!   itself, or of a signal's handler that interrupts it, is not recorded.
//! - E2: `ERA` changes under the lock of the log only, with a new file. An entry of another era is
//!   of another file, and has no events in this one.
//! - E3: a lock of the table is never held while that of the log is taken, nor the other way round.
//! - E4: only the process that started a recording records. A child from `fork` or `vfork` compares
//!   the process number and neither writes shared state nor takes a lock.
//!
//! # Inside of an allocator
//!
//! The recorder allocates nothing: its memory is mapped once, and may be all zeros. It indexes by
//! `get`, so it does not panic. A lock that does not come free in time is given up, and the event
//! is lost. No lock of the dynamic linker is asked for under one of its own: a stack is taken
//! before. It reads no memory of the program. Cancellation is off inside, since system calls are
//! cancellation points and `malloc` is none. Another weaker order than that of `begin` and `start`
//! would record a request by the settings of an earlier recording; the settings themselves are
//! atomic.

use core::ffi::c_void;
use core::fmt::Write as _;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use super::error::{Cause, HeapError};
use super::local::{self, Local};
use super::lock::{Held, Lock};
use super::log::{self, Log, Request};
use super::output::{Line, PATH_BYTES, Stop};
use super::stacks::{self, Stack};
use super::system::{self, KeepError, NoCancel, Zeroed};
use super::table::{self, Entry, Table};
use crate::heap_settings::Settings;

/// Nobody has looked at the environment yet.
const UNREAD: u32 = 0;
/// A recording is being started or ended.
const BUSY: u32 = 1;
const OFF: u32 = 2;
const ON: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNREAD);
/// Requests under this are not looked at. 0 until the environment was read, the most when off.
static MIN_BYTES: AtomicUsize = AtomicUsize::new(0);
static RATE_BYTES: AtomicU64 = AtomicU64::new(0);
static DEPTH: AtomicUsize = AtomicUsize::new(0);
static ERA: AtomicU32 = AtomicU32::new(0);
/// The process that started the recording (E4); 0 where it may not ask the system for its number.
static OWNER: AtomicU64 = AtomicU64::new(0);
/// The key that ends threads, and one more: 0 before it was made.
static KEY: AtomicU32 = AtomicU32::new(0);
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// What is mapped when the first recording starts.
struct Shared {
    log: Lock<Log>,
    table: Table,
}

// SAFETY: 1. All fields, down to the last, are integers, atomics, `bool`s, and arrays, tuples and
// `Maybe`s of those, in cells. Zeros are values of them all.
unsafe impl Zeroed for Shared {}

impl Local {
    /// Returns whether this number of bytes passes without a sample.
    #[inline]
    fn pass(&self, bytes: usize) -> bool {
        let left = self.left.get().wrapping_sub(bytes as i64);
        self.left.set(left);
        left > 0
    }

    /// Returns whether a request that did not pass is a sample. Draws the distance to the next.
    fn draw(&self, bytes: usize) -> bool {
        // ORDER: Relaxed: a rate that is a moment old is a rate.
        let rate = RATE_BYTES.load(Ordering::Relaxed);
        if rate == 0 {
            self.left.set(0);
            return true;
        }
        let is_first = self.seed.get() == 0;
        if is_first {
            self.seed.set((system::now_ns() ^ ptr::from_ref(self).addr() as u64) | 1);
        }
        self.left.set(self.distance(rate));
        // The first distance of a thread begins in front of this request.
        !is_first || !self.pass(bytes)
    }

    /// Draws a distance of the mean `rate`, where every byte is as likely as any other
    /// (exponential).
    fn distance(&self, rate: u64) -> i64 {
        let mut seed = self.seed.get();
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self.seed.set(seed);
        let bits = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        // In (0, 1].
        let uniform = (bits + 1) as f64 / (1_u64 << 53) as f64;
        // A float that is too large becomes the largest number.
        (-uniform.ln() * rate as f64).ceil() as i64
    }
}

/// This thread is inside (E1). The program's last error is kept, and the thread is not cancelled:
/// `malloc` is no cancellation point.
struct Inside {
    // Dropped in this order: a pending cancellation may act when the second goes.
    _error: KeepError,
    _no_cancel: NoCancel,
}

impl Inside {
    fn enter() -> Option<Self> {
        if local::with(|local| local.inside.replace(true)) {
            return None;
        }
        // ORDER: SeqCst, for the compiler alone: a handler of this thread sees the mark before it
        // can meet a lock that is taken behind it.
        compiler_fence(Ordering::SeqCst);
        Some(Self { _error: KeepError::new(), _no_cancel: NoCancel::new() })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // ORDER: SeqCst, for the compiler alone: as in `enter`, for locks that were given back.
        compiler_fence(Ordering::SeqCst);
        local::with(|local| local.inside.set(false));
    }
}

fn shared() -> Option<&'static Shared> {
    // ORDER: Acquire pairs with the Release in `map`: the memory is mapped.
    let shared = SHARED.load(Ordering::Acquire);
    // SAFETY: null, or what `map` stored, which lives as long as the process.
    unsafe { shared.as_ref() }
}

fn map() -> Option<&'static Shared> {
    if let Some(shared) = shared() {
        return Some(shared);
    }
    let shared: &'static Shared = system::map_zeroed()?;
    // ORDER: Release pairs with the Acquire in `shared`. One thread at a time is `BUSY`.
    SHARED.store(ptr::from_ref(shared).cast_mut(), Ordering::Release);
    system::at_fork(log::forked, in_child);
    system::at_exit(exit);
    if let Some(key) = system::thread_key(thread_ends) {
        // ORDER: Relaxed: the key is a number that the C library knows.
        KEY.store(key + 1, Ordering::Relaxed);
    }
    Some(shared)
}

/// Starts a recording.
pub(super) fn start(path: &[u8], settings: Settings) -> Result<(), HeapError> {
    let Some(_inside) = Inside::enter() else { return Err(HeapError(Cause::Running)) };
    for before in [UNREAD, OFF] {
        // ORDER: Acquire pairs with the Release in `begin` and `end`: what the last recording left
        // is seen. A failure reads nothing.
        let taken = STATE.compare_exchange(before, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            return begin(path, settings).map_err(HeapError);
        }
    }
    Err(HeapError(Cause::Running))
}

/// Starts a recording. The state is `BUSY`, and this thread inside.
fn begin(path: &[u8], settings: Settings) -> Result<(), Cause> {
    let begun = open(path, settings);
    let (state, min_bytes) = if begun.is_ok() { (ON, settings.min_bytes) } else { (OFF, usize::MAX) };
    // ORDER: Relaxed for the settings: a request that sees some of them late is recorded by the
    // old. None is recorded before it sees the state, whose Release pairs with the Acquire in
    // `is_on`.
    RATE_BYTES.store(settings.rate_bytes, Ordering::Relaxed);
    DEPTH.store(settings.depth, Ordering::Relaxed);
    // ORDER: as above.
    STATE.store(state, Ordering::Release);
    MIN_BYTES.store(min_bytes, Ordering::Relaxed);
    begun
}

fn open(path: &[u8], settings: Settings) -> Result<(), Cause> {
    let shared = map().ok_or(Cause::NoMemory)?;
    shared.table.clear();
    let mut log = shared.log.take_in_any_case().ok_or(Cause::Running)?;
    // ORDER: Relaxed: only under the lock of the log (E2).
    ERA.fetch_add(1, Ordering::Relaxed);
    OWNER.store(system::process(), Ordering::Relaxed);
    log.begin(path, settings).map_err(Cause::Stopped)
}

/// Starts a recording if the environment says so, and takes the variables out of it: the children
/// of this process are not recorded.
#[cold]
#[inline(never)]
pub(super) fn start_from_environment() {
    let Some(_inside) = Inside::enter() else { return };
    // ORDER: as in `start`.
    if STATE.compare_exchange(UNREAD, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    let mut path = [0; PATH_BYTES];
    let mut text = [0; 1024];
    let path = system::environment(c"BUFTRACE", &mut path).and_then(|length| path.get(..length));
    let options = system::environment(c"BUFTRACE_OPTIONS", &mut text).and_then(|length| text.get(..length));
    [c"BUFTRACE", c"BUFTRACE_OPTIONS"].into_iter().for_each(system::forget_variable);
    let settings = Settings::DEFAULT.parse(options.unwrap_or_default());
    let mut line = Line::<512>::new();
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        let begun = settings.ok_or(Cause::Setting).and_then(|settings| begin(path, settings));
        let Err(cause) = begun else { return };
        let _ = line.write_str("buftrace: ");
        line.push(path.get(..path.len().min(300)).unwrap_or_default());
        let _ = writeln!(line, ": {}", HeapError(cause));
    }
    // ORDER: as in `begin`.
    MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
    // ORDER: Release pairs with the Acquire in `start`.
    STATE.store(OFF, Ordering::Release);
    system::say(line.bytes(), system::errors());
}

/// Ends the recording, if one is running, and says why if there is a reason.
#[inline(never)]
pub(super) fn stop(reason: Option<Stop>) {
    let Some(_inside) = Inside::enter() else { return };
    if let Some(mut log) = recording().and_then(|shared| shared.log.take_in_any_case()) {
        end(&mut log, reason);
    }
}

/// Ends the recording before the system calls of this process are restricted: at its end, `exit`
/// does not ask the system which process it is.
pub(super) fn restricted() {
    stop(Some(Stop::Restricted));
    // ORDER: Relaxed: a number alone. A child by `vfork` leaves its parent's as it is.
    let _ = OWNER.compare_exchange(system::process(), 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// Ends the recording. After a `Stop` this says why.
fn end(log: &mut Log, reason: Option<Stop>) {
    // ORDER: as in `start`.
    if STATE.compare_exchange(ON, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // ORDER: Relaxed: a request that sees it late finds that the state is not on.
    MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
    log.end(reason);
    // ORDER: Release pairs with the Acquire in `start`.
    STATE.store(OFF, Ordering::Release);
}

/// Returns what belongs to the recording, if one is on and this process started it (E4).
fn recording() -> Option<&'static Shared> {
    // ORDER: Acquire pairs with the Release in `begin`: it makes the owner visible.
    let is_on = STATE.load(Ordering::Acquire) == ON;
    // ORDER: Relaxed: as above.
    if is_on && OWNER.load(Ordering::Relaxed) == system::process() { shared() } else { None }
}

/// Notes that a request was served, with `bytes` bytes at `address`.
#[inline]
pub(super) fn allocated(address: usize, bytes: usize, zeroed: bool) {
    // ORDER: Relaxed: as in `begin`.
    if bytes < MIN_BYTES.load(Ordering::Relaxed) {
        return;
    }
    if !local::with(|local| local.pass(bytes)) {
        requested(address, bytes, bytes, zeroed, None);
    }
}

/// Records that memory is about to be freed.
#[inline]
pub(super) fn freed(address: usize) {
    if table::may_have(address) {
        released(address);
    }
}

/// Notes that memory is about to be given back, of `bytes` bytes by the word of the program.
#[inline]
pub(super) fn freed_of(address: usize, bytes: usize) {
    // ORDER: Relaxed: as in `begin`. A sampled object is never under it: see `reallocated`.
    if bytes >= MIN_BYTES.load(Ordering::Relaxed) {
        freed(address);
    }
}

/// Takes an object out that is about to be reallocated, if it is sampled. Its address may be
/// somebody else's before this thread continues.
#[inline]
pub(super) fn reallocating(address: usize) -> Option<Entry> {
    if table::may_have(address) { take_out(address) } else { None }
}

#[cold]
fn take_out(address: usize) -> Option<Entry> {
    let _inside = Inside::enter()?;
    recording()?.table.remove(address)
}

/// Notes that memory of `from` bytes has `to` bytes now, at `address`.
#[inline]
pub(super) fn reallocated(entry: Option<Entry>, address: usize, from: usize, to: usize) {
    if let Some(entry) = entry {
        return resized(entry, address, to);
    }
    // ORDER: Relaxed: as in `begin`.
    let min_bytes = MIN_BYTES.load(Ordering::Relaxed);
    if to < min_bytes || to <= from {
        return;
    }
    // The bytes that it had before had their chance to be drawn, unless they were too few.
    let drawn = if from < min_bytes { to } else { to - from };
    if !local::with(|local| local.pass(drawn)) {
        requested(address, to, drawn, false, Some(from));
    }
}

/// Puts back what `reallocating` took out, after a reallocation that failed.
#[cold]
pub(super) fn not_reallocated(entry: Entry) {
    let Some(_inside) = Inside::enter() else { return };
    if let Some(shared) = recording() {
        track(shared, entry);
    }
}

/// Takes the log. When its lock is not to be had, an event is lost.
fn hold(shared: &Shared) -> Option<Held<'_, Log>> {
    let log = shared.log.take();
    if log.is_none() {
        log::lose();
    }
    log
}

/// This thread's number in the recording.
fn number(log: &mut Log) -> u32 {
    local::with(|local| {
        // ORDER: Relaxed: under the lock of the log (E2).
        let era = ERA.load(Ordering::Relaxed);
        if local.era.replace(era) != era {
            local.number.set(log.take_number());
            // ORDER: Relaxed: a number that the C library knows.
            if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
                system::mark_thread(key);
            }
        }
        local.number.get()
    })
}

/// Draws whether a request that did not pass is a sample, and notes it. It is not inlined, since
/// its frame is left out of stacks.
#[cold]
#[inline(never)]
fn requested(address: usize, bytes: usize, drawn: usize, zeroed: bool, grown_from: Option<usize>) {
    // ORDER: Relaxed: whoever comes too late for the first request records the next.
    if STATE.load(Ordering::Relaxed) == UNREAD {
        start_from_environment();
        // ORDER: Relaxed: as in `begin`.
        if bytes < MIN_BYTES.load(Ordering::Relaxed) {
            return;
        }
    }
    let Some(_inside) = Inside::enter() else { return };
    if address == 0 {
        return;
    }
    let Some(shared) = recording() else { return };
    if !local::with(|local| local.draw(drawn)) {
        return;
    }
    // Before any lock: the unwinder may wait for the linker's.
    // ORDER: Relaxed: as in `begin`.
    let mut stack = Stack::new(DEPTH.load(Ordering::Relaxed));
    stacks::capture(&mut stack);
    let Some(mut log) = hold(shared) else { return };
    let thread = number(&mut log);
    let request = Request { bytes, zeroed, grown_from, stack: &stack };
    match log.acquire(thread, &request) {
        Ok(id) => {
            // ORDER: Relaxed: under the lock of the log (E2).
            let era = ERA.load(Ordering::Relaxed);
            drop(log);
            track(shared, Entry::new(address, id, bytes, era));
        }
        Err(reason) => end(&mut log, Some(reason)),
    }
}

/// Tracks an object. If the release of the one before it at its address was not seen, it is noted
/// now.
fn track(shared: &Shared, entry: Entry) {
    match shared.table.insert(entry) {
        Ok(None) => {}
        Ok(Some(stale)) => note(shared, &stale, |log, thread| log.release(thread, stale.id)),
        Err(table::NoRoom) => note(shared, &entry, |log, thread| {
            log::lose();
            log.release(thread, entry.id)
        }),
    }
}

/// Writes an event of an object, if it belongs to this recording.
fn note(shared: &Shared, entry: &Entry, event: impl FnOnce(&mut Log, u32) -> Result<(), Stop>) {
    let Some(mut log) = hold(shared) else { return };
    // ORDER: Relaxed: under the lock of the log (E2).
    if ERA.load(Ordering::Relaxed) != entry.era {
        return;
    }
    let thread = number(&mut log);
    if let Err(reason) = event(&mut log, thread) {
        end(&mut log, Some(reason));
    }
}

#[cold]
#[inline(never)]
fn released(address: usize) {
    let Some(_inside) = Inside::enter() else { return };
    if let Some(shared) = recording()
        && let Some(entry) = shared.table.remove(address)
    {
        note(shared, &entry, |log, thread| log.release(thread, entry.id));
    }
}

/// Notes that a sampled object has a new address or size.
#[cold]
fn resized(mut entry: Entry, address: usize, bytes: usize) {
    let Some(_inside) = Inside::enter() else { return };
    let Some(shared) = recording() else { return };
    // ORDER: Relaxed: as in `begin`.
    if bytes < MIN_BYTES.load(Ordering::Relaxed) {
        // It is too small now, and is not found again by `freed_of`.
        return note(shared, &entry, |log, thread| log.release(thread, entry.id));
    }
    note(shared, &entry, |log, thread| log.resize(thread, entry.id, bytes));
    (entry.address, entry.bytes) = (address, bytes);
    track(shared, entry);
}

/// Ends the recording in a forked child: it belongs to the parent. What else the child inherited
/// may be locked for ever, and is left as it is.
extern "C" fn in_child() {
    // ORDER: Relaxed, for all: the process has one thread, which sees its own stores.
    if STATE.compare_exchange(ON, OFF, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
    }
    OWNER.store(0, Ordering::Relaxed);
}

/// Called when the program exits, or when the library that this code is in is unloaded: threads
/// that end later do not call it.
extern "C" fn exit() {
    stop(None);
    // ORDER: Relaxed: as in `recording`; this process alone has threads with numbers.
    let owner = OWNER.load(Ordering::Relaxed);
    if owner == 0 || owner != system::process() {
        return;
    }
    let _log = shared().and_then(|shared| shared.log.take_in_any_case());
    // ORDER: Relaxed: under the lock of the log, as in `number`.
    if let Some(key) = KEY.swap(0, Ordering::Relaxed).checked_sub(1) {
        system::delete_key(key);
    }
}

unsafe extern "C" fn thread_ends(_: *mut c_void) {
    let Some(_inside) = Inside::enter() else { return };
    let Some(mut log) = recording().and_then(|shared| shared.log.take()) else { return };
    local::with(|local| {
        // ORDER: Relaxed: under the lock of the log (E2).
        if local.era.replace(0) == ERA.load(Ordering::Relaxed) {
            log.give_number_back(local.number.get());
        }
    });
}
