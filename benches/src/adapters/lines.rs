//! Lines from the thread that reads them to the one that looks at them, as programs write it: a
//! vector for each, batches of vectors, batches in buffers of a pool.

use core::marker::PhantomData;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread;

use bufcore::{BufferPool, Frozen};
use memchr::{memchr, memrchr};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings};
use crate::harness::serve::{LOGS, Lines};

/// Bytes of a batch, and batches that wait at most: together as much as the mirrored ring has.
pub(crate) const BATCH_BYTES: usize = 64 << 10;
pub(crate) const BATCHES: usize = 4;
/// Batches that are out at once: those that wait, one at each end, and the one that is next.
const OUT: usize = BATCHES + 3;
/// Lines that wait at most, where each is sent by itself.
const QUEUED_LINES: usize = 1024;

pub(super) fn contestant() -> Contestant {
    let idiom = "64 KiB are read into a `Vec`, which goes through a `sync_channel` up to its last line; the rest is copied to the next one";
    Contestant::only("batches", Kind::Control, LOGS, idiom).lines::<Grown<Vec<u8>>>()
}

/// Runs `send` in a thread beside `receive`; the first error of the two.
pub(crate) fn beside<T: Send>(
    capacity: usize,
    send: impl FnOnce(SyncSender<T>) -> io::Result<()> + Send,
    receive: impl FnOnce(Receiver<T>),
) -> io::Result<()> {
    let (sender, receiver) = sync_channel(capacity);
    thread::scope(|scope| {
        let sending = scope.spawn(move || send(sender));
        receive(receiver);
        sending.join().expect("reading does not panic")
    })
}

/// The error of a sender whose receiver is gone.
pub(crate) fn gone<T>(_error: SendError<T>) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

/// Calls `take` with each line of a batch.
pub(crate) fn split(mut batch: &[u8], mut take: impl FnMut(&[u8])) {
    while let Some(end) = memchr(b'\n', batch) {
        take(&batch[..end]);
        batch = &batch[end + 1..];
    }
    if !batch.is_empty() {
        take(batch);
    }
}

/// A vector for each line.
pub(crate) struct EachLine;

impl Lines for EachLine {
    fn each_line(from: &mut File, _settings: Settings, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let send = |sender: SyncSender<Vec<u8>>| {
            let mut from = BufReader::new(from);
            loop {
                let mut line = Vec::new();
                if from.read_until(b'\n', &mut line)? == 0 {
                    return Ok(());
                }
                sender.send(line).map_err(gone)?;
            }
        };
        beside(QUEUED_LINES, send, |lines| {
            lines.iter().for_each(|line| take(line.strip_suffix(b"\n").unwrap_or(&line)));
        })
    }
}

/// Bytes that grow at the end, and of which the front is split off as a batch.
pub(crate) trait Growing: Default + AsRef<[u8]> {
    /// What goes to the other thread.
    type Batch: AsRef<[u8]> + Send;

    /// Appends what one read of up to `len` bytes brings; returns how many bytes came.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    fn read(&mut self, from: &mut File, len: usize) -> io::Result<usize>;

    /// Splits the first `at` bytes off.
    fn split(&mut self, at: usize) -> Self::Batch;
}

/// Batches that are split off one that grows.
pub(crate) struct Grown<B>(PhantomData<B>);

impl<B: Growing + 'static> Lines for Grown<B> {
    fn each_line(from: &mut File, _settings: Settings, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let send = |sender: SyncSender<B::Batch>| {
            let mut batch = B::default();
            loop {
                let had = batch.as_ref().len();
                if batch.read(from, BATCH_BYTES)? == 0 {
                    return sender.send(batch.split(had)).map_err(gone);
                }
                if let Some(last) = memrchr(b'\n', &batch.as_ref()[had..]) {
                    sender.send(batch.split(had + last + 1)).map_err(gone)?;
                }
            }
        };
        beside(BATCHES, send, |batches| {
            batches.iter().for_each(|batch| split(batch.as_ref(), &mut take));
        })
    }
}

impl Growing for Vec<u8> {
    type Batch = Self;

    fn read(&mut self, from: &mut File, len: usize) -> io::Result<usize> {
        let had = self.len();
        self.resize(had + len, 0);
        let n = from.read(&mut self[had..])?;
        self.truncate(had + n);
        Ok(n)
    }

    fn split(&mut self, at: usize) -> Self {
        let rest = self.split_off(at);
        std::mem::replace(self, rest)
    }
}

/// A pool for batches.
pub(crate) trait BatchPool: BufferPool<Lease: Send> + Sized + 'static {
    /// Makes one with room for all batches that are out at once.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    fn for_batches(plan: &Plan) -> io::Result<Self>;
}

/// A buffer of a pool for each batch, which is passed on as a view.
pub(crate) struct Pooled<P>(PhantomData<P>);

impl<P: BatchPool> Lines for Pooled<P> {
    fn each_line(from: &mut File, settings: Settings, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let send = |sender: SyncSender<Frozen<P::Lease>>| {
            let mut pool = P::for_batches(&Plan::equal(OUT, BATCH_BYTES).with(settings))?;
            let mut batch = pool.acquire(BATCH_BYTES).map_err(io::Error::other)?;
            loop {
                let had = batch.len();
                if batch.read_from(from)? == 0 {
                    return sender.send(batch.freeze()).map_err(gone);
                }
                let Some(last) = memrchr(b'\n', &batch[had..]) else {
                    let mut larger = pool.acquire(batch.len() + BATCH_BYTES).map_err(io::Error::other)?;
                    larger.extend_from_slice(&batch)?;
                    batch = larger;
                    continue;
                };
                let mut next = pool.acquire(BATCH_BYTES).map_err(io::Error::other)?;
                next.extend_from_slice(&batch[had + last + 1..])?;
                batch.truncate(had + last + 1);
                sender.send(std::mem::replace(&mut batch, next).freeze()).map_err(gone)?;
            }
        };
        beside(BATCHES, send, |batches| batches.iter().for_each(|batch| split(&batch, &mut take)))
    }
}
