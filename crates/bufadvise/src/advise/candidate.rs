//! Candidates: strategies with settings, a small sweep of each, derived from what the traffic
//! needs.

use std::fmt;
use std::str::FromStr;

use bufworks::any::{AnyBuilder, SettingError};
use serde::Serialize;

use super::strategies::{self, Strategy, VEC};
use super::traffic::Needs;

/// Bytes that the pools of a candidate may reserve at most, all together.
const MOST_RESERVED: usize = 2 << 30;
/// Capacities of bounded pools, in multiples of what they are to have room for.
const CAPACITIES: [usize; 2] = [1, 2];
/// Bump-pointer shards are as many times as large as the largest request.
const SHARD_FACTORS: [usize; 2] = [1, 4];
/// The largest shard that such a pool may have.
const MOST_SHARD_BYTES: usize = 1 << 30;
/// Buffers of a shard of `bufshard` unless a program sets them.
const USUAL_BUFFERS: usize = 128;
const MOST_CACHE: usize = 1024;
const MOST_BUFFERS: usize = 1 << 16;

/// A strategy with its settings, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub(crate) enum Candidate {
    /// `Vec::with_capacity`: an allocation for each buffer, not zeroed.
    Vec,
    /// What `AnyBuilder` builds.
    Pool(AnyBuilder),
}

impl Candidate {
    /// Returns the strategy's name.
    pub(crate) fn strategy(&self) -> &'static str {
        match self {
            Self::Vec => VEC,
            Self::Pool(builder) => builder.name(),
        }
    }

    /// Returns its strategy, if the table has it.
    pub(crate) fn in_table(&self) -> Option<&'static Strategy> {
        strategies::of(self.strategy())
    }
}

/// As `AnyBuilder` reads it; `vec` for no pool.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vec => f.write_str(VEC),
            Self::Pool(builder) => write!(f, "{builder}"),
        }
    }
}

impl FromStr for Candidate {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        if text.trim() == VEC { Ok(Self::Vec) } else { text.parse().map(Self::Pool) }
    }
}

impl From<Candidate> for String {
    fn from(candidate: Candidate) -> Self {
        candidate.to_string()
    }
}

/// Returns the pool of this name, with these settings.
pub(crate) fn pool(name: &str, settings: &[(&str, usize)]) -> Result<Candidate, SettingError> {
    let mut builder = AnyBuilder::named(name)?;
    for (setting, value) in settings {
        builder.set(setting, &value.to_string())?;
    }
    Ok(Candidate::Pool(builder))
}

/// Rounds up to a number that people can read, by at most 1/16.
fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 32).max(16))
}

/// Lists all candidates with room for such traffic.
pub(crate) fn sweep(needs: &Needs) -> Vec<Candidate> {
    let mut sweep = Sweep { owners: needs.owners, all: Vec::new() };
    let room = Room::of(needs);
    strategies::ALL.iter().for_each(|strategy| (strategy.sweep)(&mut sweep, &room));
    let is_other = |name: &&&str| strategies::of(name).is_none() && !strategies::NOT_REPLAYED.contains(name);
    let others = AnyBuilder::NAMES.iter().filter(is_other);
    sweep.all.extend(others.filter_map(|name| other(name, needs)));
    sweep.all
}

/// Settings with room for some traffic.
pub(crate) struct Room {
    /// Buffers that a thread has out.
    pub(crate) live: usize,
    /// Bytes of a thread's own pool.
    pub(crate) capacities: [usize; 2],
    /// Bytes of bump-pointer shards, and what a pool of them keeps.
    pub(crate) shard_sizes: [usize; 2],
    pub(crate) idle_bytes: usize,
    /// Blocks of each class that a thread keeps, and that a shard keeps.
    pub(crate) caches: [(usize, usize); 3],
}

impl Room {
    fn of(needs: &Needs) -> Self {
        let unit = needs.largest.next_power_of_two().clamp(4 << 10, MOST_SHARD_BYTES);
        Self {
            live: needs.own_live,
            capacities: CAPACITIES.map(|times| rounded(needs.own_bytes.saturating_mul(times))),
            shard_sizes: SHARD_FACTORS.map(|factor| unit.saturating_mul(factor).min(MOST_SHARD_BYTES)),
            idle_bytes: rounded(needs.bytes),
            caches: [
                (1, USUAL_BUFFERS),
                (needs.own_live.clamp(1, MOST_CACHE), needs.live.clamp(1, MOST_BUFFERS)),
                (MOST_CACHE, USUAL_BUFFERS),
            ],
        }
    }
}

/// The candidates so far.
pub(crate) struct Sweep {
    /// Threads that acquire.
    owners: usize,
    all: Vec<Candidate>,
}

impl Sweep {
    /// Adds a candidate, unless the settings are impossible, its pools would take too much memory,
    /// or it is in the list.
    pub(crate) fn add(&mut self, name: &str, settings: &[(&str, usize)]) {
        let capacity = settings.iter().find(|setting| setting.0 == "capacity").map_or(0, |setting| setting.1);
        let fits = capacity.saturating_mul(self.owners) <= MOST_RESERVED;
        let candidate = pool(name, settings).ok().filter(|candidate| fits && !self.all.contains(candidate));
        self.all.extend(candidate);
    }
}

/// Returns a strategy by its name, with room for the traffic where it has a setting for that.
fn other(name: &str, room: &Needs) -> Option<Candidate> {
    let mut builder = AnyBuilder::named(name).ok()?;
    let bytes = rounded(room.bytes);
    if builder.settings().contains(&"capacity") && bytes.saturating_mul(room.owners) > MOST_RESERVED {
        return None;
    }
    for (setting, value) in [("capacity", bytes), ("slots", room.live), ("buffers", room.live)] {
        if builder.settings().contains(&setting) {
            builder.set(setting, &value.to_string()).ok()?;
        }
    }
    Some(Candidate::Pool(builder))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::strategies::Owner;
    use super::*;

    const NEEDS: Needs =
        Needs { owners: 7, largest: 3000, live: 60, bytes: 90_000, own_live: 9, own_bytes: 20_000 };

    fn capacity(candidate: &Candidate) -> Option<u64> {
        let Candidate::Pool(builder) = candidate else { return None };
        serde_json::to_value(builder).ok()?.get("capacity")?.as_u64()
    }

    #[test]
    fn settings_follow_the_needs() {
        let all = sweep(&NEEDS);
        let texts: HashSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), all.len());
        for strategy in ["slot", "ring", "bump", "shard"] {
            assert!(all.iter().any(|candidate| candidate.strategy() == strategy), "{strategy}");
        }
        let large = Needs { own_bytes: 40_000_000, ..NEEDS };
        for capacity in sweep(&large).iter().filter_map(capacity) {
            assert!((40_000_000..=175_000_000).contains(&capacity), "{capacity}");
        }
        let huge = Needs { own_bytes: 1 << 31, ..NEEDS };
        let all = sweep(&huge);
        let mut owners = all.iter().filter_map(|candidate| Some(candidate.in_table()?.owner));
        assert!(owners.all(|owner| owner == Owner::All), "{all:?}");
    }

    /// A candidate is sent to a child process, and printed, as one text.
    #[test]
    fn any_candidate_is_a_text() {
        let others = AnyBuilder::NAMES.iter().map(|name| other(name, &NEEDS).expect("settings"));
        for candidate in others.chain(sweep(&NEEDS)) {
            assert_eq!(candidate.to_string().parse(), Ok(candidate));
        }
        let candidate = other("bounded-slot", &NEEDS).expect("settings");
        assert_eq!(candidate.to_string(), "bounded-slot:capacity=88KiB,slots=60");
        assert!("shard:thread_cach=1".parse::<Candidate>().is_err());
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(rounded(1_522_693) % 65_536, 0);
        assert!((1..5000).all(|bytes| rounded(bytes) >= bytes && rounded(bytes) <= bytes + bytes / 16 + 16));
    }
}
