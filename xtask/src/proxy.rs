//! `cargo xtask proxy`: the TCP proxy with each strategy between real servers and a thousand clients each, and a table of it.

mod load;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::steps::Outcome;
use crate::traces::servers;
use crate::{packages, shell, strategies};
use load::{Load, PROGRAMS, Run, Site};

/// What the proxy can have its buffers from, after no proxy at all: the heap, and each strategy.
fn pools() -> Result<Vec<&'static str>> {
    let strategies = strategies::all(&packages::all()?)?;
    // For as long as the program.
    let names = strategies.into_iter().map(|strategy| &*strategy.name.leak());
    Ok(["heap"].into_iter().chain(names).collect())
}

/// Options of `proxy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of turns of each pool.
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: usize,
    /// The seconds that wrk runs, each time.
    #[arg(long, default_value_t = 2, value_name = "S")]
    seconds: u64,
    /// The requests of redis-benchmark, each time and of each kind.
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    requests: u64,
    /// The number of clients at once.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    clients: usize,
    /// Run each pool once and shortly, to check that nothing is lost, as CI does.
    #[arg(long)]
    test: bool,
    /// The file that the table is written to.
    #[arg(long, default_value = "target/proxy.md", value_name = "FILE")]
    out: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        servers::check_installed(PROGRAMS.iter())?;
        let load = if self.test {
            Load { clients: self.clients, requests: 5000, seconds: 1 }
        } else {
            Load { clients: self.clients, requests: self.requests, seconds: self.seconds }
        };
        let rounds = if self.test { 1 } else { self.rounds };
        ensure!(rounds > 0 && load.seconds > 0 && load.clients > 0, "nothing to do");
        // A round that is only checked is not worth the wait for an optimised build.
        let (profile, folder) = if self.test { ("dev", "debug") } else { ("release", "release") };
        let args = ["build", "--profile", profile, "--package", "bufworks-examples", "--bin", "proxy"];
        shell::run(shell::cargo().args(args))?;
        let site = Site::start(folder)?;
        let pools = pools()?;
        let mut runs: Vec<Run> = Vec::new();
        for round in 0..rounds {
            if !self.test {
                runs.push(site.measure(None, &load)?);
            }
            for at in 0..pools.len() {
                // Whoever is first finds the servers as the last round left them: not the same one each time.
                let pool = pools[(at + round) % pools.len()];
                let run = site.measure(Some(pool), &load).with_context(|| format!("with {pool}"))?;
                eprintln!("proxy: round {} of {rounds}, {}", round + 1, run.told());
                run.check()?;
                runs.push(run);
            }
        }
        if self.test {
            println!(
                "proxy: {} clients each with {}; no error, no buffer held idle",
                load.clients,
                pools.join(", ")
            );
            return Ok(());
        }
        let page = table::page(&runs, &load, rounds, &table::machine()?)?;
        print!("{page}");
        fs::write(&self.out, page).with_context(|| format!("cannot write {}", self.out.display()))
    }
}

/// The short form, where the programs are installed.
pub(crate) fn check() -> Result<Outcome> {
    if let Err(error) = servers::check_installed(PROGRAMS.iter()) {
        return Outcome::skipped(format!("proxy: {error}"));
    }
    crate::run(["xtask", "proxy", "--test"])?;
    Ok(Outcome::Passed)
}
