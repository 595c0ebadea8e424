//! A study of some requests: replays without a pool, of each candidate, and more of the best.

use std::time::Duration;

use serde::Serialize;

use super::candidate::{self, Candidate};
use super::children::{Children, Dropped};
use super::replay::Replayed;
use super::strategies::REFUSES;
use super::traffic::Needs;
use super::verdict::{Compared, LEAST_ROUNDS, NOTICED, Prices, ROUNDS};

/// Replays without a pool before any candidate.
const FIRST: usize = 3;
/// Several workers have one by this of the time for a replay, and one worker does it otherwise.
const PATIENCE: u32 = 30;
/// Candidates that are compared in rounds.
const FINALISTS: usize = 4;
/// A child has this many times the time of one without a pool, and a moment to start in.
const SLOW: u32 = 10;
const START: Duration = Duration::from_secs(1);
/// Why a candidate is left out that is not within the limit.
const TOO_MUCH: &str = "takes more memory";
/// What saves this share of the best saving is as good.
const AS_GOOD: f64 = 0.9;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Pool,
    NoPool,
    TooShort,
    /// Much more was in use at once than a replay has, and a pool may help.
    TooLarge,
    /// The replay without a pool failed, or took too long.
    NoAnswer,
}

/// A candidate, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Tried {
    pub(crate) settings: Candidate,
    /// Its last replay, and how it compares; nothing where it was dropped.
    pub(crate) replayed: Option<Replayed>,
    pub(crate) compared: Option<Compared>,
    /// Why it cannot be chosen.
    pub(crate) dropped: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Study {
    pub(crate) verdict: Verdict,
    pub(crate) is_sure: bool,
    /// The fastest replay without a pool, and its share of the program's time.
    pub(crate) now: Replayed,
    pub(crate) now_share: f64,
    /// The candidates, the best first.
    pub(crate) tried: Vec<Tried>,
    /// Why there is no answer, or none that is sure.
    pub(crate) why: Option<String>,
}

impl Study {
    fn of(verdict: Verdict) -> Self {
        let now = Replayed::default();
        Self { verdict, is_sure: true, now, now_share: 0.0, tried: Vec::new(), why: None }
    }

    /// Returns it as one that is not sure, if there is a reason.
    fn unless(self, why: Option<String>) -> Self {
        Self { is_sure: why.is_none(), why, ..self }
    }

    /// Returns the best candidate, if one was compared.
    pub(crate) fn best(&self) -> Option<(&Tried, &Compared)> {
        self.tried.iter().find_map(|one| Some((one, one.compared.as_ref()?)))
    }
}

/// A candidate in the rounds.
struct Finalist {
    candidate: Candidate,
    replays: Vec<Replayed>,
}

/// Replays requests that need this, and judges. `too_large` says why no settings follow.
pub(crate) fn study(
    prices: &Prices,
    needs: &Needs,
    too_large: Option<String>,
    memory_limit: Option<u64>,
    mut children: Children,
) -> Study {
    if !prices.requests.are_enough(&prices.program) {
        return Study::of(Verdict::TooShort);
    }
    if too_large.is_some() && prices.faults_are_little(f64::MAX, 0.0) != Some(true) {
        // A replay of the rest does not have these.
        return Study { why: too_large, ..Study::of(Verdict::TooLarge) };
    }
    let started = children.left();
    let mut now: Vec<Replayed> = Vec::new();
    for _ in 0..FIRST {
        let limit = if children.alone.is_some() { children.left() / PATIENCE } else { children.left() / 2 };
        let mut replayed = children.replay(&Candidate::Vec, limit);
        if replayed.is_err()
            && let Some(alone) = children.alone.take()
        {
            // On a busy machine, workers that hand buffers to each other wait for processors.
            children.schedule = alone;
            now.clear();
            replayed = children.replay(&Candidate::Vec, children.left() / 2);
        }
        match replayed {
            Ok(replayed) => now.push(replayed),
            Err(_) if !now.is_empty() => break,
            Err(why) => {
                let why = Some(format!("the replay {why}"));
                return Study { why, ..Study::of(Verdict::NoAnswer) };
            }
        }
    }
    let children = &children;
    let limit = (started - children.left()) / now.len() as u32 * SLOW + START;
    let fastest = now.iter().min_by_key(|replayed| replayed.nanos).copied().unwrap_or_default();
    let mut study =
        Study { now: fastest, now_share: prices.share(&fastest, &fastest), ..Study::of(Verdict::NoPool) };
    if study.now_share < NOTICED {
        // No pool saves more than all of it.
        let doubt = prices.doubt_of_little(study.now_share);
        return study.unless(too_large.or(doubt).or(prices.doubt_of_replay(&fastest)));
    }
    let mut finalists: Vec<Finalist> = Vec::new();
    for candidate in candidate::sweep(&needs.with_margin()) {
        let fit = children.replay(&candidate, limit).map_err(|why| why.to_string());
        match fit.and_then(|replayed| fits(replayed, memory_limit)) {
            Ok(replayed) => finalists.push(Finalist { candidate, replays: vec![replayed] }),
            Err(why) => study.tried.push(dropped(candidate, why)),
        }
    }
    let worth = |one: &Finalist| prices.compare(&[fastest], &one.replays).worth();
    finalists.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
    let others = finalists.split_off(FINALISTS.min(finalists.len()));
    let compared = rounds(prices, children, limit, fastest, finalists, &mut study);
    let others = others.into_iter().map(|one| tried(&one, prices.compare(&[fastest], &one.replays)));
    let rest = core::mem::take(&mut study.tried);
    study.tried = compared.into_iter().chain(others).chain(rest).collect();
    if let Some((_, best)) = study.best() {
        let of_replay = prices.doubt_of_replay(&fastest).filter(|_| !best.helps());
        let doubt = too_large.clone().or(of_replay).or(prices.doubt(best));
        study.verdict = match (best.helps(), &too_large) {
            (true, None) if prices.requests.are_few() => Verdict::TooShort,
            (true, None) => Verdict::Pool,
            (true, Some(_)) => Verdict::TooLarge,
            (false, _) => Verdict::NoPool,
        };
        return study.unless(doubt);
    }
    let is_over = |one: &Tried| one.dropped.as_ref().is_none_or(|why| why.starts_with(TOO_MUCH));
    let dropped = |one: &Tried| Some(format!("the replay of `{}` {}", one.settings, one.dropped.as_ref()?));
    let over = study.tried.iter().any(is_over).then(|| "no pool is within the limit of memory".into());
    let why = over.or_else(|| study.tried.iter().find_map(dropped));
    Study { why, ..Study::of(Verdict::NoAnswer) }
}

/// Returns a replay that can be chosen, or why it cannot.
fn fits(replayed: Replayed, memory_limit: Option<u64>) -> Result<Replayed, String> {
    if replayed.refused > 0 {
        return Err(format!("had no room for {} requests", replayed.refused));
    }
    match memory_limit.filter(|limit| replayed.bytes > *limit) {
        Some(_) => Err(format!("{TOO_MUCH} than the limit")),
        None => Ok(replayed),
    }
}

fn dropped(settings: Candidate, why: String) -> Tried {
    Tried { settings, replayed: None, compared: None, dropped: Some(why) }
}

fn tried(one: &Finalist, compared: Compared) -> Tried {
    let replayed = one.replays.last().copied();
    Tried { settings: one.candidate, replayed, compared: Some(compared), dropped: None }
}

/// Compares the finalists in rounds, in each of which each of them is replayed, and what is there
/// now. Returns them, the best first.
fn rounds(
    prices: &Prices,
    children: &Children,
    limit: Duration,
    fastest: Replayed,
    mut finalists: Vec<Finalist>,
    study: &mut Study,
) -> Vec<Tried> {
    let mut now = vec![fastest];
    for round in 0..ROUNDS {
        let Ok(this) = children.replay(&Candidate::Vec, limit) else { break };
        let replays: Vec<_> = finalists.iter().map(|one| children.replay(&one.candidate, limit)).collect();
        if replays.contains(&Err(Dropped::NoTime)) || children.left().is_zero() {
            // Half a round compares nothing.
            break;
        }
        if round == 0 {
            // Those of the first look were not of one round.
            now.clear();
            finalists.iter_mut().for_each(|one| one.replays.clear());
        }
        now.push(this);
        let mut kept = Vec::new();
        for (mut one, replay) in finalists.into_iter().zip(replays) {
            match replay {
                Ok(replayed) => {
                    one.replays.push(replayed);
                    kept.push(one);
                }
                Err(why) => study.tried.push(dropped(one.candidate, why.to_string())),
            }
        }
        finalists = kept;
        let is_clear = |one: &Finalist| prices.compare(&now, &one.replays).is_clear();
        if round + 1 >= LEAST_ROUNDS && finalists.iter().all(is_clear) {
            break;
        }
    }
    let mut all: Vec<(Compared, Finalist)> =
        finalists.into_iter().map(|one| (prices.compare(&now, &one.replays), one)).collect();
    all.sort_by(|one, other| other.0.worth().total_cmp(&one.0.worth()));
    if all.is_empty() {
        return Vec::new();
    }
    let best = best(&all);
    all[..=best].rotate_right(1);
    all.into_iter().map(|(compared, one)| tried(&one, compared)).collect()
}

/// Returns which of the finalists, the most worth first, is the best: of those that are as good,
/// one that never refuses, and of these the one with the least memory. What was recorded need not
/// be the most that the program ever has in use.
fn best(all: &[(Compared, Finalist)]) -> usize {
    let good = all.first().map_or(0.0, |(best, _)| AS_GOOD * best.worth());
    let rank = |(_, (_, one)): &(usize, &(Compared, Finalist))| {
        let refuses = one.candidate.in_table().is_none_or(|strategy| strategy.beyond == REFUSES);
        (refuses, one.replays.iter().map(|replayed| replayed.bytes).max())
    };
    let as_good = all.iter().enumerate().take_while(|(_, (compared, _))| compared.worth() >= good);
    as_good.min_by_key(rank).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_are_as_good_none_refuses_or_is_large() {
        let one = |settings: &str, saved: f64, bytes| {
            let replays = vec![Replayed { bytes, ..Replayed::default() }];
            let finalist = Finalist { candidate: settings.parse().unwrap(), replays };
            (Compared::of_equal_rounds(saved, 0.0), finalist)
        };
        let (ring, shard) = (one("ring", 0.3, 1), one("shard", 0.29, 9));
        assert_eq!(best(&[ring, shard, one("bump", 0.28, 8), one("slot", 0.2, 1)]), 2);
        assert_eq!(best(&[one("ring", 0.3, 1), one("slot", 0.2, 1)]), 0);
    }
}
