//! The process of a server, and the relay, as its users write it.

use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bufworks::frames::{FrameReader, LengthDelimited, write_frames_async};
use bufworks::shard::ShardPool;
use bytes::Bytes;
use futures_util::future::try_join;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use crate::work::{Cell, Engine, Work};

/// The header of an answer that has the checksum.
pub const CHECKSUM: &str = "checksum";
/// A longer frame is an error.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// Bytes of frames that wait in a connection's queue, about.
const QUEUED_BYTES: usize = 256 << 10;
/// The most frames that do.
const QUEUED_FRAMES: usize = 256;

/// Where buffers come from.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    Codec,
    Vec(Budget),
    Pool(ShardPool),
}

/// What bounds vectors: a semaphore of KiB, if there is a budget.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Option<Arc<Semaphore>>);

impl Budget {
    pub(crate) fn new(bytes: Option<usize>) -> Self {
        Self(bytes.map(|bytes| Arc::new(Semaphore::new(bytes >> 10))))
    }

    /// The share that so many bytes have, when it is free.
    pub(crate) async fn permit(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>> {
        let Some(budget) = self.0.clone() else { return Ok(None) };
        Ok(Some(budget.acquire_many_owned(bytes.div_ceil(1 << 10) as u32).await?))
    }
}

/// Bytes, and their share of the budget.
pub(crate) struct Counted<B> {
    pub(crate) bytes: B,
    #[expect(dead_code, reason = "it is held")]
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Serves until standard input ends. Prints the address.
///
/// # Errors
///
/// When it cannot listen, or its pool cannot be made.
pub fn run(cell: Cell) -> Result<()> {
    let store = match (cell.engine, cell.pool()?) {
        (Engine::Codec, _) => Store::Codec,
        (_, Some(pool)) => Store::Pool(pool),
        (_, None) => Store::Vec(Budget::new(cell.work.budget())),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(cell.work).context("cannot listen")?;
        println!("{}", listener.local_addr()?);
        std::thread::spawn(|| {
            let _ended = io::stdin().read_to_end(&mut Vec::new());
            // Nobody listens any more.
            std::process::exit(0);
        });
        if let Work::Stock(stock) = cell.work {
            return stock.serve(listener, cell.engine == Engine::Bounded).await;
        }
        if let Some(framework) = cell.work.framework() {
            return framework.serve(listener, store).await;
        }
        let Work::Relay { bytes, .. } = cell.work else { anyhow::bail!("{:?} is no server", cell.work) };
        let queued = (QUEUED_BYTES / bytes).clamp(1, QUEUED_FRAMES);
        loop {
            let (socket, _) = listener.accept().await.context("cannot accept a connection")?;
            socket.set_nodelay(true)?;
            let store = store.clone();
            tokio::spawn(async move {
                let served = match store {
                    Store::Codec => relay_codec(socket, queued).await,
                    Store::Vec(budget) => relay_vec(socket, queued, budget).await,
                    Store::Pool(pool) => relay_pool(socket, queued, pool).await,
                };
                if let Err(error) = served {
                    eprintln!("connection lost: {error:#}");
                }
            });
        }
    })
}

/// Listens for more connections at once than there are.
fn listen(work: Work) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = work.socket_bytes() {
        // A connection that is accepted has it from here.
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(1024)
}

/// The header that answers an upload.
pub(crate) fn checksum(bytes: &[u8]) -> [(&'static str, String); 1] {
    [(CHECKSUM, crc32fast::hash(bytes).to_string())]
}

/// Of frames with their length in front.
pub(crate) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec()
}

async fn relay_codec(socket: TcpStream, queued: usize) -> Result<()> {
    let (from, to) = socket.into_split();
    let (mut from, mut to) = (FramedRead::new(from, codec()), FramedWrite::new(to, codec()));
    let (queue, mut waiting) = mpsc::channel(queued);
    let read = async move {
        while let Some(frame) = from.next().await {
            queue.send(frame?.freeze()).await?;
        }
        Ok(())
    };
    let write = async move {
        let mut frames = Vec::new();
        while waiting.recv_many(&mut frames, queued).await > 0 {
            for frame in frames.drain(..) {
                to.feed(frame).await?;
            }
            SinkExt::<Bytes>::flush(&mut to).await?;
        }
        Ok(())
    };
    try_join(read, write).await.map(drop)
}

async fn relay_vec(socket: TcpStream, queued: usize, budget: Budget) -> Result<()> {
    let (from, to) = socket.into_split();
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    let (queue, mut waiting) = mpsc::channel(queued);
    let read = async move {
        loop {
            let length = match from.read_u32().await {
                Ok(length) => length as usize,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            anyhow::ensure!(length <= MAX_FRAME_BYTES, "a frame of {length} bytes");
            let permit = budget.permit(length).await?;
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes).await?;
            queue.send(Counted { bytes, permit }).await?;
        }
    };
    let write = async move {
        let mut frames = Vec::new();
        while waiting.recv_many(&mut frames, queued).await > 0 {
            for frame in frames.drain(..) {
                to.write_u32(frame.bytes.len() as u32).await?;
                to.write_all(&frame.bytes).await?;
            }
            to.flush().await?;
        }
        Ok(())
    };
    try_join(read, write).await.map(drop)
}

async fn relay_pool(socket: TcpStream, queued: usize, pool: ShardPool) -> Result<()> {
    let (from, mut to) = socket.into_split();
    let framing = LengthDelimited::new(MAX_FRAME_BYTES);
    let mut from = FrameReader::new(from, framing);
    let (queue, mut waiting) = mpsc::channel(queued);
    let read = async move {
        while let Some(frame) = from.next_frame_async(|bytes| pool.acquire_async(bytes)).await? {
            queue.send(frame).await?;
        }
        Ok(())
    };
    let write = async move {
        let mut frames = Vec::new();
        while waiting.recv_many(&mut frames, queued).await > 0 {
            write_frames_async(&mut to, &framing, &frames).await?;
            frames.clear();
        }
        Ok(())
    };
    try_join(read, write).await.map(drop)
}
