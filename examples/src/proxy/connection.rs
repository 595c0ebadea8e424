//! One connection: two directions, and the reasons to end it.

extern crate alloc;

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::Cell;
use core::time::Duration;
use std::io;

use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep_until, timeout};

use super::carrier::{Carrier, Failure, Progress};
use super::worker::Shared;

/// Why a connection ended before both sides said that they were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// An error on a socket, or of a pool or the system.
    Broken,
    Idle,
    Stopped,
}

impl<C: Carrier> Shared<C> {
    /// Passes `client` on to the upstream until both have ended.
    pub(super) async fn pass_on(self: Rc<Self>, client: std::net::TcpStream) {
        let Ok((client, upstream)) = self.connect(client).await else {
            self.report.borrow_mut().failed += 1;
            return;
        };
        let (up, down) = (Progress::new(), Progress::new());
        let cause = self.both_ways(client, upstream, &up, &down).await.err();
        let mut report = self.report.borrow_mut();
        report.connections += 1;
        report.bytes_up += up.written();
        report.bytes_down += down.written();
        match cause {
            None => {}
            Some(Cause::Broken) => report.broken += 1,
            Some(Cause::Idle) => report.idle += 1,
            Some(Cause::Stopped) => report.stopped += 1,
        }
    }

    async fn connect(&self, client: std::net::TcpStream) -> io::Result<(TcpStream, TcpStream)> {
        let client = TcpStream::from_std(client)?;
        let connect = timeout(self.settings.connect_timeout, TcpStream::connect(self.settings.upstream));
        let upstream = tokio::select! {
            connected = connect => connected??,
            () = self.over.cancelled() => return Err(io::ErrorKind::Interrupted.into()),
        };
        for socket in [&client, &upstream] {
            // Bytes that are read are passed on at once; waiting for more would only add latency.
            socket.set_nodelay(true)?;
        }
        Ok((client, upstream))
    }

    async fn both_ways(
        &self,
        client: TcpStream,
        upstream: TcpStream,
        up: &Arc<Progress>,
        down: &Arc<Progress>,
    ) -> Result<(), Cause> {
        let (from_client, to_client) = client.into_split();
        let (from_upstream, to_upstream) = upstream.into_split();
        let is_broken = Cell::new(false);
        let directions = async {
            tokio::try_join!(
                one_way(&self.up, from_client, to_upstream, up, &is_broken),
                one_way(&self.down, from_upstream, to_client, down, &is_broken),
            )
            .map(drop)
        };
        tokio::select! {
            result = directions => result?,
            () = until_idle(up, down, self.settings.idle_timeout) => return Err(Cause::Idle),
            () = self.over.cancelled() => return Err(Cause::Stopped),
        }
        if is_broken.get() { Err(Cause::Broken) } else { Ok(()) }
    }
}

/// One direction to its end, which is passed on. An error ends the whole connection at once, with one exception: who takes no more may
/// have sent something before, which the other direction still delivers; it meets that error, or the end, behind it.
async fn one_way(
    carrier: &impl Carrier,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    progress: &Arc<Progress>,
    is_broken: &Cell<bool>,
) -> Result<(), Cause> {
    match carrier.carry(from, to, progress).await {
        Ok(()) => {}
        Err(Failure::Write) => is_broken.set(true),
        Err(Failure::Read) => return Err(Cause::Broken),
    }
    Ok(())
}

/// Until nothing has moved for so long, in either direction.
async fn until_idle(up: &Progress, down: &Progress, limit: Duration) {
    loop {
        let end = up.active().max(down.active()) + limit;
        if end <= tokio::time::Instant::now() {
            return;
        }
        sleep_until(end).await;
    }
}
