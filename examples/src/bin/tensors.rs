//! Reads a file of tensors past the page cache, into huge pages that an `io_uring` knows, and sums each tensor.
//!
//! The file is shaped as those of safetensors: 8 bytes of length, a header of JSON, the tensors. Any such file will do.
//!
//! ```text
//! cargo run --release -p bufworks-examples --bin tensors -- model.safetensors
//! cargo run --release -p bufworks-examples --bin tensors            # makes a small file of its own
//! ```
#![allow(clippy::std_instead_of_alloc, reason = "a program of the standard library's")]

#[cfg(target_os = "linux")]
use linux::run;

fn main() -> anyhow::Result<()> {
    run()
}

#[cfg(not(target_os = "linux"))]
fn run() -> anyhow::Result<()> {
    println!("io_uring is Linux' own");
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::VecDeque;
    use std::fs::{File, OpenOptions};
    use std::io::{Read, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use anyhow::{Context, Result, ensure};
    use bufcore::{HugePages, MapOptions, NoFallback};
    use bufslot::SlotPool;
    use bufuring::{Arena, Descriptor, Driver};
    use clap::Parser;
    use serde_json::{Map, Value, json};

    /// What direct reads want offsets, lengths and memory aligned to.
    const PAGE: u64 = 4096;

    /// Sums the tensors of a file.
    #[derive(Debug, Parser)]
    #[command(name = "tensors")]
    struct Args {
        /// A file of safetensors
        file: Option<PathBuf>,
        /// Bytes of each read, a multiple of 4096
        #[arg(long, default_value_t = 1 << 20)]
        chunk: usize,
        /// Reads in flight
        #[arg(long, default_value_t = 8)]
        depth: usize,
    }

    /// A tensor's name, and where it is in the file.
    struct Tensor {
        name: String,
        from: u64,
        to: u64,
    }

    pub(super) fn run() -> Result<()> {
        let args = Args::parse();
        ensure!(
            args.chunk > 0 && (args.chunk as u64).is_multiple_of(PAGE),
            "chunk {}: expected pages",
            args.chunk
        );
        ensure!(args.depth > 0, "depth 0: expected at least one read in flight");
        let path = match args.file {
            Some(path) => path,
            None => small_file()?,
        };
        let tensors = header(&path)?;
        let file = direct(&path)?;

        // One arena for all buffers; whatever the system refuses of it, the reads are the same.
        let options = MapOptions::new().huge_pages(HugePages::Advise).populate(true);
        let builder =
            SlotPool::builder().slots(args.depth).capacity(args.depth * args.chunk).alignment(PAGE as usize);
        let arena = Arena::mapped(builder.required_bytes()? + PAGE as usize, options)?;
        let region = arena.part(builder.required_bytes()?, PAGE as usize)?;
        let mut pool = builder.build_in(region, NoFallback)?;
        let driver = Driver::new(&arena);
        println!("{}; the io_uring is {}", arena.granted(), driver.mode());

        let (started, mut total) = (Instant::now(), 0);
        for tensor in &tensors {
            let mut sum = 0_u64;
            let mut at = tensor.from - tensor.from % PAGE;
            let mut reads = VecDeque::new();
            loop {
                while reads.len() < args.depth && at < tensor.to {
                    reads.push_back((at, driver.read_at(&file, pool.acquire(args.chunk)?, args.chunk, at)));
                    at += args.chunk as u64;
                }
                let Some((at, mut read)) = reads.pop_front() else { break };
                let bytes = driver.wait(&mut read)?.into_result()?;
                // What of the chunk is the tensor's. The last read of a file is shorter.
                let from = tensor.from.saturating_sub(at) as usize;
                let to = tensor.to.saturating_sub(at).min(args.chunk as u64) as usize;
                let part = bytes.get(from..to).with_context(|| format!("{} is cut off", path.display()))?;
                sum = part.iter().fold(sum, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
            }
            total += tensor.to - tensor.from;
            println!("{:<24} {:>12} bytes  {sum:016x}", tensor.name, tensor.to - tensor.from);
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("{} tensors, {total} bytes, {:.2} GB/s", tensors.len(), total as f64 / 1e9 / seconds);
        Ok(())
    }

    /// Opens a file past the page cache, where its file system can.
    fn direct(path: &Path) -> Result<Descriptor> {
        let options = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = options(libc::O_DIRECT).or_else(|_| options(0));
        Ok(Descriptor::new(file.with_context(|| format!("cannot open {}", path.display()))?))
    }

    /// Reads where the tensors are. What a file says is checked: anybody may have written it.
    fn header(path: &Path) -> Result<Vec<Tensor>> {
        let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let size = file.metadata()?.len();
        let mut len = [0; 8];
        file.read_exact(&mut len)?;
        let len = u64::from_le_bytes(len);
        ensure!(len < 100 << 20 && 8 + len <= size, "a header of {len} bytes in a file of {size}");
        let mut text = vec![0; len as usize];
        file.read_exact(&mut text)?;
        let header: Map<String, Value> = serde_json::from_slice(&text).context("the header is no JSON")?;
        let mut tensors = Vec::new();
        for (name, tensor) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
            let offset = |at: usize| {
                tensor["data_offsets"][at].as_u64().and_then(|offset| offset.checked_add(8 + len))
            };
            let (Some(from), Some(to)) = (offset(0), offset(1)) else {
                anyhow::bail!("{name} has no offsets")
            };
            ensure!(from <= to && to <= size, "{name} lies at {from} to {to} in a file of {size} bytes");
            tensors.push(Tensor { name, from, to });
        }
        tensors.sort_by_key(|tensor| tensor.from);
        Ok(tensors)
    }

    /// Writes a file of 16 MiB, to have something to read.
    fn small_file() -> Result<PathBuf> {
        const EACH: usize = (4 << 20) + 100;
        let path = std::env::temp_dir().join(format!("tensors-{}.safetensors", std::process::id()));
        let mut header = Map::new();
        for at in 0..4 {
            let offsets = json!([at * EACH, (at + 1) * EACH]);
            header.insert(
                format!("layer.{at}"),
                json!({"dtype": "U8", "shape": [EACH], "data_offsets": offsets}),
            );
        }
        let header = serde_json::to_vec(&header)?;
        let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        for at in 0..4_u8 {
            file.write_all(&vec![at + 1; EACH])?;
        }
        file.sync_all()?;
        println!("{} is made to be read", path.display());
        Ok(path)
    }
}
