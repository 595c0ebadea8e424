//! A server of framed messages: what one client sends, all others get. A frame is received into a buffer of a pool once, and all clients
//! share that one; who is connected and silent holds nothing.
//!
//! When frames have used the pool's budget up, clients wait for their turn, and the bytes that they send wait in the system. A frame goes
//! back to the budget when the slowest client has it. So a client that takes none for a while is let go.

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io;

use bufcore::Frozen;
use bufshard::{ShardLease, ShardPool};
use bufworks::frames::{FrameError, FrameReader, LengthDelimited, write_frames_async};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What the server is told.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The longest frame, in bytes.
    pub max_frame: usize,
    /// A client that is this number of frames behind is let go.
    pub max_behind: usize,
    /// A client that takes longer than this for one frame is let go.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_frame: 1 << 20, max_behind: 1024, patience: Duration::from_secs(30) }
    }
}

/// What the server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Clients that were there.
    pub clients: u64,
    /// Of those, let go because they sent nonsense, did not read, or broke off.
    pub failed: u64,
    /// Frames received.
    pub frames: u64,
}

/// A frame, and who sent it.
#[derive(Clone)]
struct Message {
    from: u64,
    frame: Frozen<ShardLease>,
}

/// What all clients share.
struct Hub {
    settings: Settings,
    pool: ShardPool,
    messages: Sender<Message>,
    frames: AtomicU64,
}

/// Serves until `stop`.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    pool: ShardPool,
    settings: Settings,
    stop: CancellationToken,
) -> io::Result<Report> {
    let (messages, _) = channel(settings.max_behind);
    let hub = Arc::new(Hub { settings, pool, messages, frames: AtomicU64::new(0) });
    let mut clients = JoinSet::new();
    let mut report = Report::default();
    let mut number = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            client = listener.accept() => {
                number += 1;
                // Here, so that who came earlier misses nothing of who came later.
                let messages = hub.messages.subscribe();
                clients.spawn(Arc::clone(&hub).client(number, client?.0, messages));
            }
            Some(ended) = clients.join_next() => report.failed += u64::from(has_failed(&ended)),
        }
    }
    clients.abort_all();
    while let Some(ended) = clients.join_next().await {
        report.failed += u64::from(has_failed(&ended));
    }
    report.clients = number;
    // ORDER: Relaxed: a number to be read.
    report.frames = hub.frames.load(Ordering::Relaxed);
    Ok(report)
}

/// A client that was still there when the server stopped has done nothing wrong.
fn has_failed(ended: &Result<Result<(), FrameError>, JoinError>) -> bool {
    match ended {
        Ok(result) => result.is_err(),
        Err(error) => !error.is_cancelled(),
    }
}

impl Hub {
    /// One client, until it says that it is done.
    async fn client(
        self: Arc<Self>,
        number: u64,
        socket: TcpStream,
        messages: Receiver<Message>,
    ) -> Result<(), FrameError> {
        socket.set_nodelay(true)?;
        let (from, to) = socket.into_split();
        tokio::select! {
            received = self.receive(number, from) => received,
            sent = self.send_others(number, to, messages) => sent,
        }
    }

    async fn receive(&self, number: u64, from: OwnedReadHalf) -> Result<(), FrameError> {
        // By frame, since the slowest client keeps a frame for long.
        let mut frames = FrameReader::new(from, self.framing()).by_frame();
        let acquire = |bytes| self.pool.acquire_async(bytes);
        while let Some(frame) = frames.next_frame_async(acquire).await? {
            // ORDER: Relaxed: a number, which orders nothing.
            self.frames.fetch_add(1, Ordering::Relaxed);
            // This client listens as well, so there is somebody.
            drop(self.messages.send(Message { from: number, frame }));
        }
        Ok(())
    }

    /// Four bytes of length in front of each frame.
    fn framing(&self) -> LengthDelimited {
        LengthDelimited::new(self.settings.max_frame)
    }

    async fn send_others(
        &self,
        number: u64,
        mut to: OwnedWriteHalf,
        mut messages: Receiver<Message>,
    ) -> Result<(), FrameError> {
        loop {
            match messages.recv().await {
                Ok(message) if message.from == number => {}
                Ok(message) => {
                    let (framing, frames) = (self.framing(), [message.frame]);
                    let sent = write_frames_async(&mut to, &framing, &frames);
                    timeout(self.settings.patience, sent).await.map_err(|_elapsed| too_slow())??;
                }
                Err(RecvError::Lagged(_)) => return Err(too_slow()),
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }
}

/// The client does not read, or not as fast as the others write.
fn too_slow() -> FrameError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}
