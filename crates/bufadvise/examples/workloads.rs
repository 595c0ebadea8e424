//! Four programs that a pool helps, each with and without one: what `docs/advised.md` says of them
//! can be checked. Each prints its result, and its page faults.
//!
//! ```sh
//! bufadvise run -- target/release/examples/workloads frames
//! time target/release/examples/workloads frames
//! time target/release/examples/workloads frames slot:capacity=256MiB,slots=8
//! ```
//!
//! - `frames`: a filter for films: each frame of 4K, of 16 bits a colour, is a buffer.
//! - `batches`: a shipper of logs: a batch of blocks is filled, packed and sent, and freed as a whole.
//! - `pipeline`: a reader fills blocks, a second thread packs them.
//! - `thumbnails`: a server with a thread for each connection, in which a request decodes a picture
//!   into layers, and frees them as a whole.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::error::Error;
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

use bufcore::Buf;
use bufworks::AnyPool;
use bufworks::any::AnyBuilder;
use bufworks::any::AnyLease;

/// A source of bytes: a file that is read over and over.
const CHUNK: usize = 64 << 10;

/// What allocates the buffers of one thread.
#[allow(clippy::large_enum_variant, reason = "one for each thread")]
enum Memory {
    Heap,
    Pool(AnyPool),
}

enum Buffer {
    Heap(Vec<u8>),
    Pool(Buf<AnyLease>),
}

impl Memory {
    fn new(pool: Option<AnyBuilder>) -> Result<Self, Box<dyn Error>> {
        Ok(pool.map(AnyBuilder::build).transpose()?.map_or(Self::Heap, Self::Pool))
    }

    /// For another thread: the same pool, or one of its own where pools are not shared.
    fn share(&self, pool: Option<AnyBuilder>) -> Result<Self, Box<dyn Error>> {
        match self {
            Self::Pool(shared) => shared.share().map_or_else(|| Self::new(pool), |pool| Ok(Self::Pool(pool))),
            Self::Heap => Ok(Self::Heap),
        }
    }

    fn buffer(&mut self, bytes: usize) -> Buffer {
        match self {
            Self::Heap => Buffer::Heap(Vec::with_capacity(bytes)),
            Self::Pool(pool) => Buffer::Pool(pool.acquire(bytes).expect("the settings have room")),
        }
    }
}

impl Buffer {
    fn extend(&mut self, bytes: &[u8]) {
        match self {
            Self::Heap(vector) => vector.extend_from_slice(bytes),
            Self::Pool(buf) => buf.extend_from_slice(bytes).expect("the buffer has room"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Heap(vector) => vector,
            Self::Pool(buf) => buf.as_slice(),
        }
    }
}

/// Returns a buffer of that size, read from the source.
fn read(memory: &mut Memory, bytes: usize, source: &[u8; CHUNK]) -> Buffer {
    let mut buffer = memory.buffer(bytes);
    let mut left = bytes;
    while left > 0 {
        let part = left.min(CHUNK);
        buffer.extend(&source[..part]);
        left -= part;
    }
    buffer
}

/// Packs bytes: each run of equal bytes is its length and one of them. Returns the length.
fn packed(bytes: &[u8]) -> usize {
    bytes.chunk_by(|one, other| one == other).map(|run| run.len().div_ceil(255) * 2).sum()
}

fn frames(memory: &mut Memory, source: &[u8; CHUNK]) -> usize {
    const FRAME: usize = 3840 * 2160 * 8;
    let mut before = read(memory, FRAME, source);
    for frame in 0..120_u32 {
        let mut next = memory.buffer(FRAME);
        let mut line = [0; 3840 * 4];
        for pixels in before.bytes().chunks(line.len()) {
            for (to, from) in line.iter_mut().zip(pixels) {
                *to = from.wrapping_add(frame as u8) ^ 0x55;
            }
            next.extend(&line[..pixels.len()]);
        }
        before = next;
    }
    before.bytes().iter().map(|byte| usize::from(*byte)).sum()
}

fn batches(memory: &mut Memory, source: &[u8; CHUNK]) -> usize {
    let mut sent = 0;
    for _ in 0..300 {
        let batch: Vec<Buffer> = (0..24).map(|_| read(memory, 1 << 20, source)).collect();
        sent += batch.iter().map(|block| packed(&block.bytes()[..CHUNK])).sum::<usize>();
        let whole: u64 = batch.iter().flat_map(|block| block.bytes().chunks_exact(8)).map(sum).sum();
        sent += black_box(whole) as usize % 2;
    }
    sent
}

/// A checksum of eight bytes.
fn sum(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes) & 0xffff
}

fn pipeline(memory: &mut Memory, source: &[u8; CHUNK]) -> usize {
    const BLOCK: usize = 512 << 10;
    let (sender, receiver) = mpsc::sync_channel::<Vec<Buffer>>(2);
    let packer = thread::spawn(move || {
        let sums = receiver.into_iter().flatten().map(|block| {
            let whole: u64 = block.bytes().chunks_exact(8).map(sum).sum();
            packed(&block.bytes()[..CHUNK]) + whole as usize % 2
        });
        sums.sum()
    });
    for _ in 0..1000 {
        let files: Vec<Buffer> = (0..24).map(|_| read(memory, BLOCK, source)).collect();
        sender.send(files).expect("the packer is there");
    }
    drop(sender);
    packer.join().expect("it packs")
}

fn thumbnails(
    memory: &mut Memory,
    pool: Option<AnyBuilder>,
    source: &[u8; CHUNK],
) -> Result<usize, Box<dyn Error>> {
    let mut connections = Vec::new();
    for _ in 0..2 {
        let (mut memory, source) = (memory.share(pool)?, *source);
        connections.push(thread::spawn(move || {
            let mut sum = 0;
            for request in 0..60 {
                let layer = (12 << 20) + (request % 7) * (128 << 10);
                let layers: Vec<Buffer> = (0..4).map(|_| read(&mut memory, layer, &source)).collect();
                sum += layers.iter().map(|layer| packed(&layer.bytes()[..CHUNK])).sum::<usize>();
            }
            sum
        }));
    }
    Ok(connections.into_iter().map(|connection| connection.join().expect("it serves")).sum())
}

/// Returns the page faults of this process that read nothing, where the system says.
fn page_faults() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    text.rsplit(')').next()?.split_whitespace().nth(7)?.parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_default();
    let pool = arguments.next().map(|settings| settings.parse::<AnyBuilder>()).transpose()?;
    let mut source = [0; CHUNK];
    source.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 5) as u8);
    let mut memory = Memory::new(pool)?;
    let sum = match &*program {
        "frames" => frames(&mut memory, &source),
        "batches" => batches(&mut memory, &source),
        "pipeline" => pipeline(&mut memory, &source),
        "thumbnails" => thumbnails(&mut memory, pool, &source)?,
        _ => return Err("name one of frames, batches, pipeline, thumbnails; then settings of a pool".into()),
    };
    println!("{program}: {sum}");
    if let Some(faults) = page_faults() {
        println!("page faults: {faults}");
    }
    Ok(())
}
