//! A TCP proxy whose buffers come from any [`BufferPool`].
//!
//! Each direction of a connection is two threads and a queue. The reader has a pool of its own, fills buffers from one socket and
//! puts them into the queue; the writer empties them into the other socket and drops them, which gives the memory back to the
//! reader's pool from another thread. A full queue stops the reader, so a slow receiver slows its sender down instead of filling
//! the memory.
//!
//! ```text
//!  client --read--> [buf] --queue--> [buf] --write--> upstream
//!         <-write-- [buf] <--queue-- [buf] <--read---
//! ```
//!
//! The end of one direction is passed on as such (half-close) once its queue is empty; the other direction goes on. An error, or
//! no traffic in either direction for too long, ends the connection at once.

mod connection;
mod report;
mod sizes;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bufcore::{BufferPool, ConfigError};

pub use report::Report;

/// How long to wait when the system has no more descriptors or threads for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// How long the connection that wakes the accepting thread may take.
const WAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// What the proxy is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where connections are passed on to.
    pub upstream: SocketAddr,
    /// The smallest buffer that is read into, in bytes.
    pub min_buffer_bytes: usize,
    /// The largest.
    pub max_buffer_bytes: usize,
    /// Buffers that may wait for a writer, in each direction of a connection.
    pub queue_buffers: usize,
    /// How long connecting to the upstream may take.
    pub connect_timeout: Duration,
    /// How long a connection may go without a byte in either direction.
    pub idle_timeout: Duration,
    /// How long connections may go on after [`Stop::stop`].
    pub grace: Duration,
    /// After so many connections, no more are accepted; the proxy ends with the last of them.
    pub max_connections: Option<u64>,
}

impl Settings {
    /// Usual settings.
    #[must_use]
    pub fn new(upstream: SocketAddr) -> Self {
        Self {
            upstream,
            min_buffer_bytes: 512,
            max_buffer_bytes: 64 * 1024,
            queue_buffers: 8,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            max_connections: None,
        }
    }
}

/// Tells a running proxy to stop.
#[derive(Debug)]
pub struct Stop {
    stopping: AtomicBool,
    since: Mutex<Option<Instant>>,
    wake: SocketAddr,
}

impl Stop {
    /// For the proxy that accepts on `listener`.
    ///
    /// # Errors
    ///
    /// When the listener has no address.
    pub fn new(listener: &TcpListener) -> io::Result<Self> {
        let mut wake = listener.local_addr()?;
        match wake.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => wake.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => wake.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Ok(Self { stopping: AtomicBool::new(false), since: Mutex::new(None), wake })
    }

    /// Accepts no more connections, and ends those that go on longer than the grace.
    pub fn stop(&self) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        // ORDER: Release pairs with the Acquire in `is_stopping`: whoever sees the flag sees the time.
        self.stopping.store(true, Ordering::Release);
        // The accepting thread sleeps in the system until a connection comes. If it cannot be had, there is no such thread.
        drop(TcpStream::connect_timeout(&self.wake, WAKE_TIMEOUT));
    }

    fn is_stopping(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `stop`.
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether it was stopped longer than `grace` ago.
    fn is_over(&self, grace: Duration) -> bool {
        self.is_stopping()
            && self
                .since
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some_and(|since| since.elapsed() >= grace)
    }
}

/// Passes connections on until it is stopped or has had as many as it should. Each direction of each gets a pool from
/// `make_pool`, made on the thread that acquires from it.
///
/// # Errors
///
/// When the settings make no sense. What goes wrong with a connection ends that connection and is counted.
pub fn serve<P, M>(
    listener: &TcpListener,
    settings: &Settings,
    stop: &Stop,
    make_pool: M,
) -> io::Result<Report>
where
    P: BufferPool,
    M: Fn() -> Result<P, ConfigError> + Sync,
{
    if settings.min_buffer_bytes == 0 || settings.min_buffer_bytes > settings.max_buffer_bytes {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "buffer sizes must be at least 1, and min <= max",
        ));
    }
    let report = Mutex::new(Report::default());
    let shared = connection::Shared { settings, stop, report: &report, make_pool: &make_pool };
    thread::scope(|scope| {
        let mut accepted = 0;
        while !stop.is_stopping() && settings.max_connections.is_none_or(|max| accepted < max) {
            let client = match listener.accept() {
                Ok(_) if stop.is_stopping() => break,
                Ok((client, _)) => client,
                Err(error) => {
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        thread::sleep(ACCEPT_PAUSE);
                    }
                    continue;
                }
            };
            accepted += 1;
            let started =
                thread::Builder::new().name(format!("client {accepted}")).spawn_scoped(scope, move || {
                    shared.run(&client);
                });
            if started.is_err() {
                // The client was dropped with the closure: it sees its connection end.
                report::lock(&report).failed += 1;
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    });
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}
