//! A TCP proxy whose buffers come from the pool of your choice, and which can record what it asks of it.
//!
//! ```text
//! cargo run --release -p bufworks-examples --bin proxy -- --listen 127.0.0.1:7000 --to 127.0.0.1:6379 --record redis.buftrace
//! ```

extern crate alloc;

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::time::Duration;
use std::fs;
use std::io::{Write, stdout};
use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result};
use bufcore::{BufferPool, ConfigError, HeapPool};
use bufslot::SlotPool;
use buftrace::{Meta, Recorder, Recording};
use bufworks_examples::proxy::{Report, Settings, Stop, serve};
use clap::{Parser, ValueEnum};

/// The shortest events take more than this many bytes of a file on average.
const MIN_EVENT_BYTES: u64 = 3;

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
    /// Where buffers come from
    #[arg(long, value_enum, default_value_t = Pool::Slot)]
    pool: Pool,
    /// Memory of each slot pool, of which each direction of a connection has one
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024)]
    pool_bytes: usize,
    /// The smallest buffer to read into
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    min_buffer: usize,
    /// The largest
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024)]
    max_buffer: usize,
    /// Buffers that may wait for a writer, in each direction of a connection
    #[arg(long, value_name = "BUFFERS", default_value_t = 8)]
    queue: usize,
    /// End connections after so long without a byte
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle_seconds: u64,
    /// Stop after so many connections
    #[arg(long, value_name = "N")]
    connections: Option<u64>,
    /// Stop after so long
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Record what is asked of the pools into this file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Stop recording before the file gets longer
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024 - 1)]
    record_bytes: usize,
    /// The name that the trace gets
    #[arg(long, value_name = "NAME", default_value = "proxy")]
    record_name: String,
    /// How the traffic was made, to be kept in the trace
    #[arg(long, value_name = "TEXT", default_value = "TCP proxy")]
    record_made_by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pool {
    Slot,
    Heap,
}

/// What does not depend on the pool.
struct Proxy {
    listener: TcpListener,
    settings: Settings,
    stop: Arc<Stop>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let listener =
        TcpListener::bind(&args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    let stop = Arc::new(Stop::new(&listener)?);
    let settings = Settings {
        min_buffer_bytes: args.min_buffer,
        max_buffer_bytes: args.max_buffer,
        queue_buffers: args.queue,
        idle_timeout: Duration::from_secs(args.idle_seconds),
        max_connections: args.connections,
        ..Settings::new(resolve(&args.to)?)
    };
    let on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || on_signal.stop()).context("cannot handle signals")?;
    if let Some(seconds) = args.seconds {
        let on_time = Arc::clone(&stop);
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(seconds));
            on_time.stop();
        });
    }
    println!("listening on {}", listener.local_addr()?);
    stdout().flush()?;

    let proxy = Proxy { listener, settings, stop };
    // A slot for each buffer in the queue, at the writer, and at the reader, one of them while it moves to another.
    let slots = args.queue + 3;
    let report = match args.pool {
        Pool::Slot => proxy.run(&args, || SlotPool::new(args.pool_bytes, slots))?,
        Pool::Heap => proxy.run(&args, || Ok(HeapPool::new()))?,
    };
    println!("{report}");
    Ok(())
}

impl Proxy {
    /// Runs to its end, recorded or not.
    fn run<P: BufferPool>(
        &self,
        args: &Args,
        make: impl Fn() -> Result<P, ConfigError> + Sync,
    ) -> Result<Report> {
        let Some(path) = &args.record else {
            return Ok(serve(&self.listener, &self.settings, &self.stop, make)?);
        };
        let recording = Recording::with_max_events(args.record_bytes as u64 / MIN_EVENT_BYTES);
        let make_recorded = || Ok(Recorder::new(make()?, &recording));
        let report = serve(&self.listener, &self.settings, &self.stop, make_recorded)?;
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
    let trace = recording.finish(meta).fit(args.record_bytes);
    fs::write(path, trace.encode()).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} events in {}\n{}", trace.events().len(), path.display(), trace.summary());
    Ok(())
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let mut found = address.to_socket_addrs().with_context(|| format!("cannot resolve {address}"))?;
    found.next().with_context(|| format!("{address} has no address"))
}
