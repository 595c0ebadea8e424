//! An upload and download service over axum or hyper, whose bodies are under one budget.

use core::convert::Infallible;
use core::error::Error;
use core::time::Duration;
use std::io;

use axum::Router;
use axum::extract::{FromRef, FromRequest, Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bufworks::http::{self, Body, CollectError};
use bufworks::shard::{ShardLease, ShardPool};
use bufworks::{AcquireError, Buf};
use bytes::BufMut;
use futures_util::stream;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// What hyper reads and writes at once for a connection, and keeps.
const HTTP_BYTES: usize = 16 << 10;
/// What a download has in memory at once.
pub const CHUNK_BYTES: usize = 64 << 10;
/// A download's bytes repeat after so many.
const PERIOD: usize = 251;

/// The memory of all bodies.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Its `max_bytes` is the budget.
    pub pool: ShardPool,
    /// The largest upload, in bytes; others are answered with 413.
    pub limit: usize,
    /// How long an upload waits for memory before it is answered with 503.
    pub patience: Duration,
}

impl Memory {
    async fn acquire(&self, bytes: usize) -> Result<Buf<ShardLease>, AcquireError> {
        let busy = AcquireError::Exhausted { requested: bytes, available: 0 };
        timeout(self.patience, self.pool.acquire_async(bytes)).await.unwrap_or(Err(busy))
    }
}

/// The body of a request, as an extractor of axum.
#[derive(Debug)]
pub struct Upload(pub Buf<ShardLease>);

impl<S: Sync> FromRequest<S> for Upload
where
    Memory: FromRef<S>,
{
    type Rejection = (StatusCode, String);

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let memory = Memory::from_ref(state);
        let collected = http::collect(request.into_body(), memory.limit, |bytes| memory.acquire(bytes)).await;
        collected.map(Self).map_err(|error| (status(&error), error.to_string()))
    }
}

fn status<E>(error: &CollectError<E>) -> StatusCode {
    StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Makes the service for axum: `POST /` answers with the upload, `GET /{bytes}` with so many.
pub fn router(memory: Memory) -> Router {
    Router::new().route("/", post(echo)).route("/{bytes}", get(download)).with_state(memory)
}

async fn echo(Upload(upload): Upload) -> impl IntoResponse {
    upload.into_bytes()
}

async fn download(Path(bytes): Path<usize>, State(memory): State<Memory>) -> Response {
    Response::new(axum::body::Body::new(content(memory, bytes)))
}

/// Makes the same service for hyper alone.
pub fn service(
    memory: Memory,
) -> impl Service<hyper::Request<Incoming>, Response = hyper::Response<Body>, Error = Infallible, Future: Send>
+ Clone {
    service_fn(move |request| answer(request, memory.clone()))
}

async fn answer(
    request: hyper::Request<Incoming>,
    memory: Memory,
) -> Result<hyper::Response<Body>, Infallible> {
    let mut answer = hyper::Response::new(Body::default());
    match (request.method(), request.uri().path().trim_start_matches('/').parse()) {
        (&Method::GET, Ok(bytes)) => *answer.body_mut() = content(memory, bytes),
        (&Method::POST, _) => {
            match http::collect(request.into_body(), memory.limit, |bytes| memory.acquire(bytes)).await {
                Ok(upload) => *answer.body_mut() = upload.into(),
                Err(error) => *answer.status_mut() = status(&error),
            }
        }
        _ => *answer.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(answer)
}

/// A pattern, of which one chunk at a time is in memory.
fn content(memory: Memory, bytes: usize) -> Body {
    Body::from_stream(stream::try_unfold((memory, 0), move |(memory, at)| async move {
        let n = CHUNK_BYTES.min(bytes - at);
        if n == 0 {
            return Ok(None);
        }
        let mut chunk = memory.acquire(n).await?;
        chunk.put_slice(pattern(at, n));
        Ok::<_, AcquireError>(Some((chunk, (memory, at + n))))
    }))
}

/// The bytes at a place of a download, at most a chunk.
pub fn pattern(at: usize, bytes: usize) -> &'static [u8] {
    static PATTERN: [u8; PERIOD + CHUNK_BYTES] = {
        let mut bytes = [0; PERIOD + CHUNK_BYTES];
        let mut at = 0;
        while at < bytes.len() {
            bytes[at] = (at % PERIOD) as u8;
            at += 1;
        }
        bytes
    };
    &PATTERN[at % PERIOD..][..bytes]
}

/// Serves a service of hyper, or a router of axum as a [`TowerToHyperService`](hyper_util::service::TowerToHyperService), with hyper's buffers bounded.
///
/// # Errors
///
/// When it cannot accept a connection.
pub async fn serve<S, B>(listener: TcpListener, service: S) -> io::Result<Infallible>
where
    S: Service<hyper::Request<Incoming>, Response = hyper::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(HTTP_BYTES);
    loop {
        let socket = listener.accept().await?.0;
        // A connection that fails is the client's affair.
        tokio::spawn(http.serve_connection(TokioIo::new(socket), service.clone()));
    }
}
