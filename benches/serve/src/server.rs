//! The service and the relay, as their users write them.

use core::fmt::Display;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bufworks::Buf;
use bufworks::frames::{FrameReader, LengthDelimited, write_frames_async};
use bufworks::shard::{ShardLease, ShardPool};
use bytes::{BufMut, Bytes};
use futures_util::future::try_join;
use futures_util::{SinkExt, StreamExt};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use crate::pattern;
use crate::work::{Cell, Engine, Work};

/// The header of an answer that has the checksum.
pub const CHECKSUM: &str = "checksum";
/// A longer frame is an error.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// hyper reads and writes that much at once, and not 400 KiB.
const HTTP_BYTES: usize = 16 << 10;
/// Bytes of frames that wait in a connection's queue, about.
const QUEUED_BYTES: usize = 256 << 10;
/// The most frames that do.
const QUEUED_FRAMES: usize = 256;

/// Where buffers come from.
#[derive(Debug, Clone)]
enum Store {
    Codec,
    /// The budget, if there is one, in KiB.
    Vec(Option<Arc<Semaphore>>),
    Pool(ShardPool),
}

/// A buffer of the service.
enum Buffer {
    Vec(Counted),
    Pool(Buf<ShardLease>),
}

/// A vector, and its share of the budget.
struct Counted {
    bytes: Vec<u8>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Store {
    /// An empty buffer of the service, when there is one.
    async fn acquire(self, bytes: usize) -> Result<Buffer, (StatusCode, String)> {
        match self {
            Self::Pool(pool) => pool.acquire_async(bytes).await.map(Buffer::Pool).map_err(refused),
            Self::Vec(budget) => {
                let permit = permit(budget, bytes).await.map_err(refused)?;
                Ok(Buffer::Vec(Counted { bytes: Vec::with_capacity(bytes), _permit: permit }))
            }
            Self::Codec => Err(refused("a codec is for the relay")),
        }
    }
}

impl Buffer {
    /// Appends bytes, for which there is room.
    fn put(&mut self, bytes: &[u8]) {
        match self {
            Self::Vec(counted) => counted.bytes.put_slice(bytes),
            Self::Pool(buf) => buf.put_slice(bytes),
        }
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        match buffer {
            Buffer::Vec(counted) => Self::from_owner(counted),
            Buffer::Pool(buf) => buf.into(),
        }
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
        (_, None) => Store::Vec(cell.work.budget().map(|bytes| Arc::new(Semaphore::new(bytes >> 10)))),
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
        let service = Router::new().route("/", post(upload)).route("/{place}/{length}", get(download));
        let service = service.with_state(store.clone());
        loop {
            let (socket, _) = listener.accept().await.context("cannot accept a connection")?;
            socket.set_nodelay(true)?;
            let (store, service) = (store.clone(), service.clone());
            tokio::spawn(async move {
                let served = match (cell.work, store) {
                    (Work::Relay { bytes, .. }, store) => {
                        let queued = (QUEUED_BYTES / bytes).clamp(1, QUEUED_FRAMES);
                        match store {
                            Store::Codec => relay_codec(socket, queued).await,
                            Store::Vec(budget) => relay_vec(socket, queued, budget).await,
                            Store::Pool(pool) => relay_pool(socket, queued, pool).await,
                        }
                    }
                    _ => serve_http(socket, service, HTTP_BYTES).await,
                };
                if let Err(error) = served {
                    eprintln!("connection lost: {error:#}");
                }
            });
        }
    })
}

/// Serves a connection, for which hyper keeps buffers of so many bytes.
pub(crate) async fn serve_http(socket: TcpStream, service: Router, buffer_bytes: usize) -> Result<()> {
    let mut http = http1::Builder::new();
    let http = http.max_buf_size(buffer_bytes);
    Ok(http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(service)).await?)
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

/// Collects an upload, of which hyper passes on as many bytes as it announces, and answers with its checksum.
async fn upload(
    State(store): State<Store>,
    headers: HeaderMap,
    body: Body,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut buffer = store.acquire(length.ok_or((StatusCode::LENGTH_REQUIRED, String::new()))?).await?;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        buffer.put(&piece.map_err(refused)?);
    }
    Ok(checksum(&Bytes::from(buffer)))
}

/// Answers with the bytes of a place, and their checksum.
async fn download(
    State(store): State<Store>,
    Path((place, length)): Path<(usize, usize)>,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    let mut buffer = store.acquire(length).await?;
    pattern::pieces(place, length).for_each(|piece| buffer.put(piece));
    let bytes = Bytes::from(buffer);
    Ok((checksum(&bytes), bytes))
}

/// The header that answers an upload.
pub(crate) fn checksum(bytes: &[u8]) -> [(&'static str, String); 1] {
    [(CHECKSUM, crc32fast::hash(bytes).to_string())]
}

fn refused(error: impl Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// The share of a budget that a vector of that size has.
async fn permit(budget: Option<Arc<Semaphore>>, bytes: usize) -> Result<Option<OwnedSemaphorePermit>> {
    let Some(budget) = budget else { return Ok(None) };
    Ok(Some(budget.acquire_many_owned(bytes.div_ceil(1 << 10) as u32).await?))
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

async fn relay_vec(socket: TcpStream, queued: usize, budget: Option<Arc<Semaphore>>) -> Result<()> {
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
            let permit = permit(budget.clone(), length).await?;
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes).await?;
            queue.send(Counted { bytes, _permit: permit }).await?;
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
