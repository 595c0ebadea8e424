//! Functions for code that implements or wraps an allocator, such as the library for `LD_PRELOAD`.
//! Programs use [`RecordingAlloc`](crate::RecordingAlloc).
//!
//! Addresses are treated as numbers, and never dereferenced. Every call is therefore sound,
//! whatever its arguments; wrong arguments make a wrong recording.
//!
//! ```
//! use buftrace::hooks;
//!
//! let memory = [0_u8; 4096]; // from an allocator
//! hooks::allocated(memory.as_ptr(), memory.len(), false);
//! // Before the memory is given back:
//! hooks::freed(memory.as_ptr());
//! ```

use super::modules;
use super::recorder;
use super::table::Entry;

/// Starts to record if the environment variable `BUFTRACE` names a file, and no recording was
/// requested before. The first [`allocated`] does the same.
///
/// ```
/// buftrace::hooks::start_from_environment();
/// ```
pub fn start_from_environment() {
    recorder::start_from_environment();
}

/// Ends the recording, if one is running, before the program restricts its system calls (seccomp),
/// which might kill it for one of the recorder's.
///
/// ```
/// buftrace::hooks::restricted();
/// ```
pub fn restricted() {
    recorder::restricted();
}

/// Records that a library was unloaded, so that the next one at its addresses gets its own names.
///
/// ```
/// buftrace::hooks::unloaded();
/// ```
pub fn unloaded() {
    modules::unloaded();
}

/// Records that a request was served: `bytes` bytes at `memory`, which may be null after a failure.
///
/// ```
/// let memory = [0_u8; 4096];
/// buftrace::hooks::allocated(memory.as_ptr(), memory.len(), false);
/// ```
#[inline]
pub fn allocated(memory: *const u8, bytes: usize, zeroed: bool) {
    recorder::allocated(memory.addr(), bytes, zeroed);
}

/// Records that memory is about to be freed. Call it before the memory is freed, since another
/// thread may get it at once.
///
/// ```
/// let memory = [0_u8; 4096];
/// buftrace::hooks::freed(memory.as_ptr());
/// ```
#[inline]
pub fn freed(memory: *const u8) {
    recorder::freed(memory.addr());
}

/// A reallocation between its two calls. Dropping it forgets the object.
///
/// ```
/// use buftrace::hooks::Reallocation;
///
/// let (old, new) = ([0_u8; 600], [0_u8; 900]); // from an allocator
/// let reallocation = Reallocation::begin(old.as_ptr());
/// // The allocator does it.
/// reallocation.end(new.as_ptr(), old.len(), new.len());
/// ```
#[derive(Debug)]
#[must_use = "says `end` when it is done"]
pub struct Reallocation(Option<Entry>);

impl Reallocation {
    /// Records that `memory` is about to be reallocated.
    ///
    /// ```
    /// use buftrace::hooks::Reallocation;
    ///
    /// let old = [0_u8; 600];
    /// let reallocation = Reallocation::begin(old.as_ptr());
    /// reallocation.end(std::ptr::null(), 600, 900); // it failed
    /// ```
    #[inline]
    pub fn begin(memory: *const u8) -> Self {
        Self(recorder::reallocating(memory.addr()))
    }

    /// Records that the reallocation is complete: there are now `to` bytes at `memory`, where there
    /// were `from` bytes before. Null means that it failed, and that the old memory is unchanged.
    ///
    /// ```
    /// use buftrace::hooks::Reallocation;
    ///
    /// let memory = [0_u8; 900];
    /// Reallocation::begin(memory.as_ptr()).end(memory.as_ptr(), 600, 900);
    /// ```
    #[inline]
    pub fn end(self, memory: *const u8, from: usize, to: usize) {
        if !memory.is_null() {
            recorder::reallocated(self.0, memory.addr(), from, to);
        } else if let Some(entry) = self.0 {
            recorder::not_reallocated(entry);
        }
    }
}
