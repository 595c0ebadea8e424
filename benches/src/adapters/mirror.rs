//! The mirrored-mmap ring, and what goes between threads over such memory.

use std::fs::File;
use std::{io, thread};

use bufmirror::{Consumer, MessageQueue, MirrorRing, Producer, WaitError, channel};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::{Lines, Messages, Pipe, Stream};
use crate::workloads::spsc::CAPACITY;

pub(super) fn contestant() -> Contestant {
    let idiom = "`MirrorRing`: `put` and `get`; `channel`: `wait`, and `put` or `get`, or `read_from`, and `wait_piece` and `pieces` for lines; `MessageQueue`: `send` and `recv_into`";
    Contestant::only("mirror", Kind::Strategy, &["stream", "parse", "spsc", "messages", "log"], idiom)
        .streams::<MirrorRing>()
        .pipes::<Channel>()
        .messages::<MessageQueue>()
        .lines::<Channel>()
}

impl Stream for MirrorRing {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Self::new(bytes).map_err(|error| error.to_string().into())
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.put(bytes).expect("the workload keeps within the capacity");
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        self.get(into).expect("the workload reads what it wrote");
    }

    /// In place.
    #[inline(always)]
    fn look<T>(&mut self, len: usize, _scratch: &mut [u8], look: impl FnOnce(&[u8]) -> T) -> T {
        let seen = look(&self.peek()[..len]);
        self.consume(len);
        seen
    }
}

/// Both ends of a channel.
pub(crate) struct Channel;

impl Pipe for Channel {
    type Writer = Producer;
    type Reader = Consumer;

    fn build(bytes: usize) -> Result<(Producer, Consumer), Unsupported> {
        channel(bytes).map_err(|error| error.to_string().into())
    }

    #[inline(always)]
    fn write(writer: &mut Producer, bytes: &[u8]) {
        writer.wait(bytes.len()).expect("the reader lives");
        writer.put(bytes).expect("waited for");
    }

    #[inline(always)]
    fn read(reader: &mut Consumer, into: &mut [u8]) {
        reader.wait(into.len()).expect("the writer lives");
        reader.get(into).expect("waited for");
    }
}

impl Lines for Channel {
    fn each_line(from: &mut File, _settings: Settings, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let (mut producer, consumer) = channel(CAPACITY)?;
        // An error here ends the other thread, which finds its consumer gone.
        thread::scope(move |scope| {
            let mut consumer = consumer;
            let reading = scope.spawn(move || {
                while producer.read_from(from)? > 0 {}
                io::Result::Ok(())
            });
            loop {
                match consumer.wait_piece(b'\n') {
                    Ok(()) => {}
                    Err(WaitError::Closed { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
                for line in &mut consumer.pieces(b'\n') {
                    take(line);
                }
            }
            // The last line may have no end.
            if !consumer.is_empty() {
                take(consumer.peek());
            }
            reading.join().expect("reading does not panic")
        })
    }
}

impl Messages for MessageQueue {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Self::new(bytes).map_err(|error| error.to_string().into())
    }

    #[inline(always)]
    fn send(&self, message: &[u8]) {
        self.sender().send(message).expect("open, and long enough");
    }

    #[inline(always)]
    fn receive(&self, into: &mut [u8]) -> usize {
        self.receiver().recv_into(into).expect("open, and no longer than the buffer").len
    }
}
