//! Bytes through a mirrored ring, one for each direction of a connection: while the receiver takes the front, more comes in behind.

extern crate alloc;

use alloc::sync::Arc;
use core::cell::Cell;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, ErrorKind};

use bufcore::PoolStats;
use bufmirror::MirrorRing;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::carrier::{Carrier, Failure, Progress};

/// The rings of one worker, in one direction.
pub(super) struct Ringed {
    capacity: usize,
    held: Held,
}

/// What they hold.
#[derive(Default)]
struct Held {
    rings: Cell<usize>,
    ring_bytes: Cell<usize>,
    filled: Cell<usize>,
    filled_bytes: Cell<usize>,
    made: Cell<u64>,
}

fn add(cell: &Cell<usize>, n: usize) {
    cell.set(cell.get() + n);
}

fn subtract(cell: &Cell<usize>, n: usize) {
    cell.set(cell.get() - n);
}

impl Ringed {
    /// Rings of `capacity` bytes, rounded up to pages.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, held: Held::default() }
    }
}

impl Carrier for Ringed {
    async fn carry(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        progress: &Arc<Progress>,
    ) -> Result<(), Failure> {
        // No ring before the first byte: there are clients that only connect.
        from.readable().await.map_err(|_| Failure::Read)?;
        let ring = MirrorRing::new(self.capacity).map_err(|_| Failure::Read)?;
        let mut lane = Lane::new(ring, &self.held);
        poll_fn(|cx| lane.poll(cx, &mut from, &mut to, progress)).await?;
        // The other side may have closed everything already, which is as good.
        drop(to.shutdown().await);
        Ok(())
    }

    fn stats(&self) -> PoolStats {
        let mut stats = PoolStats::default();
        stats.acquired = self.held.made.get();
        stats.fresh = stats.acquired;
        stats.in_use = self.held.filled.get();
        stats.in_use_bytes = self.held.filled_bytes.get();
        stats.reserved_bytes = self.held.ring_bytes.get();
        stats
    }

    fn waits(&self) -> u64 {
        0
    }
}

/// One direction.
struct Lane<'a> {
    ring: MirrorRing,
    has_ended: bool,
    held: &'a Held,
}

impl<'a> Lane<'a> {
    fn new(ring: MirrorRing, held: &'a Held) -> Self {
        add(&held.rings, 1);
        add(&held.ring_bytes, ring.capacity());
        held.made.set(held.made.get() + 1);
        Self { ring, has_ended: false, held }
    }

    /// Moves what can be moved, at both ends, until neither continues.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut OwnedReadHalf,
        to: &mut OwnedWriteHalf,
        progress: &Progress,
    ) -> Poll<Result<(), Failure>> {
        loop {
            let mut moved = false;
            if !self.has_ended && self.ring.spare_capacity() != 0 {
                match self.fill(cx, from) {
                    Poll::Ready(Ok(n)) => {
                        self.has_ended = n == 0;
                        moved = true;
                        progress.read();
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::Read)),
                    Poll::Pending => {}
                }
            }
            if !self.ring.is_empty() {
                match self.empty(cx, to) {
                    Poll::Ready(Ok(n)) => {
                        moved = true;
                        progress.wrote(n);
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::Write)),
                    Poll::Pending => {}
                }
            }
            if self.has_ended && self.ring.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Reads into all that is free; 0 at the end.
    fn fill(&mut self, cx: &mut Context<'_>, from: &mut OwnedReadHalf) -> Poll<io::Result<usize>> {
        let free = self.ring.spare_capacity();
        let room = self.ring.reserve(free).map_err(|_| ErrorKind::OutOfMemory)?;
        let mut room = ReadBuf::new(room);
        let polled = Pin::new(from).poll_read(cx, &mut room);
        let n = room.filled().len();
        polled.map_ok(|()| {
            if n != 0 && self.ring.is_empty() {
                add(&self.held.filled, 1);
            }
            self.ring.commit(n);
            add(&self.held.filled_bytes, n);
            n
        })
    }

    /// Writes from all that is there.
    fn empty(&mut self, cx: &mut Context<'_>, to: &mut OwnedWriteHalf) -> Poll<io::Result<usize>> {
        let written = Pin::new(to).poll_write(cx, self.ring.peek());
        written.map(|written| match written? {
            0 => Err(ErrorKind::WriteZero.into()),
            n => {
                self.ring.consume(n);
                subtract(&self.held.filled_bytes, n);
                if self.ring.is_empty() {
                    subtract(&self.held.filled, 1);
                }
                Ok(n)
            }
        })
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        subtract(&self.held.rings, 1);
        subtract(&self.held.ring_bytes, self.ring.capacity());
        subtract(&self.held.filled_bytes, self.ring.len());
        subtract(&self.held.filled, usize::from(!self.ring.is_empty()));
    }
}
