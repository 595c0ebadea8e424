//! Servers without a pool, with nothing set but limits, and their clients.

use core::any::Any;
use core::convert::Infallible;
use core::future::ready;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::uri::PathAndQuery;
use axum::response::IntoResponse;
use axum::routing::post;
use bufworks_web::messages::PATH;
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt, TryStreamExt};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::codec::{Framed, FramedRead, FramedWrite, LengthDelimitedCodec};
use tonic::client::Grpc;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::server::Budget;
use crate::work::Amount;
use crate::{clients, pattern, server};

/// A server without a pool. All clients send and await one answer after the other, and remain connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stock {
    /// axum's extractor of `Bytes`, and large bodies that are answered with their checksum.
    Upload,
    /// The same with small bodies.
    Requests,
    /// tonic, which sends messages back.
    Messages,
    /// tokio-tungstenite, which sends messages back.
    Websocket,
    /// tokio-util's `LengthDelimitedCodec`, both ways, which sends frames back.
    Frames,
}

/// Small bodies are logarithmically uniform.
const SMALL: Range<f64> = 100.0..4096.0;
/// The most of them on a connection.
const MOST_SMALL: usize = 1000;

/// A call that was refused is repeated after that long.
const PAUSE: Duration = Duration::from_millis(5);
/// What hyper reads at once, and keeps for a connection, where that is bounded. Smaller pieces would be of the allocator below bufalloc.
const BOUNDED_BYTES: usize = 64 << 10;

/// What protobuf has of `message Blob { bytes data = 1; }`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Blob {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
}

impl Stock {
    /// It in words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Upload => "Uploads of 8 MiB, connections remain open",
            Self::Requests => "Uploads of 100 B to 4 KiB, connections remain open",
            Self::Messages => "gRPC messages of 4 MB, connections remain open",
            Self::Websocket => "Websocket messages of 1 MiB, connections remain open",
            Self::Frames => "Frames of 1 MiB one at a time, connections remain open",
        }
    }

    /// The crate that it is of.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload | Self::Requests => "axum",
            Self::Messages => "tonic",
            Self::Websocket => "tokio-tungstenite",
            Self::Frames => "tokio-util codec",
        }
    }

    /// Its connections.
    #[must_use]
    pub fn connections(self, amount: &Amount) -> usize {
        match self {
            // Each has several copies of a message, on both sides.
            Self::Messages => amount.stock_connections.div_ceil(4),
            _ => amount.stock_connections,
        }
    }

    /// The sizes of what each connection sends.
    #[must_use]
    pub fn sizes(self, amount: &Amount) -> Vec<usize> {
        let bytes = match self {
            Self::Upload => 8 << 20,
            Self::Requests => return clients::sizes((amount.stock_bytes >> 13).min(MOST_SMALL), SMALL),
            // Less than tonic's limit.
            Self::Messages => 4_000_000,
            Self::Websocket | Self::Frames => 1 << 20,
        };
        vec![bytes; amount.stock_bytes / bytes]
    }

    /// Whether there is a way to bound the buffers that it keeps for connections.
    #[must_use]
    pub fn can_be_bounded(self) -> bool {
        matches!(self, Self::Upload | Self::Frames)
    }

    /// Serves as long as the process lives. The buffers that it keeps for connections may be `bounded`.
    ///
    /// # Errors
    ///
    /// When it cannot accept a connection.
    pub async fn serve(self, listener: TcpListener, bounded: bool) -> Result<()> {
        let limit = DefaultBodyLimit::max(8 << 20);
        let service = Router::new().route("/", post(collect)).layer(limit);
        match self {
            Self::Upload | Self::Requests if !bounded => return Ok(axum::serve(listener, service).await?),
            Self::Messages => return serve_grpc(listener, messages(Budget::new(None))).await,
            _ => {}
        }
        loop {
            let (socket, _) = listener.accept().await.context("cannot accept a connection")?;
            socket.set_nodelay(true)?;
            let service = service.clone();
            tokio::spawn(async move {
                let served = match self {
                    Self::Websocket => relay_messages(socket).await,
                    Self::Frames => relay_frames(socket, bounded).await,
                    _ => serve_bounded(socket, service).await,
                };
                if let Err(error) = served {
                    eprintln!("connection lost: {error:#}");
                }
            });
        }
    }

    /// Sends a message of each of these sizes on each connection, and checks the answers. Returns the connections, which are open.
    ///
    /// # Errors
    ///
    /// When an answer is wrong, or a connection fails.
    pub async fn drive(self, streams: Vec<TcpStream>, sizes: Vec<usize>) -> Result<Vec<impl Any>> {
        let sizes = Arc::new(sizes);
        clients::each(streams, |place, stream| {
            let sizes = Arc::clone(&sizes);
            async move {
                let mut client = Client::new(self, stream).await?;
                for (at, &bytes) in sizes.iter().enumerate() {
                    let sent = client.send(place + at, bytes).await;
                    sent.with_context(|| format!("message {at} of client {place}"))?;
                }
                Ok(client)
            }
        })
        .await
    }
}

/// Makes a service that sends messages back: what tonic's build step writes for one of one method.
pub(crate) fn messages(budget: Budget) -> Router {
    let call = tower::service_fn(move |request| {
        let budget = budget.clone();
        async {
            let echo = tower::service_fn(move |request: Request<Blob>| {
                let budget = budget.clone();
                async move {
                    let blob = request.into_inner();
                    let permit = budget.permit(blob.data.len()).await;
                    let _permit = permit.map_err(|refused| Status::unavailable(refused.to_string()))?;
                    Ok::<_, Status>(Response::new(blob))
                }
            });
            let codec = ProstCodec::<Blob, Blob>::default();
            Ok::<_, Infallible>(tonic::server::Grpc::new(codec).unary(echo, request).await)
        }
    });
    Router::new().route_service(PATH, call)
}

/// Serves with tonic as long as the process lives.
pub(crate) async fn serve_grpc(listener: TcpListener, routes: Router) -> Result<()> {
    let server = Server::builder().add_routes(routes.into());
    Ok(server.serve_with_incoming(TcpIncoming::from(listener)).await?)
}

/// Serves a connection, for which hyper keeps bounded buffers.
async fn serve_bounded(socket: TcpStream, service: Router) -> Result<()> {
    let mut http = http1::Builder::new();
    let http = http.max_buf_size(BOUNDED_BYTES);
    Ok(http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(service)).await?)
}

/// Answers an upload that axum has collected with its checksum.
async fn collect(body: Bytes) -> impl IntoResponse {
    server::checksum(&body)
}

async fn relay_messages(socket: TcpStream) -> Result<()> {
    let (mut to, mut from) = tokio_tungstenite::accept_async(socket).await?.split();
    while let Some(message) = from.next().await {
        match message {
            Ok(message) => to.send(message).await?,
            // The client is through.
            Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn relay_frames(socket: TcpStream, bounded: bool) -> Result<()> {
    let (from, to) = socket.into_split();
    let (mut from, mut to) = (FramedRead::new(from, server::codec()), FramedWrite::new(to, server::codec()));
    while let Some(frame) = from.try_next().await? {
        to.send(frame.freeze()).await?;
        // One whose bytes were split off has little capacity, and holds the whole block.
        for buffer in [from.read_buffer_mut(), to.write_buffer_mut()].into_iter().filter(|_| bounded) {
            if buffer.is_empty() {
                *buffer = BytesMut::new();
            }
        }
    }
    Ok(())
}

/// A connection's other end.
pub(crate) enum Client {
    Http(BufReader<TcpStream>),
    Grpc(Grpc<Channel>),
    Websocket(WebSocketStream<TcpStream>),
    Frames(Framed<TcpStream, LengthDelimitedCodec>),
}

impl Client {
    pub(crate) async fn new(of: Stock, stream: TcpStream) -> Result<Self> {
        Ok(match of {
            Stock::Upload | Stock::Requests => {
                Self::Http(BufReader::with_capacity(clients::CHUNK_BYTES, stream))
            }
            Stock::Messages => {
                let mut stream = Some(TokioIo::new(stream));
                let connect = move |_| ready(stream.take().context("it reconnects"));
                let connector = tower::service_fn(connect);
                Self::Grpc(Grpc::new(
                    Endpoint::from_static("http://localhost").connect_with_connector(connector).await?,
                ))
            }
            Stock::Websocket => {
                Self::Websocket(tokio_tungstenite::client_async("ws://localhost/", stream).await?.0)
            }
            Stock::Frames => Self::Frames(Framed::new(stream, server::codec())),
        })
    }

    /// Sends so many bytes of a place, and checks the answer.
    pub(crate) async fn send(&mut self, place: usize, bytes: usize) -> Result<()> {
        if let Self::Http(stream) = self {
            return clients::upload(stream, place, bytes).await;
        }
        let sent = Bytes::from(pattern::pieces(place, bytes).collect::<Vec<_>>().concat());
        let received = match self {
            Self::Http(_) => unreachable!("returned above"),
            Self::Grpc(grpc) => {
                loop {
                    grpc.ready().await?;
                    let (path, codec) = (PathAndQuery::from_static(PATH), ProstCodec::default());
                    let message = Request::new(Blob { data: sent.to_vec() });
                    match grpc.unary::<Blob, Blob, _>(message, path, codec).await {
                        // Its memory is in use.
                        Err(refused) if refused.code() == Code::Unavailable => sleep(PAUSE).await,
                        answer => break answer?.into_inner().data.into(),
                    }
                }
            }
            Self::Websocket(socket) => {
                socket.send(Message::Binary(sent.clone())).await?;
                socket.next().await.context("the server has ended")??.into_data()
            }
            Self::Frames(frames) => {
                frames.send(sent.clone()).await?;
                frames.next().await.context("the server has ended")??.freeze()
            }
        };
        ensure!(received == sent, "other bytes came back");
        Ok(())
    }
}
