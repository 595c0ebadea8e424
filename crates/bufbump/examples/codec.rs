//! A codec: chunks come in as the network cuts them, messages go out as the protocol does. A
//! message that is complete is split off its chunk, without an allocation, and goes its own way.
//! Only the start of one that the chunk's end cuts is copied, to the next chunk.
//!
//! ```text
//! cargo run -p bufbump --example codec
//! ```

use std::sync::mpsc;
use std::thread;

use bufbump::{BumpBuf, BumpPool, Error};

const CHUNK_BYTES: usize = 64;

/// Messages of one length byte and as many bytes as it says, from a stream of chunks.
struct Decoder {
    pool: BumpPool,
    /// The chunk that is being filled; complete messages have been split off its front.
    chunk: BumpBuf,
}

impl Decoder {
    fn new(pool: BumpPool) -> Result<Self, Error> {
        let chunk = pool.acquire(CHUNK_BYTES)?;
        Ok(Self { pool, chunk })
    }

    /// Takes in what has come from the network, and hands out the messages that are complete.
    fn feed(&mut self, mut input: &[u8], mut deliver: impl FnMut(BumpBuf)) -> Result<(), Error> {
        while !input.is_empty() {
            let (now, later) = input.split_at(input.len().min(self.chunk.spare_capacity()));
            self.chunk.extend_from_slice(now)?;
            input = later;
            while let Some(&len) = self.chunk.first().filter(|&&len| self.chunk.len() > usize::from(len)) {
                let mut message = self.chunk.split_to(1 + usize::from(len));
                message.consume(1);
                deliver(message);
            }
            if self.chunk.spare_capacity() == 0 {
                // The start of a message is left: it moves to a new chunk, with room for the rest
                // of it.
                let mut next = self.pool.acquire(CHUNK_BYTES.max(256))?;
                next.extend_from_slice(&self.chunk)?;
                self.chunk = next;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let pool = BumpPool::new()?;
    let mut decoder = Decoder::new(pool.clone())?;

    // Two workers, who drop their messages when they are done; the chunk goes with its last
    // message.
    let (even, odd) = (mpsc::channel::<BumpBuf>(), mpsc::channel::<BumpBuf>());
    let workers = [even.1, odd.1].map(|messages| {
        thread::spawn(move || {
            messages.iter().map(|message| message.iter().map(|&b| u64::from(b)).sum::<u64>()).sum::<u64>()
        })
    });

    // A stream of messages, cut where it falls.
    let mut stream = Vec::new();
    let mut expected = 0;
    for index in 0..1000_usize {
        let message = vec![index as u8; index % 100];
        expected += message.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        stream.push(message.len() as u8);
        stream.extend(message);
    }
    let mut count = 0;
    for part in stream.chunks(37) {
        decoder.feed(part, |message| {
            let worker = if count % 2 == 0 { &even.0 } else { &odd.0 };
            worker.send(message).expect("the workers wait");
            count += 1;
        })?;
    }
    drop((even.0, odd.0, decoder));
    let sum: u64 = workers.into_iter().map(|worker| worker.join().expect("adding does not panic")).sum();
    assert_eq!((count, sum), (1000, expected));
    println!("{count} messages, each in the chunk that it was received in; {pool:?}");
    Ok(())
}
