//! The programs, how much they do, and where their buffers come from.

use core::time::Duration;

use buftrials::allocator::Allocator;
use buftrials::run::Scale;
use bufworks::Keeper;
use bufworks::shard::ShardPool;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::service::Framework;
use crate::stock::Stock;

/// The program over glibc.
pub const PROGRAM: &str = "bufserve";

/// What a program has its buffers from. Each is as a user makes it who sets nothing but a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// tokio-util's `LengthDelimitedCodec`, both ways.
    Codec,
    /// A `Vec` for each buffer, or what the service's framework collects. A `tokio::sync::Semaphore` of KiB is the budget.
    Vec,
    /// The sharded pool.
    Pool,
    /// The sharded pool with a `Keeper`.
    PoolKeeper,
    /// A server without a pool, with nothing set but limits.
    Stock,
    /// The same, where buffers that it keeps for connections are bounded.
    Bounded,
}

impl Engine {
    /// The name that readers know it by.
    #[must_use]
    pub fn title(self, work: Work) -> &'static str {
        match self {
            Self::Codec => "tokio-util codec",
            Self::Vec => match work.framework() {
                Some(framework) => framework.collector(),
                None if work.budget().is_some() => "Vec, semaphore",
                None => "Vec",
            },
            Self::Pool => "ShardPool",
            Self::PoolKeeper => "ShardPool, keeper",
            Self::Bounded => "buffers bounded",
            Self::Stock => {
                if let Work::Stock(stock) = work {
                    stock.name()
                } else {
                    "no pool"
                }
            }
        }
    }

    /// The class that gives it its colour, as in the charts of the matrix.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Codec => "p1",
            Self::Vec => "c1",
            Self::Pool => "v1",
            Self::PoolKeeper => "s3",
            Self::Stock => "p2",
            Self::Bounded => "s1",
        }
    }
}

/// A part of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Uploads and downloads over axum, hyper and tonic, under a budget.
    Service,
    /// That of axum in a container of 64 MiB.
    Container,
    /// Frames with their length in front that are sent back, through a queue for each connection.
    Relay,
    /// Buffers that are acquired and dropped.
    Burst,
    /// Large uploads to a server without a pool, on connections that remain open, as in what follows.
    Upload,
    /// Small uploads to it.
    Requests,
    /// Large messages to a gRPC server, which sends them back.
    Messages,
    /// Large messages to a websocket server, which sends them back.
    Websocket,
    /// Large frames to a relay, one at a time.
    Frames,
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Uploads that are sent back, and downloads, or messages that are sent back.
    Service(Framework),
    /// That of axum in a container.
    Container,
    /// Frames that are sent back.
    Relay {
        /// Bytes of each frame.
        bytes: usize,
        /// Whether there is a budget.
        bounded: bool,
    },
    /// Buffers that are acquired and dropped.
    Burst {
        /// Bytes of each buffer.
        bytes: usize,
        /// Whether one in [`SURVIVES`](crate::burst::SURVIVES) is not dropped.
        survivors: bool,
    },
    /// Messages to a server without a pool, on connections that remain open.
    Stock(Stock),
}

impl Work {
    /// All of it, in the order of the report.
    pub fn all() -> impl Iterator<Item = Self> {
        let relay = |bytes, bounded| Self::Relay { bytes, bounded };
        let bursts = [false, true]
            .into_iter()
            .flat_map(|survivors| [4000, 20_000, 60_000].map(|bytes| Self::Burst { bytes, survivors }));
        let relays = [relay(100, false), relay(4 << 10, false), relay(1 << 20, false), relay(1 << 20, true)];
        let stock = [Stock::Upload, Stock::Requests, Stock::Messages, Stock::Websocket, Stock::Frames];
        let services = [Framework::Axum, Framework::Hyper, Framework::Tonic].map(Self::Service);
        services
            .into_iter()
            .chain([Self::Container])
            .chain(relays)
            .chain(bursts)
            .chain(stock.map(Self::Stock))
    }

    /// The part that it belongs to.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::Service(_) => Part::Service,
            Self::Container => Part::Container,
            Self::Relay { .. } => Part::Relay,
            Self::Burst { .. } => Part::Burst,
            Self::Stock(Stock::Upload) => Part::Upload,
            Self::Stock(Stock::Requests) => Part::Requests,
            Self::Stock(Stock::Messages) => Part::Messages,
            Self::Stock(Stock::Websocket) => Part::Websocket,
            Self::Stock(Stock::Frames) => Part::Frames,
        }
    }

    /// What the service is written with, if it is one.
    #[must_use]
    pub fn framework(self) -> Option<Framework> {
        match self {
            Self::Service(framework) => Some(framework),
            Self::Container => Some(Framework::Axum),
            _ => None,
        }
    }

    /// The most bytes that the program's buffers may have.
    #[must_use]
    pub fn budget(self) -> Option<usize> {
        match self {
            Self::Service(_) | Self::Relay { bounded: true, .. } => Some(64 << 20),
            Self::Container => Some(48 << 20),
            _ => None,
        }
    }

    /// Bytes that the system keeps for a client that does not read, on either side, if that is set: unless it is, megabytes wait there, and
    /// no relay has a queue.
    #[must_use]
    pub fn socket_bytes(self) -> Option<u32> {
        matches!(self, Self::Relay { .. }).then_some(64 << 10)
    }

    /// Whether this engine makes sense here over this allocator.
    #[must_use]
    pub fn has(self, engine: Engine, allocator: Allocator) -> bool {
        // Large blocks of programs that have no pool are the allocator's business.
        if let Self::Stock(stock) = self {
            let is_bounded = engine == Engine::Bounded && stock.can_be_bounded();
            return engine == Engine::Stock || is_bounded;
        }
        let is_brief = matches!(self, Self::Service(Framework::Hyper | Framework::Tonic));
        (allocator == Allocator::Glibc || allocator == Allocator::Mimalloc && !is_brief)
            && match engine {
                Engine::Stock | Engine::Bounded => false,
                Engine::Codec => matches!(self, Self::Relay { bounded: false, .. }),
                // As the README has it.
                Engine::PoolKeeper => self != Self::Container,
                Engine::Pool => !is_brief,
                Engine::Vec => true,
            }
    }

    /// It in words.
    #[must_use]
    pub fn title(self) -> String {
        let size = |bytes: usize| match bytes {
            1024.. if bytes.is_power_of_two() => bufadvise::number::exact_memory(bytes as u64),
            _ => format!("{bytes} B"),
        };
        match self {
            Self::Service(framework) => format!("Service over {}, budget 64 MiB", framework.name()),
            Self::Container => "Service over axum, budget 48 MiB, in a container of 64 MiB".to_owned(),
            Self::Relay { bytes, bounded: false } => format!("Relay of {} frames", size(bytes)),
            Self::Relay { bytes, .. } => format!("Relay of {} frames, budget 64 MiB", size(bytes)),
            Self::Burst { bytes, survivors: false } => {
                format!("Buffers of {}, all dropped", size(bytes))
            }
            Self::Burst { bytes, .. } => format!("Buffers of {}, one in sixteen kept", size(bytes)),
            Self::Stock(stock) => stock.title().to_owned(),
        }
    }
}

/// One program: all that it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// What it does.
    pub work: Work,
    /// Where its buffers come from.
    pub engine: Engine,
    /// The allocator below.
    pub allocator: Allocator,
}

impl Cell {
    /// It in words, without its work.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}, {}", self.engine.title(self.work), self.allocator.name())
    }

    /// The pool that it has its buffers from, if it has one.
    ///
    /// # Errors
    ///
    /// When the system has no memory or thread for it.
    pub fn pool(&self) -> anyhow::Result<Option<ShardPool>> {
        let builder = ShardPool::builder();
        let builder = self.work.budget().map_or(builder, |bytes| builder.max_bytes(bytes));
        Ok(match self.engine {
            Engine::Codec | Engine::Vec | Engine::Stock | Engine::Bounded => None,
            Engine::Pool => Some(builder.build()?),
            Engine::PoolKeeper => {
                let pool = builder.build()?;
                // Its end would be that of the watch.
                core::mem::forget(Keeper::new().watch(&pool).spawn()?);
                Some(pool)
            }
        })
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Connections of the service at once.
    pub service_connections: usize,
    /// Requests of all of them.
    pub requests: usize,
    /// Connections of the relay.
    pub relay_connections: usize,
    /// Bytes of the frames of each connection. Small frames are at most 10 000.
    pub relayed_bytes: usize,
    /// Bytes of the buffers of a burst.
    pub burst_bytes: usize,
    /// Connections of the servers without a pool, at once.
    pub stock_connections: usize,
    /// Bytes of the messages of each of them. Small ones are fewer.
    pub stock_bytes: usize,
    /// From the end of the traffic to the last look at the memory.
    pub silence: Duration,
}

impl Amount {
    /// The amount of a scale.
    #[must_use]
    pub const fn of(scale: Scale) -> Self {
        let full = Self {
            service_connections: 500,
            requests: 8000,
            relay_connections: 200,
            relayed_bytes: 20 << 20,
            burst_bytes: 1 << 30,
            stock_connections: 200,
            stock_bytes: 32 << 20,
            silence: Duration::from_secs(3),
        };
        match scale {
            Scale::Full => full,
            Scale::Quick => Self { requests: 3000, relayed_bytes: 5 << 20, stock_bytes: 8 << 20, ..full },
            Scale::Test => Self {
                service_connections: 20,
                requests: 40,
                relay_connections: 4,
                relayed_bytes: 3 << 20,
                burst_bytes: 8 << 20,
                stock_connections: 4,
                stock_bytes: 16 << 20,
                silence: Duration::from_millis(100),
            },
        }
    }

    /// Frames of each connection of a relay.
    #[must_use]
    pub fn frames(&self, bytes: usize) -> usize {
        (self.relayed_bytes / bytes).min(10_000)
    }
}
