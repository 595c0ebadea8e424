//! What is in a recorded file: sizes, lifetimes, threads. Of the recording of a heap: the places
//! that requested most.
//!
//! ```text
//! cargo run -p buftrace --example show -- app.buftrace
//! ```
//!
//! Without a file it records two buffers of its own and shows those.

use core::error::Error;

use bufcore::{BufferPool, HeapPool};
use buftrace::{Profile, Recorder, Recording, Trace};

fn main() -> Result<(), Box<dyn Error>> {
    let trace = match std::env::args_os().nth(1) {
        Some(path) => match Profile::load(&path) {
            Ok(profile) => return show(&profile),
            Err(_) => Trace::load(path)?,
        },
        None => recorded()?,
    };
    println!("{}: {} events\n", trace.meta().name, trace.events().len());
    println!("{}", trace.summary());
    Ok(())
}

/// The places that requested most, with addresses for `addr2line`.
fn show(profile: &Profile) -> Result<(), Box<dyn Error>> {
    println!("{}: {} objects, {:?}\n", profile.info().program, profile.objects().len(), profile.ending());
    for site in profile.sites().iter().take(10) {
        let (count, error, bytes) = (site.count, site.count_error, site.bytes);
        println!("{count:.0} ± {error:.0} requests, {bytes:.0} bytes, {:?}", site.lifetimes);
        for address in profile.stack(site.stack) {
            match profile.module_of(site.stack, *address) {
                Some(module) => println!("  {} {:#x}", module.path, module.address_in_file(address - 1)),
                None => println!("  {address:#x}"),
            }
        }
    }
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
