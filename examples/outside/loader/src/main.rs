//! Adds up the bytes of a file, past the page cache: eight reads of 1 MiB are in flight.
use std::collections::VecDeque;
use std::error::Error;
use std::{env, fs::OpenOptions, os::unix::fs::OpenOptionsExt};

use bufslot::SlotPool;
use bufuring::bufcore::{MapOptions, NoFallback};
use bufuring::{Arena, Descriptor, Driver};

const CHUNK: usize = 1 << 20;
const DEPTH: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("which file?")?;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut offsets = (0..file.metadata()?.len()).step_by(CHUNK);
    let file = Descriptor::new(file);

    let arena = Arena::mapped(10 << 20, MapOptions::new())?;
    let builder = SlotPool::builder().slots(DEPTH).alignment(4096);
    let mut pool = builder.build_in(arena.part(9 << 20, 4096)?, NoFallback)?;
    let driver = Driver::new(&arena);

    let (mut reads, mut sum) = (VecDeque::new(), 0);
    loop {
        while reads.len() < DEPTH
            && let Some(at) = offsets.next()
        {
            reads.push_back(driver.read_at(&file, pool.acquire(CHUNK)?, CHUNK, at));
        }
        let Some(mut read) = reads.pop_front() else {
            break;
        };
        let chunk = driver.wait(&mut read)?.into_result()?;
        sum += chunk.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }
    println!("{sum}");
    Ok(())
}
