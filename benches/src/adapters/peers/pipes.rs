//! The published queues for bytes between two threads, which do not wait: where there is nothing to
//! do, they are asked again. And the published channel for messages between many, which waits.

use core::hint::spin_loop;

use bbqueue::BBBuffer;
use crossbeam_channel::{Receiver, Sender, bounded};
use ringbuf::traits::{Consumer as _, Observer as _, Producer as _, Split as _};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use rtrb::RingBuffer;

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::{Messages, Pipe};
use crate::workloads::spsc::CAPACITY;

pub(super) fn rtrb() -> Engine {
    let idiom = "`RingBuffer<u8>`: chunks, filled and read by `copy_from_slice`, looked for by spinning";
    Engine::new("rtrb", Kind::Peer, idiom).pipes::<Rtrb>()
}

pub(super) fn ringbuf() -> Engine {
    let idiom = "`HeapRb<u8>`: `push_slice` and `pop_slice`, looked for by spinning";
    Engine::new("ringbuf", Kind::Peer, idiom).pipes::<Ringbuf>()
}

pub(super) fn bbqueue() -> Engine {
    let idiom = "`BBBuffer`: `grant_exact` and `read`, looked for by spinning";
    Engine::new("bbqueue", Kind::Peer, idiom).pipes::<BbQueue>()
}

pub(super) fn crossbeam_channel() -> Engine {
    let idiom = "`bounded` for as many vectors as have the bytes of the queue: `send` and `recv`, `try_iter` for what has come";
    Engine::new("crossbeam-channel", Kind::Peer, idiom).messages::<Vectors>()
}

/// A ring of elements.
pub(crate) struct Rtrb;

impl Pipe for Rtrb {
    type Writer = rtrb::Producer<u8>;
    type Reader = rtrb::Consumer<u8>;

    fn build(bytes: usize) -> Result<(Self::Writer, Self::Reader), Unsupported> {
        Ok(RingBuffer::new(bytes))
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, bytes: &[u8]) {
        let mut chunk = loop {
            match writer.write_chunk(bytes.len()) {
                Ok(chunk) => break chunk,
                Err(_) => spin_loop(),
            }
        };
        let (first, second) = chunk.as_mut_slices();
        let (front, back) = bytes.split_at(first.len());
        first.copy_from_slice(front);
        second.copy_from_slice(back);
        chunk.commit_all();
    }

    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u8]) {
        let chunk = loop {
            match reader.read_chunk(into.len()) {
                Ok(chunk) => break chunk,
                Err(_) => spin_loop(),
            }
        };
        let (first, second) = chunk.as_slices();
        let (front, back) = into.split_at_mut(first.len());
        front.copy_from_slice(first);
        back.copy_from_slice(second);
        chunk.commit_all();
    }
}

/// Another one.
pub(crate) struct Ringbuf;

impl Pipe for Ringbuf {
    type Writer = HeapProd<u8>;
    type Reader = HeapCons<u8>;

    fn build(bytes: usize) -> Result<(Self::Writer, Self::Reader), Unsupported> {
        Ok(HeapRb::new(bytes).split())
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, bytes: &[u8]) {
        while writer.vacant_len() < bytes.len() {
            spin_loop();
        }
        writer.push_slice(bytes);
    }

    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u8]) {
        while reader.occupied_len() < into.len() {
            spin_loop();
        }
        reader.pop_slice(into);
    }
}

/// A bip buffer: what it lends is contiguous.
pub(crate) struct BbQueue;

impl Pipe for BbQueue {
    type Writer = bbqueue::Producer<'static, CAPACITY>;
    type Reader = bbqueue::Consumer<'static, CAPACITY>;

    fn build(bytes: usize) -> Result<(Self::Writer, Self::Reader), Unsupported> {
        if bytes != CAPACITY {
            return Err("of a constant size".into());
        }
        // Leaked, since both ends borrow it; so are the pools that do.
        let queue: &'static BBBuffer<CAPACITY> = Box::leak(Box::new(BBBuffer::new()));
        queue.try_split().map_err(|error| Unsupported(format!("{error:?}")))
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, bytes: &[u8]) {
        let mut grant = loop {
            match writer.grant_exact(bytes.len()) {
                Ok(grant) => break grant,
                Err(_) => spin_loop(),
            }
        };
        grant.copy_from_slice(bytes);
        grant.commit(bytes.len());
    }

    /// The bytes that are there end at the buffer's end, so a chunk may come in two.
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u8]) {
        let mut at = 0;
        while at < into.len() {
            let Ok(grant) = reader.read() else {
                spin_loop();
                continue;
            };
            let n = grant.len().min(into.len() - at);
            into[at..at + n].copy_from_slice(&grant[..n]);
            grant.release(n);
            at += n;
        }
    }
}

/// Both ends of a channel of vectors.
struct Vectors(Sender<Vec<u8>>, Receiver<Vec<u8>>);

impl Messages for Vectors {
    fn build(bytes: usize, mean: usize) -> Result<Self, Unsupported> {
        let (sender, receiver) = bounded(bytes / (mean + size_of::<Vec<u8>>()));
        Ok(Self(sender, receiver))
    }

    fn send(&self, message: &[u8]) {
        self.0.send(message.to_vec()).expect("open");
    }

    fn receive(&self, into: &mut [u8]) -> usize {
        let message = self.1.recv().expect("open");
        into[..message.len()].copy_from_slice(&message);
        message.len()
    }

    fn send_many(&self, messages: &[&[u8]]) {
        messages.iter().for_each(|message| self.send(message));
    }

    fn receive_many(&self, max: usize, mut take: impl FnMut(&[u8])) {
        take(&self.1.recv().expect("open"));
        self.1.try_iter().take(max - 1).for_each(|message| take(&message));
    }
}
