//! How a cell is run: its pools, its threads, and what the system says of them.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bufcore::{BufferPool, HugePages, MapOptions, NoFallback};
use bufmirror::MirrorRing;
use bufuring::{Arena, Driver, Mode};
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Measured};
use crate::engine::{Engine, Memory};
use crate::file::Tensors;
use crate::foreign;
use crate::work::{self, Did, Job};

const PAGE: usize = 4096;

/// Options of a cell's own process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// The cell.
    pub cell: Cell,
    /// The file.
    pub file: std::path::PathBuf,
    /// Its bytes.
    pub file_bytes: u64,
    /// How long it reads, in milliseconds.
    pub millis: u64,
}

impl Options {
    /// Runs the cell, and prints what it measured.
    ///
    /// # Errors
    ///
    /// When something cannot be read, or has wrong bytes.
    pub fn print(&self) -> Result<()> {
        let measured = run(self)?;
        println!("{}", serde_json::to_string(&measured)?);
        Ok(())
    }
}

/// Runs a cell in this process.
fn run(options: &Options) -> Result<Measured> {
    let (cell, time) = (options.cell, Duration::from_millis(options.millis));
    let tensors = Tensors { path: options.file.clone(), bytes: options.file_bytes };
    let start = Barrier::new(cell.row.threads + 1);
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..cell.row.threads)
            .map(|thread| {
                let job = Job { tensors: &tensors, row: cell.row, thread, time, start: &start };
                scope.spawn(move || {
                    let did = one(cell, &job);
                    // The others would wait for it for ever.
                    if let Err(error) = &did {
                        eprintln!("error: {error:#}");
                        std::process::exit(1);
                    }
                    did
                })
            })
            .collect();
        start.wait();
        let (before, started) = (usage(), Instant::now());
        start.wait();
        let mut all = Did::default();
        let mut as_wanted = true;
        for job in jobs {
            let (did, is_wanted) = job.join().ok().context("a thread panicked")??;
            all.bytes += did.bytes;
            all.reads += did.reads;
            as_wanted &= is_wanted;
        }
        let (after, seconds) = (usage(), started.elapsed().as_secs_f64());
        Ok(Measured {
            bytes: all.bytes,
            reads: all.reads,
            seconds,
            processor_seconds: after.0 - before.0,
            faults: after.1 - before.1,
            as_wanted,
        })
    })
}

/// One thread of it. Also whether the driver had what the cell wanted.
fn one(cell: Cell, job: &Job<'_>) -> Result<(Did, bool)> {
    let (row, direct) = (cell.row, cell.row.direct);
    let plain = || Driver::builder().build();
    let over = |driver: Driver, pool: &mut dyn Pool| -> Result<(Did, bool)> {
        let as_wanted = match driver.mode() {
            Mode::Registered => cell.memory.is_registered(),
            Mode::Plain { .. } => !cell.memory.is_registered(),
            _ => false,
        };
        Ok((pool.read(job, &driver)?, as_wanted))
    };
    match cell.engine {
        Engine::Vec => over(plain(), &mut foreign::fresh()),
        Engine::Zeroed => over(plain(), &mut foreign::zeroed(direct)),
        Engine::Aligned => over(plain(), &mut foreign::aligned()),
        Engine::Map => Ok((work::by_map(job)?, true)),
        #[cfg(feature = "peers")]
        Engine::Zeropool => over(plain(), &mut foreign::zeropool(direct)),
        #[cfg(not(feature = "peers"))]
        Engine::Zeropool => anyhow::bail!("zeropool is not built in"),
        Engine::Mirror => {
            let mut ring = MirrorRing::new(2 * row.bytes)?;
            Ok((work::by_ring(job, &mut ring)?, ring.is_mapped()))
        }
        Engine::Slot => {
            let slots = row.depth + 1;
            let builder = bufslot::Builder::new().slots(slots).capacity(slots * row.bytes).alignment(PAGE);
            let arena = arena(builder.required_bytes()?, cell.memory)?;
            let region = arena.part(builder.required_bytes()?, PAGE)?;
            over(driver(&arena, cell.memory), &mut builder.build_in(region, NoFallback)?)
        }
        Engine::Ring => {
            let buffers = row.depth + 2;
            let builder =
                bufring::Builder::new().buffers(buffers).capacity(buffers * row.bytes).alignment(PAGE);
            let arena = arena(builder.required_bytes()?, cell.memory)?;
            let region = arena.part(builder.required_bytes()?, PAGE)?;
            over(driver(&arena, cell.memory), &mut builder.build_in(region)?)
        }
        Engine::Shard | Engine::Bump => growing(cell, &over),
    }
}

/// Reads with a driver and a pool. It returns what was done, and whether the driver had what the
/// cell wanted.
type Over<'a> = &'a dyn Fn(Driver, &mut dyn Pool) -> Result<(Did, bool)>;

/// Reads with the pools that grow. On plain pages they are as a user makes them.
fn growing(cell: Cell, over: Over<'_>) -> Result<(Did, bool)> {
    let row = cell.row;
    let shard = bufshard::ShardPool::builder().alignment(PAGE);
    let bump = bufbump::BumpPool::builder().alignment(PAGE);
    let is_shard = cell.engine == Engine::Shard;
    if cell.memory == Memory::Plain {
        let driver = Driver::builder().build();
        return if is_shard { over(driver, &mut shard.build()?) } else { over(driver, &mut bump.build()?) };
    }
    let arena = arena(3 * (row.depth + 2) * (row.bytes + PAGE) + (16 << 20), cell.memory)?;
    let source: Arc<dyn bufcore::MemoryProvider> = Arc::new(arena.clone());
    let driver = driver(&arena, cell.memory);
    if is_shard {
        over(driver, &mut shard.build_from(source)?)
    } else {
        over(driver, &mut bump.build_from(source)?)
    }
}

fn arena(bytes: usize, memory: Memory) -> Result<Arena> {
    let pages = if memory.is_huge() { HugePages::Advise } else { HugePages::No };
    Ok(Arena::mapped(bytes + 2 * PAGE, MapOptions::new().huge_pages(pages).populate(true))?)
}

fn driver(arena: &Arena, memory: Memory) -> Driver {
    Driver::builder().arena(arena).register(memory.is_registered()).build()
}

/// A pool whose type nobody knows.
trait Pool {
    fn read(&mut self, job: &Job<'_>, driver: &Driver) -> Result<Did>;
}

impl<P: BufferPool> Pool for P {
    fn read(&mut self, job: &Job<'_>, driver: &Driver) -> Result<Did> {
        work::by_driver(job, driver, self)
    }
}

/// Seconds of processors, and page faults, of this process so far.
fn usage() -> (f64, u64) {
    // SAFETY: a structure of plain numbers.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the pointer is to a live structure of the type that the call fills.
    let _ = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_minflt as u64)
}
