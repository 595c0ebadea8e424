//! The facts without which a number means nothing: the machine, the system, the compiler, the
//! commit.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine and the build.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Host {
    /// Processor model.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Frequency governor, where it can be read.
    pub governor: Option<String>,
    /// Operating system and kernel.
    pub kernel: String,
    /// The compiler.
    pub rustc: String,
    /// The commit, with `-dirty` if the tree differs from it.
    pub commit: String,
    /// When, in UTC.
    pub date: String,
    /// Load average over one minute before the run.
    pub load: Option<f64>,
}

/// Looks around.
#[must_use]
pub fn look() -> Host {
    let output = |program: &str, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let dirty = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    let dirty = dirty.is_some_and(|changes| !changes.is_empty());
    Host {
        cpu: processor().unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: field("/proc/meminfo", "MemTotal")
            .and_then(|total| total.strip_suffix("kB")?.trim().parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024),
        governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok()
            .map(|governor| governor.trim().into()),
        kernel: output("uname", &["-srm"]).unwrap_or_else(|| std::env::consts::OS.into()),
        rustc: output("rustc", &["--version"]).unwrap_or_else(|| "unknown".into()),
        commit: if dirty { commit + "-dirty" } else { commit },
        date: output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
        load: fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|load| load.split_whitespace().next()?.parse().ok()),
    }
}

/// Returns the processor's name, and its model in numbers where the system has them: a virtual
/// machine may hide it in the name.
fn processor() -> Option<String> {
    let of = |name| field("/proc/cpuinfo", name);
    let name = of("model name")?;
    let numbers = || {
        let (family, model, stepping) = (of("cpu family")?, of("model")?, of("stepping")?);
        Some(format!(" (family {family}, model {model}, stepping {stepping})"))
    };
    let numbers = numbers().unwrap_or_default();
    Some(name + &numbers)
}

/// Returns the value of the first line `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })?;
    Some(value)
}
