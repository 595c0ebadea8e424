//! What is in a recorded file: sizes, lifetimes, threads.
//!
//! ```text
//! cargo run -p buftrace --example show -- app.buftrace
//! ```
//!
//! Without a file it records two buffers of its own and shows those.

use core::error::Error;

use bufcore::{BufferPool, HeapPool};
use buftrace::{Recorder, Recording, Trace};

fn main() -> Result<(), Box<dyn Error>> {
    let trace = match std::env::args_os().nth(1) {
        Some(path) => Trace::load(path)?,
        None => recorded()?,
    };
    println!("{}: {} events\n", trace.meta().name, trace.events().len());
    println!("{}", trace.summary());
    Ok(())
}

/// Two buffers, by way of a file.
fn recorded() -> Result<Trace, Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("show-{}.buftrace", std::process::id()));
    let recording = Recording::new();
    let mut pool = Recorder::new(HeapPool::new(), &recording);
    drop((pool.acquire(1500)?, pool.acquire(64)?));
    recording.save(&path)?;
    let trace = Trace::load(&path)?;
    std::fs::remove_file(path)?;
    Ok(trace)
}
