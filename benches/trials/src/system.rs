//! What the system says about a process, and what it allows this one.

use core::time::Duration;

use anyhow::{Context, Result};
use procfs::process::Process;
use serde::{Deserialize, Serialize};

fn process(id: u32) -> Result<Process> {
    Process::new(id as i32).with_context(|| format!("nothing is known of process {id}"))
}

/// Resident memory in bytes as the page tables have it. Slow for a large process.
///
/// # Errors
///
/// When the system does not say.
pub fn resident(id: u32) -> Result<u64> {
    let rollup = process(id)?.smaps_rollup()?;
    let map = rollup.memory_map_rollup.iter().next().context("an empty smaps_rollup")?;
    map.extension.map.get("Rss").copied().context("no Rss in smaps_rollup")
}

/// Resident memory in bytes as the system counts it while it runs: at once, and not to the page.
///
/// # Errors
///
/// When the system does not say.
pub fn resident_about(id: u32) -> Result<u64> {
    Ok(process(id)?.statm()?.resident * procfs::page_size())
}

/// The most resident memory in bytes that the process ever had.
///
/// # Errors
///
/// When the system does not say.
pub fn peak(id: u32) -> Result<u64> {
    Ok(process(id)?.status()?.vmhwm.context("no VmHWM in status")? * 1024)
}

/// The time that processors have worked for the process, its own code and the system's. Of threads
/// that have ended it may have nothing.
///
/// # Errors
///
/// When the system does not say.
pub fn processor_time(id: u32) -> Result<Duration> {
    let process = process(id)?;
    // To the nanosecond, where the system is built with it.
    let nanos = process.tasks()?.map(|task| Ok(task?.schedstat()?.sum_exec_runtime));
    let nanos: u64 = nanos.sum::<Result<u64>>().unwrap_or_default();
    if nanos > 0 {
        return Ok(Duration::from_nanos(nanos));
    }
    let stat = process.stat()?;
    let ticks = (stat.utime + stat.stime) as f64;
    Ok(Duration::from_secs_f64(ticks / procfs::ticks_per_second() as f64))
}

/// What a process has used since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds of processors in its own code, in steps of 10 ms.
    pub user: f64,
    /// Seconds of processors in the kernel, in the same steps.
    pub kernel: f64,
    /// Page faults that read nothing from a disk.
    pub faults: u64,
}

impl Usage {
    /// Seconds of processors.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.user + self.kernel
    }

    /// What was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user - before.user,
            kernel: self.kernel - before.kernel,
            faults: self.faults - before.faults,
        }
    }
}

/// What the process has used, with threads that have ended.
///
/// # Errors
///
/// When the system does not say.
pub fn usage(id: u32) -> Result<Usage> {
    let stat = process(id)?.stat()?;
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    Ok(Usage { user: seconds(stat.utime), kernel: seconds(stat.stime), faults: stat.minflt })
}

/// Lets this process have as many open files as it may without asking anybody.
pub fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Some systems name a limit that they do not grant; then it stays as it was.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let own = std::process::id();
        let began = usage(own).unwrap();
        let filled = vec![1_u8; 64 << 20];
        let (exact, about) = (resident(own).unwrap(), resident_about(own).unwrap());
        assert!(exact > 64 << 20 && about > 60 << 20, "{exact}, {about}");
        assert!(peak(own).unwrap() > 60 << 20 && filled[1000] == 1);
        let worked = processor_time(own).unwrap();
        let mut sum = 0;
        while processor_time(own).unwrap() < worked + Duration::from_millis(30) {
            sum += filled.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        }
        assert!(sum > 0);
        let used = usage(own).unwrap().since(&began);
        assert!(used.seconds() >= 0.01 && used.faults > 0, "{used:?}");
    }
}
