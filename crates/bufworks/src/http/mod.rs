//! HTTP bodies for hyper, axum and tonic: uploads that are collected into a buffer of a pool, and
//! responses from buffers and views.
//!
//! | with | a response | an upload |
//! | --- | --- | --- |
//! | hyper | `Response::new(Body::from(buf))` | `collect(request.into_body(), limit, acquire)` |
//! | axum | `buf.into_bytes()`, or `axum::body::Body::new(Body::from(views))` | the same; an [extractor][uploads] |
//! | tonic | a [`Codec`][grpc], or `tonic::body::Body::new(Body::from(views))` | a [`Codec`][grpc] |
//! | a [websocket] | `Message::Binary(buf.into_bytes())` | its own: set `max_message_size` |
//! | a client | the body of a request is made like a response | a response is collected like an upload |
//!
//! [`collect()`] returns all frames of a body as one buffer, under a limit for one body and under
//! the pool's budget for all. Its [`CollectError`] has the status of the response. While it waits
//! for the pool it does not read, so the client waits too.
//!
//! # What the server itself keeps
//!
//! A pool's budget does not include the server's own buffers, which each connection has. hyper's
//! HTTP/1 keeps up to 408 KiB for a connection that once had a large body, and `axum::serve` has no
//! setting for that. Serve with hyper, and limit them:
//!
//! ```text
//! let mut http = hyper::server::conn::http1::Builder::new();
//! http.max_buf_size(16 << 10); // at least 8 KiB; the headers of a request must fit
//! http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router)).await
//! ```
//!
//! HTTP/2, and thus tonic, keeps what its windows allow. Set `initial_connection_window_size` to
//! `max_concurrent_streams` times `initial_stream_window_size`: uploads that wait for the pool can
//! fill a smaller one, and then those that have a buffer receive nothing, and never release it.
//!
//! # A slow client
//!
//! `collect` acquires the announced length with the first bytes of the body, and holds it until the
//! last byte has arrived. A client that stops in between occupies that much of the budget, so a
//! server needs a deadline: `timeout(seconds, collect(..))`, which includes the wait for the pool.
//! A client that does not read its response occupies the response's buffer. hyper has no deadline
//! for writes: set one for the connection.
//!
//! [uploads]: https://github.com/bufworks/bufworks/blob/main/examples/web/src/uploads.rs
//! [websocket]: https://github.com/bufworks/bufworks/blob/main/examples/outside/websocket/src/main.rs
//! [grpc]: https://github.com/bufworks/bufworks/blob/main/examples/web/src/messages.rs

mod body;
mod collect;

pub use body::Body;
pub use collect::{CollectError, collect};
