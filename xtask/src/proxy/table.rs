//! The page that the runs make.

use core::fmt::Write as _;
use std::fs;

use anyhow::Result;

use super::load::{FILE_BYTES, Load, PROGRAMS, Run, Seen, VALUE_BYTES};
use crate::shell::{self, command};

const ABOUT: &str = "\
Every client is a connection through the proxy (`examples/src/bin/proxy.rs`), which has as many workers as there are processors. Servers, \
clients and proxy share the machine. So the numbers compare the rows with each other, and say little by themselves. The pools take turns. \
Each turn has fresh proxies and the same servers. Numbers are medians over the rounds, with the lowest and the highest. Where the ranges \
of two rows overlap, these rounds show no difference.

- *Requests per second* are those of `redis-benchmark` (SET and GET, no pipelining) and of `wrk`. No request failed, and the proxy lost no \
connection: a run in which one does is an error, and makes no table.
- *Idle* means that all clients are connected, and that each has asked redis once and been answered. The pools say how many buffers are in \
use. For `mirror` these are rings with bytes in them. Its rings stay with their connections, and make up its memory.
- *Resident* is the memory of the process (`VmRSS`). *Peak* is the most that the system ever counted for it (`VmHWM`). A page of a mirrored ring \
counts once for each of its two addresses that was used.

| row | pools |
| --- | --- |
| `none` | there is no proxy |
| `heap` | every buffer is allocated |
| `slot`, `ring` | one pool for each worker and direction, 4 MiB for a worker together |
| `bump` | one pool for each direction |
| `shard` | one pool for each direction, with a budget of 4 MiB for both |
| `mirror` | a ring of 64 KiB for each direction of a connection |
";

/// All of it. `machine` is what [`machine`] said.
pub(super) fn page(runs: &[Run], load: &Load, rounds: usize, machine: &str) -> Result<String> {
    let mut page =
        format!("# A thousand clients through the proxy\n\nWritten by `cargo xtask proxy`.\n\n{machine}\n");
    writeln!(page, "- clients: {}, in {rounds} rounds", load.clients)?;
    writeln!(
        page,
        "- redis-benchmark: {} requests of each kind, values of {VALUE_BYTES} bytes",
        load.requests
    )?;
    writeln!(page, "- wrk: {} s, a file of {FILE_BYTES} bytes\n\n{ABOUT}", load.seconds)?;
    writeln!(
        page,
        "| pool | redis SET/s | redis GET/s | nginx requests/s | idle: buffers in use | idle: resident | peak, redis | peak, nginx |\n\
         | --- | --- | --- | --- | ---: | ---: | ---: | ---: |"
    )?;
    // In the first round they have their turns in order.
    let mut pools = Vec::new();
    for run in runs {
        if !pools.contains(&run.pool) {
            pools.push(run.pool);
        }
    }
    for pool in pools {
        let turns: Vec<_> = runs.iter().filter(|run| run.pool == pool).collect();
        let rate = |of: fn(&Run) -> f64| spread(turns.iter().map(|run| of(run)));
        write!(page, "| {} ", pool.unwrap_or("none"))?;
        write!(page, "| {} | {} | {} |", rate(|run| run.set), rate(|run| run.get), rate(|run| run.http))?;
        let seen: Vec<Seen> = turns.iter().filter_map(|run| run.proxy).collect();
        if seen.is_empty() {
            writeln!(page, " | | | |")?;
            continue;
        }
        let most = seen.iter().map(|seen| seen.idle_buffers).max().unwrap_or_default();
        let kib = |of: fn(&Seen) -> u64| median(seen.iter().map(|seen| of(seen) as f64)) / 1024.0;
        let memory =
            [kib(|seen| seen.idle_kib), kib(|seen| seen.redis_peak_kib), kib(|seen| seen.http_peak_kib)];
        writeln!(page, " {most} | {:.1} MiB | {:.1} MiB | {:.1} MiB |", memory[0], memory[1], memory[2])?;
    }
    Ok(page)
}

/// What a number means nothing without: the processor, the system, and the versions of the servers, which have to be installed.
pub(super) fn machine() -> Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cpu = cpu.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!("- processor: {cpu}, {cores} cores\n");
    for (name, mut command) in [
        ("kernel", command!("uname -srm")),
        ("compiler", command!("rustc --version")),
        ("commit", command!("git rev-parse --short=12 HEAD")),
        ("date", command!("date -u '+%Y-%m-%d %H:%M UTC'")),
    ] {
        writeln!(text, "- {name}: {}", shell::output(&mut command)?.trim())?;
    }
    let versions = PROGRAMS.iter().map(|program| program.version()).collect::<Result<Vec<_>>>()?;
    writeln!(text, "- programs: {}", versions.join("; "))?;
    Ok(text.trim_end().to_owned())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The median, the lowest, and the highest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let lowest = values.clone().fold(f64::INFINITY, f64::min);
    let highest = values.clone().fold(0.0, f64::max);
    format!("{:.0} ({lowest:.0} – {highest:.0})", median(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOLS: [&str; 3] = ["heap", "slot", "mirror"];

    #[test]
    fn a_row_for_each_pool() {
        let run = |pool, set| Run {
            pool,
            set,
            get: 2.0,
            http: 3.0,
            http_errors: 0,
            proxy: pool.map(|_| Seen::default()),
        };
        let runs: Vec<_> = [None]
            .into_iter()
            .chain(POOLS.map(Some))
            .flat_map(|pool| [1.0, 9.0, 4.0].map(|set| run(pool, set)))
            .collect();
        let load = Load { clients: 10, requests: 1, seconds: 1 };
        let page = page(&runs, &load, 3, "- processor: some").unwrap();
        assert!(page.contains("- processor: some\n- clients: 10, in 3 rounds\n"), "{page}");
        for pool in POOLS {
            assert!(
                page.contains(&format!("| {pool} | 4 (1 – 9) | 2 (2 – 2) | 3 (3 – 3) | 0 | 0.0 MiB |")),
                "{page}"
            );
        }
    }
}
