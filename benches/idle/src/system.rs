//! What the system says about a process, and what it allows this one.

use core::time::Duration;
use std::fs;

use anyhow::{Context, Result};

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// All of it that is in memory.
    pub bytes: u64,
    /// Of that, what the process has given back, and the system has not taken yet.
    pub lazily_freed: u64,
}

/// Resident memory as the page tables have it. Slow for a large process.
///
/// # Errors
///
/// When the system does not say.
pub fn resident(process: u32) -> Result<Resident> {
    let text = read(process, "smaps_rollup")?;
    let kib = |name| kib_of(&text, name).with_context(|| format!("no {name} in smaps_rollup"));
    // Kernels before 4.12 do not have the second.
    let lazily_freed = kib_of(&text, "LazyFree").unwrap_or_default();
    Ok(Resident { bytes: kib("Rss")? * 1024, lazily_freed: lazily_freed * 1024 })
}

/// Resident memory in bytes as the system counts it while it runs: at once, and not to the page.
///
/// # Errors
///
/// When the system does not say.
pub fn resident_about(process: u32) -> Result<u64> {
    let text = read(process, "statm")?;
    let pages = pages_of(&text).with_context(|| format!("statm reads `{text}`"))?;
    Ok(pages * page_bytes())
}

/// The most resident memory in bytes that the process ever had.
///
/// # Errors
///
/// When the system does not say.
pub fn peak(process: u32) -> Result<u64> {
    let text = read(process, "status")?;
    Ok(kib_of(&text, "VmHWM").context("no VmHWM in status")? * 1024)
}

/// The time that processors have worked for the process, its own code and the system's. Of threads
/// that have ended it may have nothing.
///
/// # Errors
///
/// When the system does not say.
pub fn processor_time(process: u32) -> Result<Duration> {
    // To the nanosecond, where the system is built with it.
    if let Some(time) = scheduled(process).filter(|time| !time.is_zero()) {
        return Ok(time);
    }
    let text = read(process, "stat")?;
    let ticks = ticks_of(&text).with_context(|| format!("stat reads `{text}`"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / ticks_per_second()))
}

/// What the scheduler says of all threads together.
fn scheduled(process: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanos = threads.map(|thread| {
        let path = thread.ok()?.path().join("schedstat");
        nanos_of(&fs::read_to_string(path).ok()?)
    });
    nanos.sum::<Option<u64>>().map(Duration::from_nanos)
}

fn read(process: u32, name: &str) -> Result<String> {
    let path = format!("/proc/{process}/{name}");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// The number behind `name:`, in KiB.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The second of the numbers in `statm`.
fn pages_of(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// The first of the numbers in `schedstat`.
fn nanos_of(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// User and system time, the 14th and 15th field of `stat`. The second is a name, which may have
/// anything in it.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(unix)]
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(not(unix))]
fn page_bytes() -> u64 {
    4096
}

#[cfg(unix)]
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(not(unix))]
fn ticks_per_second() -> f64 {
    100.0
}

/// Lets this process have as many open files as it may without asking anybody.
pub fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Some systems name a limit that they do not grant; then it stays as it was.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_system() {
        let rollup =
            "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:               12345 kB\nLazyFree:       8 kB\n";
        assert_eq!((kib_of(rollup, "Rss"), kib_of(rollup, "LazyFree")), (Some(12345), Some(8)));
        assert_eq!((kib_of(rollup, "Pss"), kib_of("Rss: much kB", "Rss")), (None, None));
        assert_eq!(pages_of("1000 250 100 20 0 300 0\n"), Some(250));
        assert_eq!(pages_of("1000"), None);
        assert_eq!((nanos_of("82372 10 1\n"), nanos_of("")), (Some(82372), None));
    }

    #[test]
    fn names_of_processes_may_have_anything_in_them() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 70 30 0 0 20 0 3 0 999 1 2";
        assert_eq!(ticks_of(stat), Some(100));
        assert_eq!(ticks_of("42 (a) S 1 2"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        let own = std::process::id();
        let filled = vec![1_u8; 64 << 20];
        let (exact, about) = (resident(own).unwrap().bytes, resident_about(own).unwrap());
        assert!(exact > 64 << 20 && about > 60 << 20, "{exact}, {about}");
        assert!(peak(own).unwrap() > 60 << 20 && filled[1000] == 1);
        let worked = processor_time(own).unwrap();
        let mut sum = 0;
        while processor_time(own).unwrap() < worked + Duration::from_millis(30) {
            sum += filled.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        }
        assert!(sum > 0);
    }
}
