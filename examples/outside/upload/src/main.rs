//! Answers each upload with the same bytes. All uploads together have 64 MiB.
use std::error::Error;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::{Router, extract::State, http::StatusCode, routing::post};
use bufworks::{http::collect, shard::ShardPool};
use tokio::{net::TcpListener, time::timeout};

async fn upload(State(pool): State<ShardPool>, body: Body) -> Result<Bytes, StatusCode> {
    let collected = collect(body, 8 << 20, |bytes| pool.acquire_async(bytes));
    let collected = timeout(Duration::from_secs(5), collected).await;
    match collected.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)? {
        Ok(upload) => Ok(upload.into_bytes()),
        Err(error) => Err(StatusCode::from_u16(error.status_code()).expect("a status")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = ShardPool::builder().max_bytes(64 << 20).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let service = Router::new().route("/", post(upload)).with_state(pool);
    Ok(axum::serve(listener, service).await?)
}
