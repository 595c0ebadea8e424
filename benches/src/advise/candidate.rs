//! Who is replayed: strategies with settings, a small sweep of each, derived from what the traffic needs.

use std::fmt;

use bufworks::any::AnyBuilder;
use serde::{Deserialize, Serialize};

use super::traffic::Needs;
use crate::drawing::number::memory;

/// Bytes that the pools of a candidate may reserve at the most, all together.
const MOST_RESERVED: usize = 2 << 30;
/// Capacities of bounded pools, in hundredths of the most that was out.
const HEADROOM: [usize; 4] = [100, 125, 200, 400];
/// Bump-pointer shards are so many times as large as the largest request.
const SHARD_FACTORS: [usize; 3] = [1, 4, 16];
/// The largest shard that such a pool may have.
const MOST_SHARD_BYTES: usize = 1 << 30;
/// Settings of `bufshard` that a program has unless it sets them.
const USUAL_CACHE: usize = 4;
const USUAL_BUFFERS: usize = 16;
const MOST_CACHE: usize = 1024;
const MOST_BUFFERS: usize = 1 << 16;
/// The name of a strategy that is replayed under another: a slot pool never falls back here.
const BOUNDED: &str = "bounded-slot";
/// Of the most that was out, the capacity of a strategy of which no more is known, in hundredths.
const OTHER_HEADROOM: usize = 200;

/// A strategy with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "lowercase")]
pub enum Candidate {
    /// `SlotPool`: one for each thread that acquires.
    Slot {
        /// Buffers of a pool that can be out.
        slots: usize,
        /// Bytes of a pool.
        capacity: usize,
    },
    /// `RingPool`: one for each thread that acquires.
    Ring {
        /// Buffers that a ring is made for.
        buffers: usize,
        /// Bytes of a ring.
        capacity: usize,
    },
    /// `BumpPool`: one for all threads.
    Bump {
        /// Bytes of a shard.
        shard_size: usize,
        /// Idle memory that is kept.
        max_idle_bytes: usize,
    },
    /// `ShardPool`: one for all threads.
    Shard {
        /// Buffers of a size class that a thread keeps.
        thread_cache: usize,
        /// Those that a shard keeps.
        shard_buffers: usize,
        /// Smaller requests are allocations of their own.
        smallest_pooled: usize,
    },
    /// `HeapPool`: an allocation for each buffer, zeroed.
    Heap,
    /// `Vec::with_capacity`: the same, not zeroed.
    Vec,
    /// Any other strategy that `AnyPool` has, by its name: nothing here knows what its settings are
    /// for.
    #[serde(untagged)]
    Other(AnyBuilder),
}

impl Candidate {
    /// The strategy's name.
    #[must_use]
    pub fn strategy(&self) -> &'static str {
        match self {
            Self::Other(builder) => builder.name(),
            Self::Slot { .. } => "slot",
            Self::Ring { .. } => "ring",
            Self::Bump { .. } => "bump",
            Self::Shard { .. } => "shard",
            Self::Heap => "heap",
            Self::Vec => "vec",
        }
    }

    /// A name without spaces, which is like no other's.
    #[must_use]
    pub fn id(&self) -> String {
        match self {
            Self::Slot { slots: count, capacity } | Self::Ring { buffers: count, capacity } => {
                format!("{}-{count}-{capacity}", self.strategy())
            }
            Self::Bump { shard_size, max_idle_bytes } => format!("bump-{shard_size}-{max_idle_bytes}"),
            Self::Shard { thread_cache, shard_buffers, smallest_pooled } => {
                format!("shard-{thread_cache}-{shard_buffers}-{smallest_pooled}")
            }
            Self::Heap | Self::Vec => self.strategy().into(),
            Self::Other(builder) => builder.to_string(),
        }
    }

    /// Whether it is what one has without a pool.
    #[must_use]
    pub fn is_control(&self) -> bool {
        matches!(self, Self::Heap | Self::Vec)
    }

    /// Whether each thread that acquires has a pool of its own.
    #[must_use]
    pub fn one_per_thread(&self) -> bool {
        match self {
            Self::Slot { .. } | Self::Ring { .. } => true,
            Self::Other(builder) => builder.build().is_ok_and(|pool| pool.share().is_none()),
            _ => false,
        }
    }

    /// Whether a request of so many bytes is by these settings an allocation of its own.
    #[must_use]
    pub fn is_apart(&self, bytes: usize) -> bool {
        match *self {
            Self::Bump { shard_size, .. } => bytes > shard_size,
            Self::Shard { smallest_pooled, .. } => bytes < smallest_pooled,
            Self::Slot { .. } | Self::Ring { .. } | Self::Other(_) => false,
            Self::Heap | Self::Vec => true,
        }
    }

    /// How one makes it.
    #[must_use]
    pub fn code(&self) -> String {
        match *self {
            Self::Slot { slots, capacity } => format!(
                "// One for each thread that acquires; its buffers may be dropped on any thread.\n\
                 let mut pool = bufslot::SlotPool::builder().slots({slots}).capacity({}).build()?;",
                digits(capacity)
            ),
            Self::Ring { buffers, capacity } => format!(
                "// One for each thread that acquires; its buffers may be dropped on any thread.\n\
                 let mut ring = bufring::RingPool::builder().buffers({buffers}).capacity({}).build()?;",
                digits(capacity)
            ),
            Self::Bump { shard_size, max_idle_bytes } => format!(
                "// One for all threads: each has a clone.\n\
                 let pool = bufbump::BumpPool::builder().shard_size({}).max_idle_bytes({}).build()?;",
                digits(shard_size),
                digits(max_idle_bytes)
            ),
            Self::Shard { thread_cache, shard_buffers, smallest_pooled } => {
                let smallest = if smallest_pooled > 1 {
                    format!(".smallest_pooled({smallest_pooled})")
                } else {
                    String::new()
                };
                format!(
                    "// One for all threads: each has a clone.\n\
                     let pool = bufshard::ShardPool::builder().thread_cache({thread_cache}).shard_buffers({}){smallest}.build()?;",
                    digits(shard_buffers)
                )
            }
            Self::Heap => "let mut pool = bufcore::HeapPool::new();".into(),
            Self::Vec => "let buf: Vec<u8> = Vec::with_capacity(bytes);".into(),
            Self::Other(builder) => {
                format!("let mut pool = \"{builder}\".parse::<bufworks::any::AnyBuilder>()?.build()?;")
            }
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.strategy();
        let size = |bytes: usize| memory(bytes as u64);
        match *self {
            Self::Slot { slots: count, capacity } | Self::Ring { buffers: count, capacity } => {
                write!(f, "{name} {count} × {}", size(capacity))
            }
            Self::Bump { shard_size, max_idle_bytes } => {
                write!(f, "{name} {}, idle {}", size(shard_size), size(max_idle_bytes))
            }
            Self::Shard { thread_cache, shard_buffers, smallest_pooled } => {
                write!(f, "{name} {thread_cache}/{shard_buffers}")?;
                if smallest_pooled > 1 { write!(f, " from {}", size(smallest_pooled)) } else { Ok(()) }
            }
            Self::Heap | Self::Vec => f.write_str(name),
            Self::Other(builder) => write!(f, "{builder}"),
        }
    }
}

/// A number as one writes it in code.
fn digits(number: usize) -> String {
    let plain = number.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Up to a number that people can read, by at most 1/16.
fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 32).max(16))
}

/// Lists all candidates for such traffic, and the strategies that are left out, with the reason.
#[must_use]
pub fn sweep(needs: &Needs) -> (Vec<Candidate>, Vec<String>) {
    let left_out = vec!["mirror: a ring of bytes, which hands out no buffers".to_owned()];
    let mut sweep = Sweep { needs, all: Vec::new(), left_out, swept: vec![BOUNDED] };
    sweep.add_bounded();
    sweep.add_shared();
    sweep.add(Candidate::Heap);
    sweep.add(Candidate::Vec);
    sweep.add_others();
    (sweep.all, sweep.left_out)
}

/// The candidates so far.
struct Sweep<'a> {
    needs: &'a Needs,
    all: Vec<Candidate>,
    left_out: Vec<String>,
    /// The names of the strategies whose settings are known here.
    swept: Vec<&'static str>,
}

impl Sweep<'_> {
    /// Adds a candidate, unless its pools would take too much memory, or it is in the list.
    fn add(&mut self, candidate: Candidate) {
        self.swept.push(candidate.strategy());
        let owners = self.needs.owners;
        let reserved = match candidate {
            Candidate::Slot { capacity, .. } | Candidate::Ring { capacity, .. } => {
                capacity.saturating_mul(owners)
            }
            _ => 0,
        };
        if reserved > MOST_RESERVED {
            let memory = memory(reserved as u64);
            self.left_out.push(format!("{candidate}: its {owners} pools would take {memory}"));
        } else if !self.all.contains(&candidate) {
            self.all.push(candidate);
        }
    }

    /// Adds the pools over one region, of which each thread has its own.
    fn add_bounded(&mut self) {
        let needs = self.needs;
        for slots in [needs.own_live, 2 * needs.own_live] {
            for percent in HEADROOM {
                self.add(Candidate::Slot { slots, capacity: rounded(share(needs.own_bytes, percent)) });
            }
        }
        for percent in HEADROOM {
            let capacity = rounded(share(needs.own_bytes, percent));
            self.add(Candidate::Ring { buffers: needs.own_live, capacity });
        }
    }

    /// Adds the pools that all threads share.
    fn add_shared(&mut self) {
        let needs = self.needs;
        let unit = needs.largest.next_power_of_two().clamp(4 << 10, MOST_SHARD_BYTES);
        for factor in SHARD_FACTORS {
            let shard_size = unit.saturating_mul(factor).min(MOST_SHARD_BYTES);
            for idle in [1, 4] {
                let max_idle_bytes = rounded(needs.bytes.saturating_mul(idle)).max(shard_size);
                self.add(Candidate::Bump { shard_size, max_idle_bytes });
            }
        }
        let own_cache = needs.own_live.clamp(1, MOST_CACHE);
        for thread_cache in [1, USUAL_CACHE, own_cache] {
            for shard_buffers in [USUAL_BUFFERS, needs.live.clamp(1, MOST_BUFFERS)] {
                self.add(Candidate::Shard { thread_cache, shard_buffers, smallest_pooled: 1 });
            }
        }
        // Whether the smaller half is better left to the allocator.
        self.add(Candidate::Shard {
            thread_cache: USUAL_CACHE,
            shard_buffers: USUAL_BUFFERS,
            smallest_pooled: needs.median_size + 1,
        });
    }

    /// Adds the strategies of which only the names are known.
    fn add_others(&mut self) {
        for name in AnyBuilder::NAMES {
            if self.swept.contains(name) {
                continue;
            }
            match other(name, self.needs) {
                Some(candidate) => self.all.push(candidate),
                None => self.left_out.push(format!("{name}: no settings of it are for so much traffic")),
            }
        }
    }
}

/// A strategy by its name, with room for what the traffic needs where it has a setting for that.
fn other(name: &str, needs: &Needs) -> Option<Candidate> {
    let mut builder = AnyBuilder::named(name).ok()?;
    let bytes = rounded(share(needs.bytes, OTHER_HEADROOM));
    let buffers = share(needs.live, OTHER_HEADROOM);
    if builder.settings().contains(&"capacity") && bytes.saturating_mul(needs.owners) > MOST_RESERVED {
        return None;
    }
    for (setting, value) in [("capacity", bytes), ("slots", buffers), ("buffers", buffers)] {
        if builder.settings().contains(&setting) {
            builder.set(setting, &value.to_string()).ok()?;
        }
    }
    Some(Candidate::Other(builder))
}

fn share(bytes: usize, percent: usize) -> usize {
    bytes.saturating_mul(percent).div_ceil(100)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const NEEDS: Needs = Needs {
        acquires: 1000,
        owners: 7,
        largest: 3000,
        median_size: 100,
        live: 60,
        bytes: 90_000,
        own_live: 9,
        own_bytes: 20_000,
    };

    #[test]
    fn settings_follow_the_needs() {
        let (all, left_out) = sweep(&NEEDS);
        let ids: HashSet<String> = all.iter().map(Candidate::id).collect();
        assert_eq!(ids.len(), all.len());
        for strategy in ["slot", "ring", "bump", "shard", "heap", "vec"] {
            assert!(all.iter().any(|candidate| candidate.strategy() == strategy), "{strategy}");
        }
        assert!(left_out.iter().any(|reason| reason.starts_with("mirror")), "{left_out:?}");
        let large = Needs { own_bytes: 40_000_000, ..NEEDS };
        for candidate in sweep(&large).0 {
            if let Candidate::Slot { capacity, .. } | Candidate::Ring { capacity, .. } = candidate {
                assert!((40_000_000..=175_000_000).contains(&capacity), "{candidate}");
            }
        }
        let huge = Needs { own_bytes: 1 << 31, ..NEEDS };
        let (all, left_out) = sweep(&huge);
        // Of those that take all memory at once.
        let is_other = |candidate: &Candidate| matches!(candidate, Candidate::Other(_));
        assert!(all.iter().all(|candidate| is_other(candidate) || !candidate.one_per_thread()));
        assert!(left_out.iter().any(|reason| reason.contains("7 pools would take")), "{left_out:?}");
    }

    /// A strategy of which only the name is known is replayed, sent to a child process, and printed
    /// as code.
    #[test]
    fn any_name_is_a_candidate() {
        for name in AnyBuilder::NAMES {
            let candidate = other(name, &NEEDS).unwrap();
            assert_eq!(candidate.strategy(), *name);
            assert!(candidate.code().contains(&candidate.id()), "{}", candidate.code());
        }
        let candidate = other(BOUNDED, &NEEDS).unwrap();
        assert_eq!(candidate.to_string(), "bounded-slot:capacity=176KiB,slots=120");
        assert!(candidate.one_per_thread() && !candidate.is_control());
        let told = serde_json::to_string(&candidate).unwrap();
        assert_eq!(serde_json::from_str::<Candidate>(&told).unwrap(), candidate, "{told}");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(digits(1_048_576), "1_048_576");
        assert_eq!(digits(999), "999");
        assert_eq!(rounded(1_522_693) % 65_536, 0);
        assert!((1..5000).all(|bytes| rounded(bytes) >= bytes && rounded(bytes) <= bytes + bytes / 16 + 16));
    }
}
