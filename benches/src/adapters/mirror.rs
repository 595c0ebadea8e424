//! The mirrored-mmap ring, and what goes between threads over such memory.

use bufmirror::messages::{self, Receiver, Sender};
use bufmirror::{Consumer, MirrorRing, Producer, channel};

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::{Messages, Pipe, Stream};

pub(super) fn engine() -> Engine {
    let idiom = "`MirrorRing`: `put` and `get`; `channel`: `wait`, and `put` or `get`; `messages`: `send` and `recv_into`, \
                 `send_many` and `recv_many`";
    Engine::new("mirror", Kind::Strategy, idiom)
        .streams::<MirrorRing>()
        .pipes::<Channel>()
        .messages::<Queue>()
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

/// Both ends of a queue of messages.
struct Queue(Sender, Receiver);

impl Messages for Queue {
    fn build(bytes: usize, _mean: usize) -> Result<Self, Unsupported> {
        let (sender, receiver) = messages::channel(bytes).map_err(|error| error.to_string())?;
        Ok(Self(sender, receiver))
    }

    // Functions of their own: in a thread's loop that has the batches' calls too, a message of 8 bytes
    // takes 73 ns in place of 64.
    #[inline(never)]
    fn send(&self, message: &[u8]) {
        self.0.send(message).expect("open, and long enough");
    }

    #[inline(never)]
    fn receive(&self, into: &mut [u8]) -> usize {
        self.1.recv_into(into).expect("open, and no longer than the buffer").len
    }

    fn send_many(&self, messages: &[&[u8]]) {
        self.0.send_many(messages).expect("open, and not too much");
    }

    /// In place.
    fn receive_many(&self, max: usize, take: impl FnMut(&[u8])) {
        self.1.recv_many(max).expect("open").iter().for_each(take);
    }
}
