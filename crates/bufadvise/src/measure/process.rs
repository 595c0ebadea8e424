//! This process as the system sees it.

use std::fs;
use std::io::Read;

/// Brings the system's allocator into the state of a program that has run for a while, whoever else
/// is in the row.
///
/// glibc gives memory at the heap's end back to the kernel, and takes large blocks from it
/// directly. Both have thresholds, which rise for good when such a block is freed for the first
/// time. Without this call it would depend on the other engines whether `vec` faults its pages
/// in again and again.
pub fn settle_heap() {
    /// The largest block that glibc raises its thresholds for is 32 MiB.
    const BYTES: usize = 31 << 20;
    drop(core::hint::black_box(Vec::<u8>::with_capacity(BYTES)));
}

/// Bytes of memory that are resident and belong to this process alone, exactly: the kernel walks
/// its pages. The counts that are cheaper to read are off by up to 32 pages for each processor.
#[must_use]
pub fn resident() -> Option<u64> {
    // On the stack: what is measured is the heap.
    let mut text = [0_u8; 2048];
    let mut file = fs::File::open("/proc/self/smaps_rollup").ok()?;
    let mut len = 0;
    while let Some(rest) = text.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).ok()? {
            0 => break,
            read => len += read,
        }
    }
    let text = core::str::from_utf8(&text[..len]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Has the system's allocator give back what it keeps free, where it can be told to.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the call may be made at any time, on any thread.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Processor time that the calling thread has taken, in nanoseconds.
#[must_use]
pub fn thread_time() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::time::Instant;
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Page faults of the calling thread; 0 where the system does not say.
#[must_use]
pub fn thread_faults() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is writable. A failure leaves zeros, which are a value.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        // SAFETY: zeroed, and then filled.
        let usage = unsafe { usage.assume_init() };
        u64::try_from(usage.ru_minflt).unwrap_or(0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        0
    }
}
