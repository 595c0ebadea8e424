//! The third trial: buffers in the sizes of a proxy for websockets, as many live ones as it has
//! connections.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bufworks::AnyPool;
use bufworks::any::AnyBuilder;
use bytes::BytesMut;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::contestant::Allocator;
use crate::record::ProfileRun;
use crate::system;

/// Sizes in bytes, each with how many of ten thousand buffers have it.
///
/// Source: the frequencies that Netty publishes of a websocket proxy, in its benchmark
/// `ByteBufAllocatorAllocPatternBenchmark`. Neighbouring sizes that are rare are one row here, with
/// their mean.
const SIZES: [(usize, u32); 26] = [
    (15, 1215),
    (18, 108),
    (43, 80),
    (128, 2),
    (256, 2424),
    (331, 31),
    (462, 36),
    (534, 26),
    (581, 48),
    (612, 84),
    (626, 106),
    (634, 179),
    (636, 673),
    (664, 14),
    (1024, 3340),
    (1299, 6),
    (2048, 300),
    (2327, 27),
    (4313, 31),
    (4530, 46),
    (7125, 6),
    (8447, 63),
    (8648, 37),
    (15792, 17),
    (16639, 1056),
    (16881, 45),
];
/// Buffers that are drawn beforehand. Then they come again.
const DRAWN: usize = 1 << 14;

/// Where the buffers are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A fresh `Vec` each time.
    Vec,
    /// A fresh `BytesMut` each time.
    BytesMut,
    /// A slot pool.
    Slot,
    /// A ring, and the heap for what does not fit.
    Ring,
    /// Bump-pointer shards.
    Bump,
    /// The sharded pool.
    Shard,
}

impl Source {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 6] = [Self::Vec, Self::BytesMut, Self::Slot, Self::Ring, Self::Bump, Self::Shard];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vec => "vec",
            Self::BytesMut => "bytes-mut",
            Self::Slot => "slot",
            Self::Ring => "ring",
            Self::Bump => "bump",
            Self::Shard => "shard",
        }
    }

    /// The name that readers know it by.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Vec => "Vec",
            Self::BytesMut => "BytesMut",
            Self::Slot => "SlotPool",
            Self::Ring => "RingPool",
            Self::Bump => "BumpPool",
            Self::Shard => "ShardPool",
        }
    }
}

/// What a process that does it is told.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Job {
    /// Where the buffers are from.
    #[arg(long, value_enum)]
    pub source: Source,
    /// The number of live buffers.
    #[arg(long, value_name = "N")]
    pub live: usize,
    /// The number of buffers that are replaced.
    #[arg(long, value_name = "N")]
    pub replaced: usize,
}

/// What it found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Found {
    nanos: f64,
    asked: u64,
    growth: u64,
    kept: u64,
}

impl Job {
    /// Does it in this process, and prints what it found.
    ///
    /// # Errors
    ///
    /// When a pool cannot be made, or the system does not say what the process uses.
    pub fn run(self) -> Result<()> {
        let found = self.find()?;
        println!("{}", serde_json::to_string(&found)?);
        Ok(())
    }

    fn find(self) -> Result<Found> {
        let pattern = vec![1_u8; SIZES.iter().map(|size| size.0).max().unwrap_or_default()];
        let named = |name| Ok::<_, anyhow::Error>(AnyBuilder::named(name)?.build()?);
        match self.source {
            Source::Vec => self.replace(|size| {
                let mut buf = Vec::with_capacity(size);
                buf.extend_from_slice(&pattern[..size]);
                Ok(buf)
            }),
            Source::BytesMut => self.replace(|size| {
                let mut buf = BytesMut::with_capacity(size);
                buf.extend_from_slice(&pattern[..size]);
                Ok(buf)
            }),
            Source::Slot | Source::Ring | Source::Bump | Source::Shard => {
                let (mut pool, mut heap) = (named(self.source.name())?, named("heap")?);
                self.replace(|size| {
                    let acquire = |pool: &mut AnyPool| pool.acquire(size);
                    let mut buf = acquire(&mut pool).or_else(|_| acquire(&mut heap))?;
                    buf.extend_from_slice(&pattern[..size])?;
                    Ok(buf)
                })
            }
        }
    }

    /// Replaces one buffer after the other by one that `make` fills.
    fn replace<B>(self, mut make: impl FnMut(usize) -> Result<B>) -> Result<Found> {
        ensure!(self.live > 0 && self.replaced > 0, "nothing to do");
        let turns = draw(self.live);
        let mut bufs: Vec<Option<(B, usize)>> = (0..self.live).map(|_| None).collect();
        let resident = || system::resident(std::process::id());
        let before = resident()?.bytes;
        let mut turns = turns.iter().cycle();
        let mut replace = |count: usize| {
            for &(place, size) in turns.by_ref().take(count) {
                // The old one goes before the new one comes.
                bufs[place] = None;
                bufs[place] = Some((make(size)?, size));
            }
            anyhow::Ok(())
        };
        // Until every place has had some.
        replace(10 * self.live)?;
        let start = Instant::now();
        replace(self.replaced)?;
        let nanos = start.elapsed().as_secs_f64() * 1e9 / self.replaced as f64;
        let asked = bufs.iter().flatten().map(|(_, size)| *size as u64).sum();
        let growth = resident()?.bytes.saturating_sub(before);
        drop(black_box(bufs));
        let kept = resident()?.bytes.saturating_sub(before);
        Ok(Found { nanos, asked, growth, kept })
    }

    /// Has another process do it over `allocator`.
    ///
    /// # Errors
    ///
    /// When that process fails.
    pub fn run_apart(self, folder: &Path, allocator: Allocator) -> Result<ProfileRun> {
        let program = allocator.program(folder);
        let mut command = Command::new(&program);
        command.args(["profile", "--source", self.source.name()]);
        command.args(["--live", &self.live.to_string(), "--replaced", &self.replaced.to_string()]);
        let output = command.output().with_context(|| format!("cannot start {}", program.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}: {errors}", program.display(), output.status);
        let Found { nanos, asked, growth, kept } = serde_json::from_slice(&output.stdout)?;
        let Self { source, live, .. } = self;
        Ok(ProfileRun { source, allocator, live, nanos, asked, growth, kept })
    }
}

/// Places that are replaced, each with the size of its next buffer.
fn draw(live: usize) -> Vec<(usize, usize)> {
    let mut random = fastrand::Rng::with_seed(42);
    let total: u32 = SIZES.iter().map(|size| size.1).sum();
    let size = |random: &mut fastrand::Rng| {
        let mut at = random.u32(..total);
        let found = SIZES.iter().find(|(_, share)| {
            let is_here = at < *share;
            at = at.saturating_sub(*share);
            is_here
        });
        found.map_or(0, |size| size.0)
    };
    (0..DRAWN).map(|_| (random.usize(..live), size(&mut random))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_as_often_as_published() {
        let (drawn, total) = (draw(100), SIZES.iter().map(|size| size.1).sum::<u32>());
        assert_eq!(total, 10_000);
        for (size, share) in SIZES.into_iter().filter(|(_, share)| *share > 1000) {
            let count = drawn.iter().filter(|turn| turn.1 == size).count();
            let expected = DRAWN * share as usize / 10_000;
            assert!(count.abs_diff(expected) < expected / 5, "{size}: {count}, not {expected}");
        }
        assert!(drawn.iter().all(|&(place, size)| place < 100 && size > 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn every_source_replaces_buffers() {
        for source in Source::ALL {
            let found = Job { source, live: 64, replaced: 500 }.find().unwrap();
            assert!(found.nanos > 0.0 && found.asked > 64 * 15, "{}: {found:?}", source.name());
            assert_eq!(Source::from_str(source.name(), false), Ok(source));
        }
    }
}
