//! A TCP proxy whose buffers come from any [`BufferPool`], for thousands of connections.
//!
//! A few workers, each a thread with a runtime of its own, have the connections in turn. A worker has two pools for all of its
//! connections, one for each direction; what it acquires, it releases. Each direction of a connection waits until its socket can be read, takes a buffer, reads,
//! writes all of it to the other socket, and gives the buffer back before it waits again:
//!
//! ```text
//!  client --readable?--> [buf] --write--> upstream
//!         <--write-- [buf] <--readable?--
//! ```
//!
//! So a connection that is idle holds no buffer, and one whose receiver is slow holds one, which is as small as its bytes. It reads no
//! more: its sender is slowed down instead of the memory filled. When the pool is exhausted, those that want to read wait until somebody
//! gives a buffer back; their bytes wait in the system. (This is why the directions have a pool each. An upstream that answers while it
//! reads would take no more before its answers are read, for which there would be no buffer.)
//!
//! With [`Settings::queue_buffers`], readers put their buffers into a queue, and threads of their own write and release them. This is how
//! traces are recorded, for then buffers are of many sizes, wait for each other, and are released on other threads.
//!
//! [`serve_rings`] has a [mirrored ring](bufmirror::MirrorRing) in each direction instead, which continues to read while the receiver is
//! slow, until it is full; its memory stays with the connection.
//!
//! The end of one direction is passed on as such (half-close); the other direction continues. An error, or no traffic in either direction
//! for too long, ends the connection at once.

mod carrier;
mod connection;
mod control;
mod pooled;
mod pools;
mod report;
mod ringed;
mod sizes;
mod worker;

extern crate alloc;

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::num::NonZero;
use core::time::Duration;
use std::io;
use std::net::TcpListener;
use std::thread;

use bufcore::{BufferPool, ConfigError};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub use control::Control;
pub use pools::Pools;
pub use report::{Report, Status};

use carrier::Carrier;
use pooled::{Pooled, Writers};
use ringed::Ringed;
use worker::Job;

/// How long to wait when the system has no more files for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What the proxy is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where connections are passed on to.
    pub upstream: SocketAddr,
    /// Threads.
    pub workers: NonZero<usize>,
    /// Whether the pools of all workers for a direction are handles of the same one: its statistics count once, and who waits for a buffer
    /// is told of those that other workers give back.
    pub shares_pool: bool,
    /// Buffers that may wait for a writer, in each direction of a connection. With 0, who reads writes, before it reads on. Else others write,
    /// on threads of their own, and the buffers come back from there.
    pub queue_buffers: usize,
    /// The smallest buffer that is read into, in bytes.
    pub min_buffer_bytes: usize,
    /// The largest.
    pub max_buffer_bytes: usize,
    /// How long connecting to the upstream may take.
    pub connect_timeout: Duration,
    /// How long a connection may go without a byte in either direction.
    pub idle_timeout: Duration,
    /// How long connections may go on after [`Control::stop`].
    pub grace: Duration,
    /// After this number of connections, no more are accepted; the proxy ends with the last of them.
    pub max_connections: Option<u64>,
}

impl Settings {
    /// Usual settings.
    #[must_use]
    pub fn new(upstream: SocketAddr) -> Self {
        Self {
            upstream,
            workers: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
            shares_pool: false,
            queue_buffers: 0,
            min_buffer_bytes: 512,
            max_buffer_bytes: 64 * 1024,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            max_connections: None,
        }
    }
}

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the upstream.
    Up,
    /// To the client.
    Down,
}

/// Passes connections on until it is stopped or has had as many as it should. Each worker gets a pool for each direction from `make_pool`,
/// made on its thread.
///
/// # Errors
///
/// When the settings make no sense, or there is no pool. A failure of a connection ends that connection and is counted.
pub fn serve<P, M>(
    listener: &TcpListener,
    settings: &Settings,
    control: &Control,
    make_pool: M,
) -> io::Result<Report>
where
    P: BufferPool + 'static,
    M: Fn(Direction) -> Result<P, ConfigError> + Sync,
{
    let (min, max) = (settings.min_buffer_bytes, settings.max_buffer_bytes);
    if min == 0 || min > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "buffer sizes must be at least 1, and min <= max",
        ));
    }
    // Dropped when all connections have ended.
    let writing = match settings.queue_buffers {
        0 => None,
        _ => {
            let mut threads = tokio::runtime::Builder::new_multi_thread();
            threads.worker_threads(settings.workers.get()).thread_name("writer").enable_time();
            Some(threads.build()?)
        }
    };
    let writers = writing
        .as_ref()
        .map(|runtime| Writers { runtime: runtime.handle().clone(), queue: settings.queue_buffers });
    let shared = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    serve_with(listener, settings, control, |direction| {
        let freed = match direction {
            _ if !settings.shares_pool => Arc::default(),
            Direction::Up => Arc::clone(&shared[0]),
            Direction::Down => Arc::clone(&shared[1]),
        };
        let pool =
            make_pool(direction).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Pooled::new(pool, freed, min, max, writers.clone())
    })
}

/// As [`serve`], with a ring of `ring_bytes` for each direction of a connection.
///
/// # Errors
///
/// When there is no ring of this size.
pub fn serve_rings(
    listener: &TcpListener,
    settings: &Settings,
    control: &Control,
    ring_bytes: usize,
) -> io::Result<Report> {
    // A size that cannot be is known before somebody connects.
    bufmirror::MirrorRing::new(ring_bytes)?;
    serve_with(listener, settings, control, |_| Ok(Ringed::new(ring_bytes)))
}

fn serve_with<C, M>(
    listener: &TcpListener,
    settings: &Settings,
    control: &Control,
    make: M,
) -> io::Result<Report>
where
    C: Carrier,
    M: Fn(Direction) -> io::Result<C> + Sync,
{
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..settings.workers.get()).map(|_| unbounded_channel()).unzip();
    control.set_workers(senders.clone());
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (number, jobs) in receivers.into_iter().enumerate() {
            let make = &make;
            let stopping = control.stopping.clone();
            let counts_pool = number == 0 || !settings.shares_pool;
            let work = move || {
                // Without a pool there is nothing to accept connections for.
                let make = |direction| make(direction).inspect_err(|_| control.stop());
                let (up, down) = (make(Direction::Up)?, make(Direction::Down)?);
                worker::run(up, down, settings, stopping, jobs, counts_pool)
            };
            workers.push(thread::Builder::new().name(format!("worker {number}")).spawn_scoped(scope, work)?);
        }
        let accepted = accept(listener, settings, control, &senders);
        for sender in &senders {
            // A worker that is gone says why below.
            drop(sender.send(Job::Finish));
        }
        let mut report = Report::default();
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for worker in workers {
            let (part, pools) = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            report += part;
            up.push(pools.0);
            down.push(pools.1);
        }
        for mut pools in [up, down] {
            if settings.shares_pool {
                // All of them are of one pool; the last one knows most.
                pools.sort_by_key(|pool| pool.acquired);
                pools.drain(..pools.len().saturating_sub(1));
            }
            pools.iter().for_each(|pool| report.add_pool(pool));
        }
        accepted.map(|()| report)
    })
}

/// Gives the workers their connections, in turn.
fn accept(
    listener: &TcpListener,
    settings: &Settings,
    control: &Control,
    workers: &[UnboundedSender<Job>],
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
        let mut workers = workers.iter().cycle();
        let mut accepted = 0;
        while settings.max_connections.is_none_or(|max| accepted < max) {
            let client = tokio::select! {
                () = control.stopping.cancelled() => break,
                client = listener.accept() => client,
            };
            // The worker's runtime is to watch the socket, not this one.
            match client.and_then(|(client, _)| client.into_std()) {
                Ok(client) => {
                    accepted += 1;
                    if let Some(worker) = workers.next() {
                        drop(worker.send(Job::Connect(client)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        Ok(())
    })
}
