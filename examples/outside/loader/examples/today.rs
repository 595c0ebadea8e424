//! Adds up the bytes of a file, past the page cache: eight reads of 1 MiB are in flight.
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::{env, io, thread};

const CHUNK: usize = 1 << 20;
const DEPTH: usize = 8;

fn sum(file: &File, offsets: impl Iterator<Item = u64>) -> io::Result<u64> {
    let mut memory = vec![0; CHUNK + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let chunk = &mut memory[start..][..CHUNK];
    let mut sum = 0;
    for at in offsets {
        let len = file.read_at(chunk, at)?;
        sum += chunk[..len]
            .iter()
            .map(|&byte| u64::from(byte))
            .sum::<u64>();
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("which file?")?;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let size = file.metadata()?.len();
    let sum = thread::scope(|scope| {
        let start = |first| {
            let offsets = (0..size).step_by(CHUNK).skip(first).step_by(DEPTH);
            scope.spawn(|| sum(&file, offsets))
        };
        let threads: Vec<_> = (0..DEPTH).map(start).collect();
        let sums = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        sums.sum::<io::Result<u64>>()
    })?;
    println!("{sum}");
    Ok(())
}
