//! The allocator that records what goes through it.

use core::alloc::{GlobalAlloc, Layout};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::{Cause, HeapError};
use super::hooks::Reallocation;
use super::recorder;
use crate::heap_settings::Settings;

/// An allocator that records its requests, and otherwise behaves as the one that it wraps.
///
/// It is made for `#[global_allocator]`. It records if the environment variable `BUFTRACE` names a
/// file, or after a call of [`start_heap_recording`]. Until then a request costs two additional
/// comparisons.
///
/// A recording consists of samples: a byte is drawn every 1 MiB on average, and the request that
/// contains it is tracked to its release. A sample costs a walk through the call stack, which is
/// most of the overhead. `docs/adr/0031-heap-sampling.md` in the repository has figures.
///
/// All allocators of this type in a program write into one recording.
///
/// ```
/// use std::alloc::System;
/// use buftrace::RecordingAlloc;
///
/// #[global_allocator]
/// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
///
/// // BUFTRACE=app.heap cargo run --release
/// # drop(vec![0_u8; 1 << 20]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordingAlloc<A> {
    inner: A,
}

impl<A> RecordingAlloc<A> {
    /// Wraps `inner`.
    ///
    /// ```
    /// use std::alloc::System;
    /// use buftrace::RecordingAlloc;
    ///
    /// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
    /// ```
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// Starts to record the requests of this process that go through a [`RecordingAlloc`], to the file
/// `path`. For programs that do not choose the moment, the environment variable `BUFTRACE` names
/// the file, `BUFTRACE_OPTIONS` has the settings, and recording begins with the first allocation.
///
/// `settings` are any of these, separated by commas, or empty:
///
/// | setting | meaning |
/// | --- | --- |
/// | `min=512` | the smallest request that is recorded |
/// | `rate=1MiB` | the mean number of requested bytes between two samples |
/// | `exact` | all requests are recorded, for tests and short programs |
/// | `depth=24` | the frames of a call stack, at most 128; with 0 there are no stacks |
/// | `limit=1GiB` | the longest file: the recording stops there, and the program continues |
///
/// One process is recorded. The recorder removes both variables from its environment, so that the
/// programs that it starts are not recorded. A forked child is not recorded either.
///
/// While the recording runs, the name of its file ends in `.part`. At the end it is renamed and
/// replaces an older recording. An existing file that is not a recording is not replaced. After a
/// kill, or an `exec`, the file keeps the `.part`, and can be read; it may lack the last tenth of
/// a second.
///
/// # Errors
///
/// Returns an error if a recording is already running, if a setting is invalid, if the file cannot
/// be written, or if an existing file is not a recording.
///
/// ```
/// use std::alloc::System;
/// use buftrace::{Profile, RecordingAlloc};
///
/// #[global_allocator]
/// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
///
/// # let path = std::env::temp_dir().join(format!("options-{}.heap", std::process::id()));
/// buftrace::start_heap_recording(&path, "exact,min=4KiB")?;
/// let body = Vec::<u8>::with_capacity(64 << 10);
/// drop(body);
/// buftrace::stop_heap_recording();
///
/// let profile = Profile::load(&path)?;
/// assert!(profile.objects().iter().any(|object| object.bytes == 64 << 10));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn start_heap_recording(path: impl AsRef<Path>, settings: &str) -> Result<(), HeapError> {
    let settings = Settings::DEFAULT.parse(settings.as_bytes()).ok_or(HeapError(Cause::Setting))?;
    recorder::start(path.as_ref().as_os_str().as_bytes(), settings)
}

/// Stops the heap recording, and completes its file. It does nothing if nothing is recorded.
///
/// The end of the program does this automatically.
///
/// ```
/// buftrace::stop_heap_recording();
/// ```
pub fn stop_heap_recording() {
    recorder::stop(None);
}

// SAFETY: every call goes to the inner allocator as it came, and its answer back as it is. The
// recorder notes addresses as numbers, and follows none of them. It does not unwind: its code has
// no panics, takes no memory from an allocator, and does not enter itself.
unsafe impl<A: GlobalAlloc> GlobalAlloc for RecordingAlloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.inner.alloc(layout) };
        recorder::allocated(memory.addr(), layout.size(), false);
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        recorder::allocated(memory.addr(), layout.size(), true);
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        recorder::freed_of(memory.addr(), layout.size());
        // SAFETY: as the caller promises.
        unsafe { self.inner.dealloc(memory, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let reallocation = Reallocation::begin(memory);
        // SAFETY: as the caller promises.
        let new = unsafe { self.inner.realloc(memory, layout, bytes) };
        reallocation.end(new, layout.size(), bytes);
        new
    }
}
