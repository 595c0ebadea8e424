//! Datagrams that the kernel hands over in batches (GRO): one buffer for a batch, and a view of it for each datagram.
//!
//! A batch is one receive call. All its datagrams have one length, except for the last one, which may be shorter.

#![allow(clippy::std_instead_of_alloc, reason = "a program of the standard library's")]

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::time::Instant;

use bufcore::{BufferPool, Frozen};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

/// The most that a batch has.
const BATCH_BYTES: usize = 64 << 10;
/// Datagrams that a server keeps, such as those that came before the one that they wait for.
const KEPT: usize = 256;

/// How batches become datagrams.
pub trait Split {
    /// A datagram that is kept.
    type Datagram: AsRef<[u8]>;

    /// Receives one batch, and passes each datagram of it to `take`. Returns their number.
    ///
    /// # Errors
    ///
    /// Those of the socket and of the pool.
    fn receive(&mut self, from: &Endpoint, take: impl FnMut(Self::Datagram)) -> io::Result<usize>;
}

/// Receives each batch into a buffer of its own. Datagrams are views of it; the buffer is released with the last of them.
#[derive(Debug)]
pub struct Views<P>(pub P);

impl<P: BufferPool> Split for Views<P> {
    type Datagram = Frozen<P::Lease>;

    fn receive(&mut self, from: &Endpoint, mut take: impl FnMut(Self::Datagram)) -> io::Result<usize> {
        let mut buf = self.0.acquire(BATCH_BYTES).map_err(io::Error::other)?;
        let meta = from.receive(buf.spare_mut())?;
        buf.commit(meta.len);
        let mut batch = buf.freeze();
        let mut datagrams = 0;
        while !batch.is_empty() {
            take(batch.split_to(meta.stride.min(batch.len())));
            datagrams += 1;
        }
        Ok(datagrams)
    }
}

/// Receives all batches into the same memory, and copies each datagram out of it.
#[derive(Debug)]
pub struct Copies(Vec<u8>);

impl Default for Copies {
    fn default() -> Self {
        Self(vec![0; BATCH_BYTES])
    }
}

impl Split for Copies {
    type Datagram = Vec<u8>;

    fn receive(&mut self, from: &Endpoint, mut take: impl FnMut(Vec<u8>)) -> io::Result<usize> {
        let meta = from.receive(&mut self.0)?;
        let datagrams = self.0[..meta.len].chunks(meta.stride);
        let count = datagrams.len();
        datagrams.for_each(|datagram| take(datagram.to_vec()));
        Ok(count)
    }
}

/// A socket that sends and receives batches.
#[derive(Debug)]
pub struct Endpoint {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Endpoint {
    /// Binds to a port of the loopback address.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn loopback() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// Returns its address.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns how many datagrams one call sends.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends `contents` in one call, as datagrams of `size` bytes each; the last may be shorter.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn send(&self, to: SocketAddr, contents: &[u8], size: usize) -> io::Result<()> {
        let segment_size = (contents.len() > size).then_some(size);
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Receives one batch. It waits: on the loopback device, what was sent is there.
    fn receive(&self, into: &mut [u8]) -> io::Result<RecvMeta> {
        let mut meta = [RecvMeta::default()];
        loop {
            let received = self.state.recv((&self.socket).into(), &mut [IoSliceMut::new(into)], &mut meta);
            match received {
                Ok(_) => return Ok(meta[0]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    std::thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What a run has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Datagrams that came.
    pub datagrams: usize,
    /// Calls that they came in.
    pub batches: usize,
    /// Time for receiving and splitting.
    pub time: Duration,
}

/// Sends `batches` batches of datagrams with `size` bytes to itself, and receives them by `split`. The last datagram of each is shorter.
/// Every datagram is compared when it is dropped from those that are kept.
///
/// # Errors
///
/// Those of the socket and of the pool, and `InvalidData` for wrong bytes.
pub fn run<S: Split>(mut split: S, batches: usize, size: usize) -> io::Result<Report> {
    let (sender, receiver) = (Endpoint::loopback()?, Endpoint::loopback()?);
    let to = receiver.address()?;
    let most = sender.most_at_once().min((BATCH_BYTES - 1000) / size).max(1);
    let mut kept = VecDeque::with_capacity(KEPT + most);
    let mut report = Report::default();
    for batch in 0..batches {
        let sent: Vec<u8> = (0..most).flat_map(|at| vec![(batch + at) as u8; size]).collect();
        sender.send(to, &sent[..sent.len() - size / 2], size)?;
        let mut received = 0;
        while received < most {
            let started = Instant::now();
            let datagrams = split.receive(&receiver, |datagram| kept.push_back(datagram))?;
            report.time += started.elapsed();
            report.batches += 1;
            received += datagrams;
        }
        for (at, datagram) in kept.iter().skip(kept.len() - most).enumerate() {
            let expected = if at + 1 == most { size - size / 2 } else { size };
            let bytes = datagram.as_ref();
            if bytes.len() != expected || bytes.iter().any(|&byte| byte != (batch + at) as u8) {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    format!("datagram {at} of batch {batch}"),
                ));
            }
        }
        report.datagrams += received;
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    Ok(report)
}
