//! One connection: two directions, each a reader, a queue and a writer.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bufcore::{Buf, BufferPool, ConfigError, Lease};

use super::report::{self, Report};
use super::sizes::Sizes;
use super::{Settings, Stop};

/// How long a thread sleeps in the system before it looks whether the connection should end.
const TICK: Duration = Duration::from_millis(100);

/// What all connections share.
pub(super) struct Shared<'a, M> {
    pub(super) settings: &'a Settings,
    pub(super) stop: &'a Stop,
    pub(super) report: &'a Mutex<Report>,
    pub(super) make_pool: &'a M,
}

impl<M> Clone for Shared<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Shared<'_, M> {}

/// Why a connection ended before both sides said that they were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// An error on a socket, or of a pool or the system.
    Broken,
    Idle,
    Stopped,
}

/// The two sockets of a connection and what its four threads tell each other.
struct Link<'a> {
    client: &'a TcpStream,
    upstream: &'a TcpStream,
    began: Instant,
    /// When the last byte went through, in milliseconds since `began`.
    active_ms: AtomicU64,
    /// The first cause; later ones follow from it.
    cause: Mutex<Option<Cause>>,
    idle_timeout: Duration,
    grace: Duration,
    stop: &'a Stop,
}

impl Link<'_> {
    fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // ORDER: Relaxed: a time to compare; nothing else is read because of it.
        self.active_ms.fetch_max(now, Ordering::Relaxed);
    }

    /// Whether the connection may go on waiting.
    fn check(&self) -> Result<(), Cause> {
        // ORDER: Relaxed, as in `touch`.
        let active = Duration::from_millis(self.active_ms.load(Ordering::Relaxed));
        if self.stop.is_over(self.grace) {
            Err(Cause::Stopped)
        } else if self.began.elapsed().saturating_sub(active) >= self.idle_timeout {
            Err(Cause::Idle)
        } else {
            Ok(())
        }
    }

    /// Ends the connection: all its threads wake up and see that their sockets are closed.
    fn fail(&self, cause: Cause) {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        for socket in [self.client, self.upstream] {
            // It may be closed already; then there is nobody to wake.
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

impl<P, M> Shared<'_, M>
where
    P: BufferPool,
    M: Fn() -> Result<P, ConfigError> + Sync,
{
    /// Passes `client` on to the upstream until both have ended.
    pub(super) fn run(&self, client: &TcpStream) {
        let Ok(upstream) = self.connect(client) else {
            report::lock(self.report).failed += 1;
            return;
        };
        let link = Link {
            client,
            upstream: &upstream,
            began: Instant::now(),
            active_ms: AtomicU64::new(0),
            cause: Mutex::new(None),
            idle_timeout: self.settings.idle_timeout,
            grace: self.settings.grace,
            stop: self.stop,
        };
        let (mut bytes_up, mut bytes_down) = (0, 0);
        thread::scope(|scope| {
            let up = thread::Builder::new().spawn_scoped(scope, || self.pump(&link, client, &upstream));
            let Ok(up) = up else {
                link.fail(Cause::Broken);
                return;
            };
            bytes_down = self.pump(&link, &upstream, client);
            bytes_up = up.join().unwrap_or(0);
        });
        let cause = *link.cause.lock().unwrap_or_else(PoisonError::into_inner);
        let mut report = report::lock(self.report);
        report.connections += 1;
        report.bytes_up += bytes_up;
        report.bytes_down += bytes_down;
        match cause {
            None => {}
            Some(Cause::Broken) => report.broken += 1,
            Some(Cause::Idle) => report.idle += 1,
            Some(Cause::Stopped) => report.stopped += 1,
        }
    }

    fn connect(&self, client: &TcpStream) -> io::Result<TcpStream> {
        let upstream = TcpStream::connect_timeout(&self.settings.upstream, self.settings.connect_timeout)?;
        for socket in [client, &upstream] {
            // What is read is passed on at once; waiting for more would only add latency.
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(TICK))?;
            socket.set_write_timeout(Some(TICK))?;
        }
        Ok(upstream)
    }

    /// One direction, to its end. Returns how many bytes were written.
    fn pump(&self, link: &Link<'_>, from: &TcpStream, to: &TcpStream) -> u64 {
        let (sender, receiver) = sync_channel(self.settings.queue_buffers);
        let mut written = 0;
        thread::scope(|scope| {
            let writer = thread::Builder::new().spawn_scoped(scope, || write_side(link, to, receiver));
            let Ok(writer) = writer else {
                link.fail(Cause::Broken);
                return;
            };
            match (self.make_pool)() {
                Ok(mut pool) => {
                    if let Err(cause) = self.read_side(link, from, &mut pool, sender) {
                        link.fail(cause);
                    }
                    report::lock(self.report).add_pool(&pool.stats());
                }
                Err(_) => {
                    drop(sender);
                    link.fail(Cause::Broken);
                }
            }
            written = writer.join().unwrap_or(0);
        });
        written
    }

    /// Reads into buffers and queues them until the sender is done.
    fn read_side(
        &self,
        link: &Link<'_>,
        mut from: &TcpStream,
        pool: &mut P,
        queue: SyncSender<Buf<P::Lease>>,
    ) -> Result<(), Cause> {
        let mut sizes = Sizes::new(self.settings.min_buffer_bytes, self.settings.max_buffer_bytes);
        loop {
            let mut buf = pool.acquire(sizes.next()).map_err(|_| Cause::Broken)?;
            loop {
                match buf.read_from(&mut from) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if is_tick(&error) => {
                        link.check()?;
                        continue;
                    }
                    Err(_) => return Err(Cause::Broken),
                }
                link.touch();
                if !sizes.note(buf.len(), buf.capacity()) {
                    break;
                }
                let mut small = pool.acquire(buf.len()).map_err(|_| Cause::Broken)?;
                small.extend_from_slice(&buf).map_err(|_| Cause::Broken)?;
                buf.clear();
                queue.send(small).map_err(|_| Cause::Broken)?;
            }
            queue.send(buf).map_err(|_| Cause::Broken)?;
        }
    }
}

/// Writes what is queued and passes the end on. Returns how many bytes were written.
fn write_side<L: Lease>(link: &Link<'_>, to: &TcpStream, queue: Receiver<Buf<L>>) -> u64 {
    let mut written = 0;
    for buf in queue {
        if let Err(cause) = write_all(link, to, &buf, &mut written) {
            link.fail(cause);
            return written;
        }
    }
    // The other side may have closed everything already, which is as good.
    drop(to.shutdown(Shutdown::Write));
    written
}

fn write_all(link: &Link<'_>, mut to: &TcpStream, mut bytes: &[u8], written: &mut u64) -> Result<(), Cause> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(Cause::Broken),
            Ok(n) => {
                bytes = &bytes[n..];
                *written += n as u64;
                link.touch();
            }
            Err(error) if is_tick(&error) => link.check()?,
            Err(_) => return Err(Cause::Broken),
        }
    }
    Ok(())
}

/// Whether the call only came back to let us look around. Systems differ in what they call it.
fn is_tick(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
