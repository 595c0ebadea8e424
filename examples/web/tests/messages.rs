//! gRPC messages on loopback over tonic: right under a budget, and refused when the pool is full.

use axum::http::uri::PathAndQuery;
use bufworks::shard::ShardPool;
use bufworks_web::messages::{PATH, PooledCodec, routes};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Status};

const BUDGET: usize = 8 << 20;
/// HTTP/2 connections, each with calls at once.
const CONNECTIONS: usize = 50;
const CALLS: usize = 10;

async fn start(pool: &ShardPool) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_routes(routes(pool.clone()).into());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Endpoint::from_shared(format!("http://{address}")).unwrap()
}

async fn send(channel: &Channel, message: Bytes) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    // The client's messages are in a pool of its own.
    let codec = PooledCodec(ShardPool::new().unwrap());
    let answer = grpc.unary(Request::new(message), PathAndQuery::from_static(PATH), codec).await?;
    Ok(answer.into_inner().into_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_calls_share_a_budget() {
    let pool = ShardPool::builder().max_bytes(BUDGET).build().unwrap();
    let endpoint = start(&pool).await;
    let mut calls = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = endpoint.connect().await.unwrap();
        for call in 0..CALLS {
            let channel = channel.clone();
            calls.spawn(async move {
                let mut random = fastrand::Rng::with_seed((connection * CALLS + call) as u64);
                let mut sent = vec![0; random.usize(0..100_000)];
                random.fill(&mut sent);
                let sent = Bytes::from(sent);
                loop {
                    match send(&channel, sent.clone()).await {
                        Ok(answer) => return assert!(answer == sent),
                        Err(status) => assert_eq!(status.code(), Code::Unavailable),
                    }
                }
            });
        }
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    assert!(pool.stats().high_water_bytes <= BUDGET);
}

#[tokio::test]
async fn a_full_pool_is_unavailable() {
    let pool = ShardPool::builder().max_bytes(BUDGET).build().unwrap();
    let channel = start(&pool).await.connect().await.unwrap();
    let held = pool.acquire(BUDGET - (256 << 10)).unwrap();
    let refused = send(&channel, vec![7; 1 << 20].into()).await.unwrap_err();
    assert_eq!((refused.code(), pool.stats().in_use), (Code::Unavailable, 1));
    drop(held);
    assert_eq!(send(&channel, vec![7; 1 << 20].into()).await.unwrap().len(), 1 << 20);
}
