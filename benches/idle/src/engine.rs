//! What servers have their buffers from, and the allocators below.

pub use buftrials::allocator::Allocator;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The program over glibc.
pub const PROGRAM: &str = "bufidle";

/// Where a server has the memory for its frames from. Every strategy is as a user makes it who
/// sets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A `BytesMut` for each connection, as mini-redis has it.
    BytesMut,
    /// tokio-util's `LengthDelimitedCodec`.
    Codec,
    /// One slot pool behind a lock with the keeper, and the heap for what does not fit.
    SlotKeeper,
    /// One ring behind a lock with the keeper, and the heap for what does not fit.
    RingKeeper,
    /// A mirrored ring for each connection.
    Mirror,
    /// Bump-pointer shards that nobody trims.
    Bump,
    /// Bump-pointer shards with the keeper.
    BumpKeeper,
    /// The sharded pool that nobody trims.
    Shard,
    /// The sharded pool with the keeper.
    ShardKeeper,
}

impl Engine {
    /// All of them, in the order of the report.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// The name that readers know it by, and the class of its colour, as in the charts of the matrix.
    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::BytesMut => ("BytesMut per connection", "c1"),
            Self::Codec => ("tokio-util codec", "p1"),
            Self::SlotKeeper => ("SlotPool, keeper", "s0"),
            Self::RingKeeper => ("RingPool, keeper", "s1"),
            Self::Mirror => ("MirrorRing per connection", "s4"),
            Self::Bump => ("BumpPool", "s2"),
            Self::BumpKeeper => ("BumpPool, keeper", "s2"),
            Self::Shard => ("ShardPool", "s3"),
            Self::ShardKeeper => ("ShardPool, keeper", "s3"),
        }
    }

    /// The name that readers know it by.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.look().0
    }

    /// The class that gives it its colour, as in the charts of the matrix.
    #[must_use]
    pub fn class(self) -> &'static str {
        self.look().1
    }

    /// Whether it has a keeper.
    #[must_use]
    pub fn has_keeper(self) -> bool {
        matches!(self, Self::SlotKeeper | Self::RingKeeper | Self::BumpKeeper | Self::ShardKeeper)
    }

    /// The same without a keeper, for one that has a keeper and whose pool threads share without a
    /// lock. Those have marks; the others have the large frames from the heap.
    #[must_use]
    pub fn untrimmed(self) -> Option<Self> {
        match self {
            Self::BumpKeeper => Some(Self::Bump),
            Self::ShardKeeper => Some(Self::Shard),
            _ => None,
        }
    }

    /// Whether another engine is the same with a keeper.
    #[must_use]
    pub fn lacks_keeper(self) -> bool {
        matches!(self, Self::Bump | Self::Shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_colour() {
        assert!(Engine::all().all(|one| buftrials::drawing::colours::has_colour(one.class())));
    }
}
