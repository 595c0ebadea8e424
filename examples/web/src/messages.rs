//! gRPC messages in memory of a pool: a codec for tonic.

use core::convert::Infallible;

use axum::Router;
use bufworks::Buf;
use bufworks::shard::{ShardLease, ShardPool};
use bytes::{Buf as _, BufMut, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status};

/// Of the only method.
pub const PATH: &str = "/echo.Echo/Send";

/// Receives messages into memory of a pool, and sends bytes.
///
/// tonic collects a message before it is decoded, in a buffer of its own of up to `max_decoding_message_size` for each call. The pool
/// bounds what all handlers hold.
#[derive(Debug, Clone)]
pub struct PooledCodec(pub ShardPool);

impl Codec for PooledCodec {
    type Encode = Bytes;
    type Decode = Buf<ShardLease>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for PooledCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for PooledCodec {
    type Item = Buf<ShardLease>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        // Not a wait: the other calls of the connection would wait, too.
        let buf = self.0.acquire(from.remaining());
        let mut buf = buf.map_err(|refused| Status::unavailable(refused.to_string()))?;
        buf.put(from);
        Ok(Some(buf))
    }
}

/// Makes a service that sends messages back: what tonic's build step writes, by hand.
pub fn routes(pool: ShardPool) -> Router {
    let call = tower::service_fn(move |request| {
        let codec = PooledCodec(pool.clone());
        async {
            let echo = tower::service_fn(|request: Request<Buf<ShardLease>>| async {
                Ok::<_, Status>(Response::new(request.into_inner().into_bytes()))
            });
            Ok::<_, Infallible>(tonic::server::Grpc::new(codec).unary(echo, request).await)
        }
    });
    Router::new().route_service(PATH, call)
}
