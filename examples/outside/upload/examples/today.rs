//! Answers each upload with the same bytes. All uploads together have 64 MiB.
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::{Router, extract::State, http::StatusCode, routing::post};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::{net::TcpListener, time::timeout};

/// An upload keeps its part of the budget until the answer is sent.
struct Upload {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Upload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn receive(budget: Arc<Semaphore>, body: Body) -> Result<Bytes, StatusCode> {
    let length = body
        .size_hint()
        .exact()
        .ok_or(StatusCode::LENGTH_REQUIRED)?;
    if length > 8 << 20 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let permit = budget.acquire_many_owned(length as u32).await;
    let _permit = permit.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let bytes = to_bytes(body, length as usize).await;
    let bytes = bytes.map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(Bytes::from_owner(Upload { bytes, _permit }))
}

async fn upload(State(budget): State<Arc<Semaphore>>, body: Body) -> Result<Bytes, StatusCode> {
    let received = timeout(Duration::from_secs(5), receive(budget, body)).await;
    received.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let budget = Arc::new(Semaphore::new(64 << 20));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let service = Router::new().route("/", post(upload)).with_state(budget);
    Ok(axum::serve(listener, service).await?)
}
