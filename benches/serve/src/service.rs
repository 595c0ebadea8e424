//! The upload and download service: that of `examples/web` over a pool, and what people write today.

use core::convert::Infallible;
use core::ops::Range;
use core::time::Duration;

use anyhow::{Error, Result, bail};
use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use bufworks_web::messages;
use bufworks_web::uploads::{self, CHUNK_BYTES, Memory, pattern};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::clients;
use crate::server::{Budget, Counted, Store};
use crate::stock;
use crate::work::Amount;

/// The largest body.
const LIMIT: usize = 8 << 20;
/// All of the traffic takes less.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the service is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framework {
    /// Uploads that are sent back, and downloads in chunks.
    Axum,
    /// The same with hyper alone.
    Hyper,
    /// gRPC messages that are sent back.
    Tonic,
}

impl Framework {
    /// The name of its crate.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::Hyper => "hyper",
            Self::Tonic => "tonic",
        }
    }

    /// What has its bodies where there is no pool.
    #[must_use]
    pub fn collector(self) -> &'static str {
        match self {
            Self::Axum => "Bytes extractor, semaphore",
            Self::Hyper => "http-body-util, semaphore",
            Self::Tonic => "prost, semaphore",
        }
    }

    /// Its connections.
    #[must_use]
    pub fn connections(self, amount: &Amount) -> usize {
        match self {
            Self::Axum | Self::Hyper => amount.service_connections,
            // Each has several copies of a message, on both sides.
            Self::Tonic => amount.service_connections.div_ceil(4),
        }
    }

    /// The sizes of the bodies.
    #[must_use]
    pub fn sizes(self, amount: &Amount) -> Vec<usize> {
        let range: Range<f64> = match self {
            Self::Axum | Self::Hyper => clients::SIZES,
            // Less than tonic's limit.
            Self::Tonic => clients::SIZES.start..4e6,
        };
        clients::sizes(amount.requests, range)
    }

    /// Serves as long as the process lives.
    pub(crate) async fn serve(self, listener: TcpListener, store: Store) -> Result<()> {
        let memory = |pool| Memory { pool, limit: LIMIT, patience: PATIENCE };
        match (self, store) {
            (_, Store::Codec) => bail!("a codec is for the relay"),
            (Self::Axum, Store::Pool(pool)) => {
                let router = TowerToHyperService::new(uploads::router(memory(pool)));
                match uploads::serve(listener, router).await? {}
            }
            (Self::Axum, Store::Vec(budget)) => {
                match uploads::serve(listener, TowerToHyperService::new(router(budget))).await? {}
            }
            (Self::Hyper, Store::Pool(pool)) => {
                match uploads::serve(listener, uploads::service(memory(pool))).await? {}
            }
            (Self::Hyper, Store::Vec(budget)) => {
                let service = service_fn(move |request| answer(request, budget.clone()));
                match uploads::serve(listener, service).await? {}
            }
            (Self::Tonic, Store::Pool(pool)) => stock::serve_grpc(listener, messages::routes(pool)).await,
            (Self::Tonic, Store::Vec(budget)) => stock::serve_grpc(listener, stock::messages(budget)).await,
        }
    }
}

/// The service with axum's extractor of `Bytes`.
fn router(budget: Budget) -> Router {
    let routes = Router::new().route("/", post(echo)).route("/{bytes}", get(download));
    routes.layer(DefaultBodyLimit::max(LIMIT)).with_state(budget)
}

async fn echo(
    State(budget): State<Budget>,
    request: axum::extract::Request,
) -> Result<Bytes, (StatusCode, String)> {
    let refused = |error: Error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    let permit = budget.permit(request.body().size_hint().lower() as usize).await.map_err(refused)?;
    let bytes = Bytes::from_request(request, &()).await;
    let bytes = bytes.map_err(|rejected| (rejected.status(), rejected.body_text()))?;
    Ok(Bytes::from_owner(Counted { bytes, permit }))
}

async fn download(State(budget): State<Budget>, Path(bytes): Path<usize>) -> axum::body::Body {
    axum::body::Body::from_stream(content(budget, bytes))
}

/// The service with hyper and http-body-util.
async fn answer(request: Request<Incoming>, budget: Budget) -> Result<Response<UnsyncBoxBody<Bytes, Error>>> {
    let body = if let Ok(bytes) = request.uri().path().trim_start_matches('/').parse() {
        StreamBody::new(content(budget, bytes).map_ok(Frame::data)).boxed_unsync()
    } else {
        let permit = budget.permit(request.size_hint().lower() as usize).await?;
        let bytes = Limited::new(request.into_body(), LIMIT).collect().await.map_err(Error::from_boxed)?;
        let bytes = Counted { bytes: bytes.to_bytes(), permit };
        Full::new(Bytes::from_owner(bytes)).map_err(|never: Infallible| match never {}).boxed_unsync()
    };
    Ok(Response::new(body))
}

/// What a download of the example has, in vectors.
fn content(budget: Budget, bytes: usize) -> impl Stream<Item = Result<Bytes>> {
    stream::try_unfold((budget, 0), move |(budget, at)| async move {
        let n = CHUNK_BYTES.min(bytes - at);
        if n == 0 {
            return Ok(None);
        }
        let permit = budget.permit(n).await?;
        let chunk = Counted { bytes: pattern(at, n).to_vec(), permit };
        Ok(Some((Bytes::from_owner(chunk), (budget, at + n))))
    })
}
