//! What servers have their buffers from, and the allocators below.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Where a server has the memory for its frames from. Every strategy is as a user makes it who
/// sets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// A `BytesMut` for each connection, as mini-redis has it.
    BytesMut,
    /// tokio-util's `LengthDelimitedCodec`.
    Codec,
    /// One slot pool behind a lock, and the heap for what does not fit.
    Slot,
    /// The same with the keeper.
    SlotKeeper,
    /// One ring behind a lock, and the heap for what does not fit.
    Ring,
    /// The same with the keeper.
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

impl Contestant {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::BytesMut,
        Self::Codec,
        Self::Slot,
        Self::SlotKeeper,
        Self::Ring,
        Self::RingKeeper,
        Self::Mirror,
        Self::Bump,
        Self::BumpKeeper,
        Self::Shard,
        Self::ShardKeeper,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BytesMut => "bytes-mut",
            Self::Codec => "codec",
            Self::Slot => "slot",
            Self::SlotKeeper => "slot-keeper",
            Self::Ring => "ring",
            Self::RingKeeper => "ring-keeper",
            Self::Mirror => "mirror",
            Self::Bump => "bump",
            Self::BumpKeeper => "bump-keeper",
            Self::Shard => "shard",
            Self::ShardKeeper => "shard-keeper",
        }
    }

    /// The name that readers know it by.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::BytesMut => "BytesMut per connection",
            Self::Codec => "tokio-util codec",
            Self::Slot => "SlotPool",
            Self::SlotKeeper => "SlotPool, keeper",
            Self::Ring => "RingPool",
            Self::RingKeeper => "RingPool, keeper",
            Self::Mirror => "MirrorRing per connection",
            Self::Bump => "BumpPool",
            Self::BumpKeeper => "BumpPool, keeper",
            Self::Shard => "ShardPool",
            Self::ShardKeeper => "ShardPool, keeper",
        }
    }

    /// The class that gives it its colour, as in the charts of the matrix.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::BytesMut => "c1",
            Self::Codec => "p1",
            Self::Slot | Self::SlotKeeper => "s0",
            Self::Ring | Self::RingKeeper => "s1",
            Self::Bump | Self::BumpKeeper => "s2",
            Self::Shard | Self::ShardKeeper => "s3",
            Self::Mirror => "s4",
        }
    }

    /// The same without a keeper, for one that has a keeper.
    #[must_use]
    pub fn untrimmed(self) -> Option<Self> {
        match self {
            Self::SlotKeeper => Some(Self::Slot),
            Self::RingKeeper => Some(Self::Ring),
            Self::BumpKeeper => Some(Self::Bump),
            Self::ShardKeeper => Some(Self::Shard),
            _ => None,
        }
    }

    /// Whether it has a keeper.
    #[must_use]
    pub fn has_keeper(self) -> bool {
        self.untrimmed().is_some()
    }

    /// Whether another contestant is the same with a keeper.
    #[must_use]
    pub fn lacks_keeper(self) -> bool {
        Self::ALL.into_iter().any(|other| other.untrimmed() == Some(self))
    }

    /// Whether it has marks: it has a keeper, and threads share its pool without a lock. The others
    /// have the large frames from the heap.
    #[must_use]
    pub fn has_marks(self) -> bool {
        matches!(self, Self::BumpKeeper | Self::ShardKeeper)
    }
}

/// What the programs have their memory from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Allocator {
    /// The allocator of the C library.
    Glibc,
    /// jemalloc, through `tikv-jemallocator`.
    Jemalloc,
    /// mimalloc.
    Mimalloc,
}

impl Allocator {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Glibc, Self::Jemalloc, Self::Mimalloc];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
        }
    }

    /// The program over it, in `folder`.
    #[must_use]
    pub fn program(self, folder: &Path) -> PathBuf {
        let name = match self {
            Self::Glibc => "bufidle",
            Self::Jemalloc => "bufidle-jemalloc",
            Self::Mimalloc => "bufidle-mimalloc",
        };
        folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line, the results and the lists agree on names.
    #[test]
    fn every_contestant_has_one_name() {
        assert_eq!(Contestant::value_variants(), Contestant::ALL);
        assert_eq!(Allocator::value_variants(), Allocator::ALL);
        for one in Contestant::ALL {
            assert_eq!(Contestant::from_str(one.name(), false), Ok(one));
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
            assert!(bufadvise::drawing::colours::has_colour(one.class()), "{}", one.name());
        }
        for one in Allocator::ALL {
            assert_eq!(Allocator::from_str(one.name(), false), Ok(one));
        }
    }
}
