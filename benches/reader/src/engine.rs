//! Where buffers come from.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Where a reader has its buffers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A fresh vector for each read, as `Vec::with_capacity` makes it.
    Vec,
    /// A fresh vector for each read, zeroed.
    Zeroed,
    /// A fresh vector of pages for each read.
    Aligned,
    /// The file is mapped, and nothing is read.
    Map,
    /// The crate of that name.
    Zeropool,
    /// A slot pool.
    Slot,
    /// A ring.
    Ring,
    /// The sharded pool.
    Shard,
    /// The bump-pointer shards.
    Bump,
    /// A mirrored ring of bytes, which is read into by plain calls.
    Mirror,
}

/// The pages below a pool, and whether the kernel knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Ordinary pages, of the heap or a mapping.
    Plain,
    /// An arena of ordinary pages that is registered.
    Registered,
    /// An arena of huge pages.
    Huge,
    /// An arena of huge pages that is registered.
    HugeRegistered,
}

impl Memory {
    /// Whether the pages are huge.
    #[must_use]
    pub fn is_huge(self) -> bool {
        matches!(self, Self::Huge | Self::HugeRegistered)
    }

    /// Whether the kernel knows them.
    #[must_use]
    pub fn is_registered(self) -> bool {
        matches!(self, Self::Registered | Self::HugeRegistered)
    }
}

impl Engine {
    /// Whether it is one of this project's strategies.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Slot | Self::Ring | Self::Shard | Self::Bump | Self::Mirror)
    }

    /// The class of its colour in charts.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Vec => "c0",
            Self::Aligned => "c1",
            Self::Zeroed => "c2",
            Self::Map => "c4",
            Self::Zeropool => "p0",
            Self::Slot => "s0",
            Self::Ring => "s1",
            Self::Bump => "s2",
            Self::Shard => "s3",
            Self::Mirror => "s4",
        }
    }

    /// The kinds of memory that it can have.
    #[must_use]
    pub fn memories(self) -> &'static [Memory] {
        match self {
            Self::Slot | Self::Ring | Self::Shard | Self::Bump => {
                &[Memory::Plain, Memory::Registered, Memory::Huge, Memory::HugeRegistered]
            }
            _ => &[Memory::Plain],
        }
    }
}
