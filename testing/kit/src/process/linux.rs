//! What Linux says about a process, and its limits.

use std::fs;
use std::io::Read;

use super::is_alone;

/// Returns the resident memory of this process in bytes, after the allocator gave back what it only
/// keeps for later.
pub fn resident_bytes() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
    resident_bytes_as_it_is()
}

/// Returns the resident memory of this process in bytes, with what the allocator keeps.
pub fn resident_bytes_as_it_is() -> usize {
    // `statm` and `status` add up what each processor last handed in: some hundred KiB off where
    // there are many. The roll-up counts pages.
    let counted = fs::read_to_string("/proc/self/smaps_rollup").expect("procfs is mounted");
    field_bytes(&counted, "Rss")
}

/// Counts how often the calling thread gave its processor up by itself, as it does to sleep.
/// Moments in which others have the processor do not count.
pub fn thread_sleeps() -> usize {
    // SAFETY: a structure of plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage`.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    usize::try_from(usage.ru_nvcsw).expect("a count")
}

/// Counts the open descriptors.
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").expect("procfs is mounted").count()
}

/// Counts the mappings, without memory for the list of them: it might need another one.
pub fn mappings() -> usize {
    let mut list = fs::File::open("/proc/self/maps").expect("procfs is mounted");
    let (mut lines, mut part) = (0, [0; 4096]);
    loop {
        match list.read(&mut part).expect("it can be read") {
            0 => return lines,
            read => lines += part[..read].iter().filter(|&&byte| byte == b'\n').count(),
        }
    }
}

/// Reads a line of `/proc/self/status` that is given in KiB, such as `VmLck`, in bytes.
pub fn status_bytes(field: &str) -> usize {
    field_bytes(&fs::read_to_string("/proc/self/status").expect("procfs is mounted"), field)
}

/// Reads the line of `text` that gives `field` in KiB, in bytes.
fn field_bytes(text: &str, field: &str) -> usize {
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let words = line.unwrap_or_else(|| panic!("no {field} in {text}"));
    let kib: usize = words.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// Returns the lines of `/proc/self/smaps` about the mapping that holds `address`.
pub fn smaps(address: usize) -> String {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("procfs is mounted");
    let mut lines = smaps.lines().skip_while(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds = range.and_then(|(from, to)| {
            Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
        });
        !bounds.is_some_and(|(from, to)| (from..to).contains(&address))
    });
    let head = lines.next().expect("the address is mapped");
    let rest = lines.take_while(|line| line.split(' ').next().is_some_and(|word| word.ends_with(':')));
    std::iter::once(head).chain(rest).collect::<Vec<_>>().join("\n")
}

fn limits(resource: libc::__rlimit_resource_t) -> libc::rlimit {
    assert!(is_alone(), "a limit would hit the other tests of this process");
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live `rlimit`.
    let done = unsafe { libc::getrlimit(resource, &raw mut limits) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    limits
}

fn set_limits(resource: libc::__rlimit_resource_t, limits: libc::rlimit) {
    // SAFETY: the pointer is to a live `rlimit`.
    let done = unsafe { libc::setrlimit(resource, &raw const limits) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Lowers a resource limit of this process for good. Only tests that run [`alone`](super::alone) call it.
pub fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    set_limits(resource, libc::rlimit { rlim_cur: value as libc::rlim_t, ..limits(resource) });
}

/// Runs `body` with a lower limit of a resource. Only tests that run [`alone`](super::alone) call it.
pub fn limited<R>(resource: libc::__rlimit_resource_t, value: u64, body: impl FnOnce() -> R) -> R {
    let before = limits(resource);
    limit(resource, value);
    let result = body();
    set_limits(resource, before);
    result
}

/// Becomes nobody, if this is the superuser, whom some limits do not bind. Only tests that run
/// [`alone`](super::alone) call it.
pub fn give_up_privileges() {
    const NOBODY: libc::uid_t = 65_534;
    assert!(is_alone(), "the other tests of this process would lose them too");
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    // SAFETY: no preconditions.
    let done = unsafe { libc::setuid(NOBODY) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // Or else `/proc/self` would stay the superuser's.
    // SAFETY: no pointers are passed.
    let done = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Returns the address space that this process uses now, in bytes.
pub fn address_space_bytes() -> usize {
    status_bytes("VmSize")
}

/// Returns zeroed memory for good, which may be more than the machine has: nothing is behind it before
/// it is used.
#[cfg(target_pointer_width = "64")]
pub fn vast(bytes: usize) -> &'static mut [u8] {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a mapping anywhere, of no file.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    // SAFETY: it is as long as that, zeroed, nobody else's, and never unmapped.
    unsafe { std::slice::from_raw_parts_mut(start.cast(), bytes) }
}
