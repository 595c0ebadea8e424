//! A server that passes every frame on to all other clients. A frame is four bytes of length, most significant first, and as many bytes as
//! they say.
//!
//! ```text
//! cargo run --release -p bufworks-examples --bin relay -- --listen 127.0.0.1:7001
//! nc 127.0.0.1 7001 | od -c &
//! printf '\0\0\0\5hello' | nc -q 1 127.0.0.1 7001
//! ```

use anyhow::{Context, Result};
use bufshard::ShardPool;
use bufworks_examples::limits;
use bufworks_examples::relay::{Settings, serve};
use clap::Parser;
use tokio_util::sync::CancellationToken;

/// Passes every frame on to all other clients.
#[derive(Debug, Parser)]
#[command(name = "relay")]
struct Args {
    /// Where to accept connections; port 0 for any
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// The longest frame
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_frame: usize,
    /// Memory for all frames; clients wait for it
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    budget: usize,
}

fn main() -> Result<()> {
    let args = Args::parse();
    // One for each client. A limit that cannot be raised is met when it is needed.
    let _ = limits::raise_open_files();
    let pool = ShardPool::builder().max_bytes(args.budget).build()?;
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    ctrlc::set_handler(move || on_signal.cancel()).context("cannot handle signals")?;
    let settings = Settings { max_frame: args.max_frame, ..Settings::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(&args.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", args.listen))?;
        println!("listening on {}", listener.local_addr()?);
        Ok::<_, anyhow::Error>(serve(listener, pool.clone(), settings, stop).await?)
    })?;
    println!("{} clients, {} of them failed; {} frames", report.clients, report.failed, report.frames);
    println!("{} buffers acquired, at most {} out at once", pool.stats().acquired, pool.stats().high_water);
    Ok(())
}
