//! A TCP proxy whose buffers come from the pool of your choice, and which can record what it asks of it.
//!
//! ```text
//! cargo run --release -p bufworks-examples --bin proxy -- --listen 127.0.0.1:7000 --to 127.0.0.1:6379 --record redis.buftrace
//! ```

extern crate alloc;

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::num::NonZero;
use core::time::Duration;
use std::io::{Write, stdin, stdout};
use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use bufcore::{BufferPool, ConfigError};
use buftrace::{Meta, Recorder, Recording};
use bufworks_examples::limits;
use bufworks_examples::proxy::{Control, Direction, Pools, Report, Settings, serve, serve_rings};
use clap::Parser;

/// The mirrored rings, among the strategies that have pools.
const MIRROR: &str = "mirror";

/// Passes TCP connections on, with its buffers from a pool.
#[derive(Debug, Parser)]
#[command(name = "proxy")]
struct Args {
    /// Where to accept connections; port 0 for any
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// Where to pass them on to
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// Where buffers come from: a strategy, as in slot or ring:buffers=64. The workers share its
    /// pools if threads can. With mirror there are no buffers, but a mirrored ring for each
    /// direction of each connection
    #[arg(long, value_name = "STRATEGY", default_value = "slot")]
    pool: String,
    /// Memory of the pools: of each worker, or of all if they share them. Half of it is for each
    /// direction. Strategies without a limit have none here
    #[arg(long, value_name = "BYTES", default_value_t = 4 * 1024 * 1024)]
    pool_bytes: usize,
    /// With mirrored rings: the size of each, of which each direction of a connection has one
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    ring_bytes: usize,
    /// Threads; as many as there are processors unless set
    #[arg(long, value_name = "N")]
    workers: Option<NonZero<usize>>,
    /// The smallest buffer to read into
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    min_buffer: usize,
    /// The largest
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    max_buffer: usize,
    /// Let other threads write, with this number of buffers waiting for them in each direction of a connection; 0: the thread that reads also writes
    #[arg(long, value_name = "BUFFERS", default_value_t = 0)]
    queue: usize,
    /// End connections after so long without a byte
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle_seconds: u64,
    /// Stop after this number of connections
    #[arg(long, value_name = "N")]
    connections: Option<u64>,
    /// Stop after so long
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// For every line on the standard input, print what is open and in use
    #[arg(long)]
    status: bool,
    /// Record what is asked of the pools into this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Stop recording after this number of events, of five to eight bytes each
    #[arg(long, value_name = "EVENTS", default_value_t = 128 * 1024)]
    record_events: u64,
    /// The name that the trace gets
    #[arg(long, value_name = "NAME", default_value = "proxy")]
    record_name: String,
    /// How the traffic was made, to be kept in the trace
    #[arg(long, value_name = "TEXT", default_value = "TCP proxy")]
    record_made_by: String,
}

/// What does not depend on the pool.
struct Proxy {
    listener: TcpListener,
    settings: Settings,
    control: Arc<Control>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let pools = pools(&args)?;
    ensure!(args.record.is_none() || pools.is_some(), "rings have no buffers that could be recorded");
    // Two for each connection. A limit that cannot be raised is met when it is needed.
    let _ = limits::raise_open_files();
    let listener =
        TcpListener::bind(&args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    limits::raise_backlog(&listener)?;
    let usual = Settings::new(resolve(&args.to)?);
    let settings = Settings {
        workers: args.workers.unwrap_or(usual.workers),
        shares_pool: pools.as_ref().is_some_and(Pools::are_shared),
        queue_buffers: args.queue,
        min_buffer_bytes: args.min_buffer,
        max_buffer_bytes: args.max_buffer,
        idle_timeout: Duration::from_secs(args.idle_seconds),
        max_connections: args.connections,
        ..usual
    };
    let control = Arc::new(Control::new());
    let on_signal = Arc::clone(&control);
    ctrlc::set_handler(move || on_signal.stop()).context("cannot handle signals")?;
    if let Some(seconds) = args.seconds {
        let on_time = Arc::clone(&control);
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(seconds));
            on_time.stop();
        });
    }
    if args.status {
        let asked = Arc::clone(&control);
        thread::spawn(move || {
            stdin().lines().map_while(Result::ok).for_each(|_| println!("{}", asked.status()))
        });
    }
    println!("listening on {}", listener.local_addr()?);
    stdout().flush()?;

    let proxy = Proxy { listener, settings, control };
    let report = match &pools {
        Some(pools) => proxy.run(&args, |direction| pools.make(direction))?,
        None => serve_rings(&proxy.listener, &proxy.settings, &proxy.control, args.ring_bytes)?,
    };
    println!("{report}");
    Ok(())
}

/// The pools that are asked for; none with mirrored rings.
fn pools(args: &Args) -> Result<Option<Pools>> {
    if args.pool == MIRROR {
        return Ok(None);
    }
    let builder = Pools::parse(&args.pool, args.pool_bytes / 2).with_context(|| {
        format!("no `--pool` of the proxy; `{MIRROR}` is one besides the strategies below")
    })?;
    Ok(Some(Pools::new(builder)?))
}

impl Proxy {
    /// Runs to its end, recorded or not.
    fn run<P: BufferPool + 'static>(
        &self,
        args: &Args,
        make: impl Fn(Direction) -> Result<P, ConfigError> + Sync,
    ) -> Result<Report> {
        let Some(path) = &args.record else {
            return Ok(serve(&self.listener, &self.settings, &self.control, make)?);
        };
        let recording = Recording::with_max_events(args.record_events);
        let make_recorded = |direction| Ok(Recorder::new(make(direction)?, &recording));
        let report = serve(&self.listener, &self.settings, &self.control, make_recorded)?;
        write_trace(path, &recording, args)?;
        Ok(report)
    }
}

fn write_trace(path: &Path, recording: &Recording, args: &Args) -> Result<()> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let meta = Meta {
        made_by: args.record_made_by.clone(),
        date: now.split('T').next().unwrap_or_default().to_owned(),
        ..Meta::new(&args.record_name)
    };
    let trace = recording.finish(meta);
    trace.save(path).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} events in {}\n{}", trace.events().len(), path.display(), trace.summary());
    Ok(())
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let mut found = address.to_socket_addrs().with_context(|| format!("cannot resolve {address}"))?;
    found.next().with_context(|| format!("{address} has no address"))
}
