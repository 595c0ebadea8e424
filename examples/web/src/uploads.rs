//! An upload and download service over axum or hyper, whose bodies are under one budget.

use core::convert::Infallible;
use core::time::Duration;
use std::io;

use axum::Router;
use axum::extract::{FromRef, FromRequest, Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bufworks::http::{self, Body, CollectError};
use bufworks::shard::{ShardLease, ShardPool};
use bufworks::{AcquireError, Buf};
use futures_util::stream;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// What hyper reads and writes at once for a connection, and keeps.
const HTTP_BYTES: usize = 16 << 10;
const CHUNK_BYTES: usize = 64 << 10;

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

/// Sends a pattern, of which one chunk at a time is in memory.
async fn download(Path(bytes): Path<usize>, State(memory): State<Memory>) -> Response {
    let chunks = stream::try_unfold((memory, 0), move |(memory, at)| async move {
        let n = CHUNK_BYTES.min(bytes - at);
        if n == 0 {
            return Ok(None);
        }
        let mut chunk = memory.acquire(n).await?;
        chunk.extend((at..at + n).map(pattern));
        Ok::<_, AcquireError>(Some((chunk, (memory, at + n))))
    });
    Response::new(axum::body::Body::new(Body::from_stream(chunks)))
}

/// The byte at a place of a download.
pub fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// Serves axum's router, or another service, with hyper's buffers bounded.
///
/// # Errors
///
/// When it cannot accept a connection.
pub async fn serve(listener: TcpListener, router: Router) -> io::Result<Infallible> {
    loop {
        let socket = listener.accept().await?.0;
        let service = TowerToHyperService::new(router.clone());
        // A connection that fails is the client's affair.
        tokio::spawn(bounded().serve_connection(TokioIo::new(socket), service));
    }
}

fn bounded() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.max_buf_size(HTTP_BYTES);
    http
}

/// Serves one connection with hyper alone: answers each upload with itself.
///
/// # Errors
///
/// When the connection fails.
pub async fn serve_hyper(socket: TcpStream, memory: Memory) -> hyper::Result<()> {
    let service = hyper::service::service_fn(async |request: hyper::Request<Incoming>| {
        let collected = http::collect(request.into_body(), memory.limit, |bytes| memory.acquire(bytes)).await;
        let mut answer = hyper::Response::new(Body::default());
        match collected {
            Ok(upload) => *answer.body_mut() = upload.into(),
            Err(error) => *answer.status_mut() = status(&error),
        }
        Ok::<_, Infallible>(answer)
    });
    bounded().serve_connection(TokioIo::new(socket), service).await
}
