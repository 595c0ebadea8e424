//! The system calls of the recorder. None of them allocates, and none panics.
//!
//! The C library's locks and its memory may be in use by the very call that is recorded. So this
//! takes bare calls of the system only, which a signal's handler may make too.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr;

/// A file number that programs do not use: those that close all of theirs stop far below it.
const HIGH_FILE: c_int = 600;

/// Types of which all bytes may be zero.
///
/// # Safety
///
/// 1. All bytes zero are a valid value.
pub(super) unsafe trait Zeroed: Sync {}

/// Maps memory for a `T` of zeros, for as long as the process lives. Pages cost nothing until they
/// are touched.
pub(super) fn map_zeroed<T: Zeroed>() -> Option<&'static T> {
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new anonymous mapping touches no other memory.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size_of::<T>(), access, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has the size of a `T`, is aligned to a page, is never unmapped, and holds
    // zeros, which are a value (`Zeroed`, 1). Nobody else knows it.
    Some(unsafe { &*memory.cast::<T>() })
}

/// A value that may be missing, of which all bytes may be zero: then it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maybe<T> {
    is_some: bool,
    value: T,
}

impl<T: Copy> Maybe<T> {
    pub(super) fn get(self) -> Option<T> {
        if self.is_some { Some(self.value) } else { None }
    }

    pub(super) fn set(&mut self, value: T) {
        *self = Self { is_some: true, value };
    }

    pub(super) fn take(&mut self) -> Option<T> {
        let value = self.get();
        self.is_some = false;
        value
    }
}

/// Nanoseconds of a clock that never goes back.
pub(super) fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC).map_or(0, |time| time.0 * 1_000_000_000 + time.1)
}

/// Seconds since the start of 1970.
pub(super) fn unix_seconds() -> u64 {
    clock(libc::CLOCK_REALTIME).map_or(0, |time| time.0)
}

fn clock(clock: libc::clockid_t) -> Option<(u64, u64)> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| !failed)?;
    Some((seconds, u64::try_from(time.tv_nsec).unwrap_or(0)))
}

/// Sleeps for some 50 microseconds.
pub(super) fn nap() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
    // SAFETY: the time is readable, and no rest is asked for.
    unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) };
}

/// What this process took of the machine so far: its processor time in nanoseconds, its page
/// faults, the most bytes that were resident, and the processor time of its children.
pub(super) fn usage() -> [u64; 4] {
    let of = |whose| {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is writable. A failure leaves zeros, which are a value.
        unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
        // SAFETY: zeroed, and then filled.
        unsafe { usage.assume_init() }
    };
    let number = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    let nanos = |usage: &libc::rusage| -> u64 {
        let of =
            |time: libc::timeval| number(time.tv_sec as _) * 1_000_000_000 + number(time.tv_usec as _) * 1000;
        of(usage.ru_utime) + of(usage.ru_stime)
    };
    let own = of(libc::RUSAGE_SELF);
    let faults = number(own.ru_minflt) + number(own.ru_majflt);
    [nanos(&own), faults, number(own.ru_maxrss) << 10, nanos(&of(libc::RUSAGE_CHILDREN))]
}

/// Returns the number of this process.
pub(super) fn process() -> u64 {
    // SAFETY: has no conditions.
    u64::from(unsafe { libc::getpid() }.unsigned_abs())
}

/// Copies the value of an environment variable to `buffer`, and returns its length. `None` when it
/// is not set, or does not fit.
pub(super) fn environment(name: &CStr, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: `name` ends with a zero. The caller is the program's first allocation or a
    // constructor, so no thread changes the environment meanwhile that does not break the same
    // rule for every other `getenv`.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: the C library keeps values with a zero at their end.
    let bytes = unsafe { CStr::from_ptr(value) }.to_bytes();
    buffer.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(bytes.len())
}

/// Copies the working directory to `buffer`, and returns its length.
pub(super) fn working_directory(buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer is writable for its length. With a buffer nothing is allocated.
    let found = unsafe { libc::getcwd(buffer.as_mut_ptr().cast(), buffer.len()) };
    if found.is_null() {
        return None;
    }
    CStr::from_bytes_until_nul(buffer).ok().map(|text| text.to_bytes().len())
}

/// Copies the path of the program to `buffer`, and returns its length.
pub(super) fn program(buffer: &mut [u8]) -> usize {
    let link = c"/proc/self/exe".as_ptr();
    // SAFETY: the path ends with a zero, and the buffer is writable for its length.
    let length = unsafe { libc::readlink(link, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(length).unwrap_or(0)
}

/// Takes a variable out of the environment.
pub(super) fn forget_variable(name: &CStr) {
    // SAFETY: as in `environment`. The C library moves the pointers behind it, and frees nothing.
    unsafe { libc::unsetenv(name.as_ptr()) };
}

// Not in the bindings of all systems.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Keeps this thread from being cancelled in a system call: it would die with locks held.
pub(super) struct NoCancel(c_int);

impl NoCancel {
    pub(super) fn new() -> Self {
        /// `PTHREAD_CANCEL_DISABLE`.
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: `before` is writable.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for NoCancel {
    fn drop(&mut self) {
        // SAFETY: the state is one that the C library gave.
        unsafe { pthread_setcancelstate(self.0, ptr::null_mut()) };
    }
}

/// Returns the number of the last error.
fn last_error() -> c_int {
    // SAFETY: has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's, and readable.
    unsafe { *place }
}

/// Keeps the thread's last error as the program left it.
pub(super) struct KeepError(c_int);

impl KeepError {
    pub(super) fn new() -> Self {
        Self(last_error())
    }
}

impl Drop for KeepError {
    fn drop(&mut self) {
        // SAFETY: has no conditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: it is this thread's, and writable.
        unsafe { *place = self.0 };
    }
}

/// The file that a number means, whatever its name is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(status: &libc::stat) -> Self {
        Self { device: wide(status.st_dev), inode: wide(status.st_ino) }
    }
}

/// Returns what is at a path, if anything is, without following a symbolic link.
fn status(path: &CStr) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path ends with a zero, and `status` is writable.
    let failed = unsafe { libc::lstat(path.as_ptr(), status.as_mut_ptr()) } != 0;
    // SAFETY: it was zeroed, which is a valid value.
    (!failed).then_some(unsafe { status.assume_init() })
}

/// Returns whether a file is at a path: no device, no pipe, no link. `None`: there is nothing.
pub(super) fn is_file(path: &CStr) -> Option<bool> {
    Some(status(path)?.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// Gives another name to a file, if it is still the one that is meant. Unless `replaces`, nothing
/// has that name, and what comes to it meanwhile keeps it where the file system knows how.
pub(super) fn rename(from: &CStr, file: Option<Identity>, to: &CStr, replaces: bool) -> Result<(), c_int> {
    if file.is_none() || status(from).map(|status| Identity::of(&status)) != file {
        return Err(libc::ENOENT);
    }
    let (from, to, here) = (from.as_ptr(), to.as_ptr(), libc::AT_FDCWD);
    if !replaces {
        // SAFETY: both paths end with a zero.
        let error =
            unsafe { libc::syscall(libc::SYS_renameat2, here, from, here, to, libc::RENAME_NOREPLACE) };
        match last_error() {
            _ if error == 0 => return Ok(()),
            libc::EINVAL | libc::ENOSYS => {}
            number => return Err(number),
        }
    }
    // SAFETY: both paths end with a zero.
    if unsafe { libc::rename(from, to) } == 0 { Ok(()) } else { Err(last_error()) }
}

/// Deletes a file.
pub(super) fn delete(path: &CStr) {
    // SAFETY: the path ends with a zero.
    unsafe { libc::unlink(path.as_ptr()) };
}

/// An open file. It is not closed by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct File(c_int);

impl File {
    /// Opens a file to read.
    pub(super) fn open(path: &CStr) -> Option<Self> {
        Self::open_with(path, libc::O_RDONLY).ok()
    }

    /// Makes a file that is not there yet, to write at its end.
    pub(super) fn create(path: &CStr) -> Result<Self, c_int> {
        Self::open_high(path, libc::O_CREAT | libc::O_EXCL)
    }

    /// Opens a file again that was made by `create`.
    pub(super) fn reopen(path: &CStr) -> Result<Self, c_int> {
        Self::open_high(path, libc::O_NOFOLLOW | libc::O_NONBLOCK)
    }

    /// Opens a file out of the way of the program's own numbers.
    fn open_high(path: &CStr, flags: c_int) -> Result<Self, c_int> {
        let low = Self::open_with(path, libc::O_WRONLY | libc::O_APPEND | flags)?;
        // SAFETY: has no conditions on memory.
        let high = unsafe { libc::fcntl(low.0, libc::F_DUPFD_CLOEXEC, HIGH_FILE) };
        if high < 0 {
            // The limit of files is lower.
            return Ok(low);
        }
        low.close();
        Ok(Self(high))
    }

    fn open_with(path: &CStr, flags: c_int) -> Result<Self, c_int> {
        // SAFETY: the path ends with a zero.
        let number = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o644) };
        if number < 0 { Err(last_error()) } else { Ok(Self(number)) }
    }

    /// Returns which file it is.
    pub(super) fn identity(self) -> Option<Identity> {
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: `status` is writable.
        if unsafe { libc::fstat(self.0, status.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: it was zeroed, which is a valid value, and then filled.
        Some(Identity::of(&unsafe { status.assume_init() }))
    }

    pub(super) fn truncate(self, bytes: u64) {
        let bytes = libc::off_t::try_from(bytes).unwrap_or(0);
        // SAFETY: has no conditions on memory. A device that has no length refuses it.
        unsafe { libc::ftruncate(self.0, bytes) };
    }

    pub(super) fn close(self) {
        // SAFETY: has no conditions on memory.
        unsafe { libc::close(self.0) };
    }

    /// Writes all of `bytes`.
    pub(super) fn write(self, mut bytes: &[u8]) -> Result<(), c_int> {
        while !bytes.is_empty() {
            // SAFETY: the bytes are readable.
            let written = unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(0) => return Err(libc::ENOSPC),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(_) if last_error() == libc::EINTR => {}
                Err(_) => return Err(last_error()),
            }
        }
        Ok(())
    }

    /// Reads at `offset`, and returns how much it was.
    pub(super) fn read_at(self, buffer: &mut [u8], offset: u64) -> usize {
        let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::pread(self.0, buffer.as_mut_ptr().cast(), buffer.len(), offset) };
        usize::try_from(read).unwrap_or(0)
    }

    /// Reads on, and returns how much it was: 0 at the end.
    pub(super) fn read(self, buffer: &mut [u8]) -> usize {
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(read).unwrap_or(0)
    }
}

/// Keeps signals from this thread while it is there. They come later.
#[derive(Debug)]
pub(super) struct SignalsMasked {
    before: libc::sigset_t,
}

impl SignalsMasked {
    pub(super) fn new() -> Self {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `all` is writable.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` is readable and `before` is writable.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: it was zeroed, which is a valid value (an empty set), and then filled.
        Self { before: unsafe { before.assume_init() } }
    }
}

impl Drop for SignalsMasked {
    fn drop(&mut self) {
        // SAFETY: the set is readable, and nothing is read back.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

/// Returns the longest file that this process may write: a byte more ends it with a signal.
pub(super) fn longest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    wide(limit.rlim_cur)
}

/// Returns a number of the system, whose type differs from processor to processor.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

/// Returns what errors are printed to.
pub(super) fn errors() -> Option<Identity> {
    File(libc::STDERR_FILENO).identity()
}

/// Writes a line to `errors`, if its number is still that of errors, and somebody listens: a
/// program may have put something else in its place, and a pipe without a reader would end it.
pub(super) fn say(text: &[u8], to: Option<Identity>) {
    let mut poll = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `poll` is one writable entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    if to.is_some() && errors() == to && poll.revents == libc::POLLOUT {
        let _ = File(libc::STDERR_FILENO).write(text);
    }
}

/// Has `parent` called after each fork, and `child` in the child.
pub(super) fn at_fork(parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: the system forgets the functions when the library that they are in is unloaded.
    unsafe { libc::pthread_atfork(None, Some(parent), Some(child)) };
}

/// Has `end` called when the program exits, or when the library that `end` is in is unloaded.
pub(super) fn at_exit(end: extern "C" fn()) {
    // SAFETY: the function is there until it was called.
    unsafe { libc::atexit(end) };
}

/// Makes a key of which `end` is called at the end of each thread that marked itself.
pub(super) fn thread_key(end: unsafe extern "C" fn(*mut libc::c_void)) -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is writable. The function is there until `delete_key`: see `recorder::exit`.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } != 0;
    if failed { None } else { Some(key) }
}

/// Has the function of `key` called when this thread ends.
pub(super) fn mark_thread(key: libc::pthread_key_t) {
    // SAFETY: the key was made by `thread_key`, and the value is never used as a pointer.
    unsafe { libc::pthread_setspecific(key, ptr::without_provenance(1)) };
}

/// Has the function of `key` called no more.
pub(super) fn delete_key(key: libc::pthread_key_t) {
    // SAFETY: the key was made by `thread_key`, and is used no more.
    unsafe { libc::pthread_key_delete(key) };
}
