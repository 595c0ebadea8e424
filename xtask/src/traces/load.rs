//! The two loads: redis under redis-benchmark, and nginx under wrk, each through the recording proxy.
//!
//! The servers and the clients are scripts in `examples/loads`, which can be run by hand as well.

use core::time::Duration;
use std::path::Path;

use anyhow::{Context, Result};
use xshell::Shell;

use super::servers::{Program, Running, free_port};
use crate::shell::command;

pub(crate) const REDIS_SERVER: Program = Program { name: "redis-server", version: ("--version", 3) };
pub(crate) const REDIS_BENCHMARK: Program = Program { name: "redis-benchmark", version: ("--version", 2) };
pub(crate) const NGINX_SERVER: Program = Program { name: "nginx", version: ("-v", 3) };
pub(crate) const WRK: Program = Program { name: "wrk", version: ("-v", 2) };

/// Where the scripts are.
const SCRIPTS: &str = "examples/loads";

/// The longest that a load may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A trace that can be made, by the scripts `NAME-serve.sh PORT FOLDER` and `NAME-load.sh PORT`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) programs: &'static [Program],
}

/// redis.
pub(super) const REDIS: Source = Source {
    name: "redis",
    about: "requests of some 30 bytes to 150 kB, answers likewise, lists, pipelines",
    programs: &[REDIS_SERVER, REDIS_BENCHMARK],
};

/// nginx.
pub(super) const NGINX: Source = Source {
    name: "nginx",
    about: "short requests, and files of 200 B to 1 MiB, the small ones more often; clients pause \
            for up to 100 ms between requests",
    programs: &[NGINX_SERVER, WRK],
};

/// What the proxy is told beside where to listen: traces are to have what pools differ in, buffers
/// of many sizes that wait for each other and come back from other threads.
const PROXY: [&str; 2] = ["--queue", "8"];

impl Source {
    /// Records it into `path`.
    pub(super) fn record(&self, path: &Path) -> Result<()> {
        let versions = self.programs.iter().map(Program::version).collect::<Result<Vec<_>>>()?;
        // Dropped last, after the programs that have files in it.
        let folder = Shell::new()?.create_temp_dir()?;
        let (port, _server) = serve(self.name, folder.path())?;
        let port = port.to_string();

        let (name, made_by) = (self.name, format!("TCP proxy, {}", versions.join(", ")));
        let mut command = command!(
            "cargo run --quiet --release --package bufworks-examples --bin proxy --
             --to 127.0.0.1:{port} {PROXY...}
             --record-name {name} --record-made-by {made_by} --record {path}"
        );
        let mut proxy = Running::start(&mut command, true)?;
        let line = proxy.first_line()?;
        let proxy_port = line.trim().rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let proxy_port = proxy_port.with_context(|| format!("the proxy says `{}`", line.trim()))?;

        let load = format!("{SCRIPTS}/{}-load.sh", self.name);
        let proxy_port = proxy_port.to_string();
        Running::start(&mut command!("sh {load} {proxy_port}"), false)?.finish(LIMIT)?;
        proxy.terminate()
    }
}

/// Starts the server `name` with its files in `folder`, and returns its port.
pub(crate) fn serve(name: &str, folder: &Path) -> Result<(u16, Running)> {
    let port = free_port()?;
    let number = port.to_string();
    let mut running = Running::start(&mut command!("sh {SCRIPTS}/{name}-serve.sh {number} {folder}"), false)?;
    running.wait_for_port(port)?;
    Ok((port, running))
}
