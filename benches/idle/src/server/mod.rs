//! The servers: one for each engine, all with the same protocol on the same runtime.

mod growing;
mod mirrored;
mod pooled;

use std::io::{self, BufRead};
use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};
use buftrials::system;
use bufworks::bump::BumpPool;
use bufworks::shard::ShardPool;
use bufworks::{Keeper, Watch};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::engine::Engine;
use pooled::{Locked, Shard, Source};

/// As many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 4096;
/// Bytes that are read at once where nothing is known about the next frame.
const READ_BYTES: usize = 4096;

/// What a server is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Options {
    /// Where it has its buffers from.
    pub engine: Engine,
    /// The most bytes of its pool. Frames that do not fit wait in the system.
    pub budget: Option<usize>,
    /// Bytes that the system keeps for a client that does not read.
    pub send_buffer: Option<u32>,
}

/// What a server says of its pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The most bytes that the pool had of the system at once, where it says so.
    pub most_bytes: Option<usize>,
}

impl Options {
    /// Serves until standard input ends. Prints the address, and a [`Status`] for each line of the
    /// input.
    ///
    /// # Errors
    ///
    /// When it cannot listen, or its pool cannot be made.
    pub fn run(self) -> Result<()> {
        system::raise_open_files();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
        runtime.block_on(async {
            let listener = self.listen().context("cannot listen")?;
            println!("{}", listener.local_addr()?);
            self.serve(listener).await
        })
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = self.send_buffer {
            // A connection that is accepted has it from here.
            socket.set_send_buffer_size(bytes)?;
        }
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        socket.listen(BACKLOG)
    }

    async fn serve(self, listener: TcpListener) -> Result<()> {
        if self.budget.is_some() && !matches!(self.engine, Engine::Shard | Engine::ShardKeeper) {
            bail!("{:?} has no budget", self.engine);
        }
        match self.engine {
            Engine::BytesMut => {
                answer_status(Status::default);
                accept(listener, growing::serve_bytes_mut).await
            }
            Engine::Codec => {
                answer_status(Status::default);
                accept(listener, growing::serve_codec).await
            }
            Engine::Mirror => {
                answer_status(Status::default);
                accept(listener, mirrored::serve).await
            }
            Engine::SlotKeeper => self.serve_locked(listener, "slot").await,
            Engine::RingKeeper => self.serve_locked(listener, "ring").await,
            Engine::Bump | Engine::BumpKeeper => {
                let pool = BumpPool::new()?;
                self.serve_pool(listener, &pool, pool.clone()).await
            }
            Engine::Shard | Engine::ShardKeeper => {
                let builder = ShardPool::builder();
                let pool = self.budget.map_or(builder, |bytes| builder.max_bytes(bytes)).build()?;
                self.serve_pool(listener, &pool, Shard::new(pool.clone())).await
            }
        }
    }

    /// Serves from a pool of the strategy `name`, behind a lock.
    async fn serve_locked(self, listener: TcpListener, name: &str) -> Result<()> {
        let source = Locked::named(name)?;
        self.serve_pool(listener, source.watched(), source.clone()).await
    }

    async fn serve_pool<S: Source>(self, listener: TcpListener, pool: &impl Watch, source: S) -> Result<()> {
        if self.engine.has_keeper() {
            // Its end would be that of the watch.
            std::mem::forget(Keeper::new().watch(pool).spawn()?);
        }
        let asked = source.clone();
        answer_status(move || Status { most_bytes: asked.most_bytes() });
        let by_frame = self.budget.is_some();
        accept(listener, move |socket| pooled::serve(socket, source.clone(), by_frame)).await
    }
}

/// Answers each line of the input, and ends the process with it.
fn answer_status(status: impl Fn() -> Status + Send + 'static) {
    std::thread::spawn(move || {
        for _ in io::stdin().lock().lines().map_while(Result::ok) {
            let text = serde_json::to_string(&status()).unwrap_or_default();
            println!("{text}");
        }
        // Nobody listens any more.
        std::process::exit(0);
    });
}

async fn accept<T>(listener: TcpListener, serve: impl Fn(TcpStream) -> T) -> Result<()>
where
    T: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        let (socket, _) = listener.accept().await.context("cannot accept a connection")?;
        socket.set_nodelay(true)?;
        let served = serve(socket);
        tokio::spawn(async move {
            if let Err(error) = served.await {
                eprintln!("connection lost: {error}");
            }
        });
    }
}
