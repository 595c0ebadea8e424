//! `cargo xtask traces`: makes the recorded traces of `benches/traces` again, from real servers.

pub(crate) mod load;
pub(crate) mod servers;

use core::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use buftrace::Trace;

use crate::shell::{self, command};
use load::{NGINX, REDIS, Source};

/// Where the traces are.
const FOLDER: &str = "benches/traces";

/// No trace gets this long.
const LIMIT_BYTES: u64 = 1 << 20;

/// Options of `traces`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Make only the trace of this name: redis or nginx
    #[arg(long, value_name = "NAME", value_parser = [REDIS.name, NGINX.name])]
    only: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let wanted = |source: &&Source| self.only.as_ref().is_none_or(|only| only == source.name);
        let sources: Vec<_> = [REDIS, NGINX].into_iter().filter(|source| wanted(&source)).collect();
        servers::check_installed(sources.iter().flat_map(|source| source.programs))?;
        shell::run(&mut command!("cargo build --release --package bufworks-examples --bin proxy"))?;
        fs::create_dir_all(FOLDER).with_context(|| format!("cannot make {FOLDER}"))?;
        for source in &sources {
            let path = Path::new(FOLDER).join(format!("{}.buftrace", source.name));
            source.record(&path).with_context(|| format!("cannot record {}", source.name))?;
            let bytes = fs::metadata(&path)?.len();
            ensure!(bytes < LIMIT_BYTES, "{} has {bytes} bytes, over the limit", path.display());
        }
        write_readme()
    }
}

fn read(path: &Path) -> Result<Trace> {
    let file = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Trace::decode(&file).with_context(|| format!("cannot decode {}", path.display()))
}

fn write_readme() -> Result<()> {
    let mut page = "# Recorded traces\n\n\
        These traces hold what a TCP proxy (`examples/src/bin/proxy.rs`) asked of its buffer pools while real programs talked through it: \
        sizes, threads and times, and no bytes of the traffic. `cargo xtask traces` records them again, with the servers and loads of the \
        scripts in `examples/loads`. `bufadvise show FILE` prints a summary of one. The format is described in \
        `crates/buftrace/src/format.rs`.\n\n\
        | trace | made by | load | acquires | sizes | most in use at once | released on another thread |\n\
        | --- | --- | --- | ---: | ---: | --- | ---: |\n"
        .to_owned();
    for source in [REDIS, NGINX] {
        let path = Path::new(FOLDER).join(format!("{}.buftrace", source.name));
        if !path.exists() {
            continue;
        }
        let summary = read(&path)?.summary();
        writeln!(
            page,
            "| `{}.buftrace` | {} ({}) | {} | {} | {} | {} buffers, {} bytes | {:.1} % |",
            source.name,
            summary.meta.made_by,
            summary.meta.date,
            source.about,
            summary.acquires,
            summary.distinct_sizes,
            summary.max_live,
            summary.max_live_bytes,
            100.0 * summary.cross_thread_releases as f64 / summary.releases.max(1) as f64,
        )?;
    }
    let path = Path::new(FOLDER).join("README.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
