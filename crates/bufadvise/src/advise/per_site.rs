//! The verdict by call site: the largest of a heap recording, each replayed by itself.
//!
//! The time that a call site takes now is measured as the candidates are: by a replay of its
//! objects, without a pool. It is `heap` where it requests zeros, and `vec` where it does not.
//! Where objects grow, each step is an allocation and a release that touch their pages; the bytes
//! are not copied.

use anyhow::{Context, Result};
use buftrace::{Growth, Object, Profile, Site};
use serde::Serialize;

use super::analysis::Analysis;
use super::candidate::{self, Candidate};
use super::choice::{Choice, NOTICED, Prices};
use super::entry::{Entry, Times};
use super::tournament::{Effort, Parent, Size, TEST_EVENTS};
use super::traffic::{Needs, Traffic};
use super::traffic_pipe;
use crate::call_sites::{CallSite, Joined, sums};
use crate::names::Stacks;

/// The most events of a call site that are replayed.
const MOST_EVENTS: usize = 1 << 17;
/// Each call site has this share of the time that the whole has.
const PART_OF_TIME: f64 = 0.2;
/// From this number of reallocations of an object on, on average, they are replayed too.
const GROWS: f64 = 0.01;
/// Replays of the steps in which objects grow.
const STEPS: Size = Size { processes: 5, rounds: 3 };
/// Fewer samples say too little.
const FEW_SAMPLES: usize = 30;
/// Times of processes are apart by this number of standard deviations between 10 % and 90 %.
const DEVIATIONS: f64 = 2.56;
/// The standard error of a median, in those of a mean.
const OF_MEDIAN: f64 = 1.25;

/// What the requests of a call site take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// A strategy with its settings; `vec` and `heap` are no pools.
    pub(crate) settings: Candidate,
    /// For each request.
    pub(crate) times: Times,
    /// The time in shares of a processor, at the recorded rate.
    pub(crate) processor: f64,
    /// Memory at its peak.
    pub(crate) bytes: u64,
}

impl Cost {
    fn of(entry: &Entry) -> Self {
        let Entry { candidate, times, processor, .. } = entry;
        Self { settings: *candidate, times: *times, processor: *processor, bytes: entry.bytes() }
    }

    /// Returns the standard error of the processor's share that comes from measuring.
    fn error(&self) -> f64 {
        let Times { median, p10, p90, processes } = self.times;
        let nanos = OF_MEDIAN * (p90 - p10) / DEVIATIONS / (processes.max(1) as f64).sqrt();
        self.processor * nanos / median.max(f64::MIN_POSITIVE)
    }
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Certainty {
    Sure,
    FairlySure,
    /// Too few of its objects were recorded.
    FewSamples,
    /// What is saved may be more than somebody would notice, or less.
    MayNotBeNoticed,
    /// The replays differ too much.
    Noisy,
}

/// The verdict on one call site.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    #[serde(flatten)]
    pub(crate) call_site: CallSite,
    pub(crate) requests_per_second: f64,
    /// The standard error that comes from sampling.
    pub(crate) requests_per_second_error: f64,
    /// Of all bytes that were requested.
    pub(crate) share_of_bytes: f64,
    /// Of all bytes times the seconds for which they were out.
    pub(crate) share_of_held: f64,
    /// Allocations for each request: more than one where objects grow.
    pub(crate) allocations_per_request: f64,
    /// What it takes as it is.
    pub(crate) now: Cost,
    /// What it would take without a pool, if each object had its largest size from the start. There
    /// for call sites whose objects grow.
    pub(crate) largest_at_once: Option<Cost>,
    /// What to take. Nothing where no candidate is within the limit of memory.
    pub(crate) choice: Option<Cost>,
    /// Whether that is no pool.
    pub(crate) no_pool: bool,
    /// What the choice saves in shares of a processor, and its standard error from sampling and
    /// measuring.
    pub(crate) saved: f64,
    pub(crate) saved_error: f64,
    pub(crate) sure: Certainty,
}

/// Replays the largest call sites, each by itself.
pub(super) fn advise(analysis: &Analysis<'_>, heap: &Profile, parent: &Parent<'_>) -> Result<Vec<Verdict>> {
    let stacks = Stacks::of(heap);
    let joined = Joined::new(heap, &stacks, analysis.frames);
    let call_sites = joined.call_sites(heap, &stacks);
    let (bytes, held) = sums(&call_sites);
    let seconds = heap.duration_ns().max(1) as f64 / 1e9;
    let mut verdicts = Vec::new();
    for call_site in call_sites.into_iter().take(analysis.sites) {
        let site = &call_site.site;
        let is_it = |object: &Object| joined.number(object.stack) == call_site.number;
        let prices = Prices { memory_limit: analysis.memory_limit, rate: site.count / seconds };
        let replay = Replay { analysis, parent, prices, heap };
        let Some(found) = replay.run(is_it, site.zeroed > site.count / 2.0)? else { continue };
        let relative = site.count_error / site.count.max(f64::MIN_POSITIVE);
        let (saved, saved_error) = found.saved(relative);
        let near = found.choice.as_ref().map_or(0.0, |(choice, _)| choice.sure);
        verdicts.push(Verdict {
            requests_per_second: site.count / seconds,
            requests_per_second_error: site.count_error / seconds,
            share_of_bytes: site.bytes / bytes,
            share_of_held: site.byte_seconds / held,
            allocations_per_request: found.steps,
            no_pool: found.choice.as_ref().is_some_and(|(choice, _)| choice.no_pool),
            sure: sure(site, near, saved, saved_error),
            choice: found.choice.map(|(_, cost)| cost),
            now: found.now,
            largest_at_once: found.at_once,
            saved,
            saved_error,
            call_site,
        });
    }
    Ok(verdicts)
}

/// What is replayed of a call site.
struct Replay<'a> {
    analysis: &'a Analysis<'a>,
    parent: &'a Parent<'a>,
    prices: Prices,
    heap: &'a Profile,
}

/// What came of it.
struct Found {
    steps: f64,
    now: Cost,
    at_once: Option<Cost>,
    choice: Option<(Choice, Cost)>,
}

impl Found {
    /// Returns what the choice saves, and the error, where the rate of requests has that relative
    /// error.
    fn saved(&self, rate_error: f64) -> (f64, f64) {
        let Some((_, choice)) = &self.choice else { return (0.0, 0.0) };
        let saved = self.now.processor - choice.processor;
        // A call site that was not changed was not measured twice.
        let measured = if self.now == *choice { 0.0 } else { self.now.error().hypot(choice.error()) };
        (saved, measured.hypot(saved * rate_error))
    }
}

impl Replay<'_> {
    /// Replays the objects that `is_it` chooses; returns `None` where none can be replayed.
    fn run(&self, mut is_it: impl FnMut(&Object) -> bool, is_zeroed: bool) -> Result<Option<Found>> {
        let (most, effort) = if self.analysis.is_test {
            (TEST_EVENTS, Effort::test())
        } else {
            (MOST_EVENTS, Effort::short(f64::from(self.analysis.seconds) * PART_OF_TIME))
        };
        let traffic = Traffic::new(&self.heap.expanded_trace(Growth::Largest, most, &mut is_it));
        if traffic.buffers.is_empty() {
            return Ok(None);
        }
        let candidates = candidate::sweep(&Needs::of(&traffic).with_margin());
        let outcome = self.replay(&traffic, &candidates, |parent| parent.run(&effort))?;
        let control = outcome.without_pool(is_zeroed);
        let at_once = Cost::of(&outcome.entries[control]);
        let steps = self.allocations(&mut is_it);
        let grows = steps > 1.0 + GROWS;
        let now = if grows { self.growing(is_it, &at_once, steps, most)? } else { at_once.clone() };
        let choice = outcome.choose(&self.prices);
        let choice = choice.map(|choice| {
            let cost = Cost::of(&outcome.entries[choice.pick]);
            (choice, cost)
        });
        Ok(Some(Found { steps, now, at_once: grows.then_some(at_once), choice }))
    }

    /// Allocations for each object: one, and one for each time that it grew.
    fn allocations(&self, mut is_it: impl FnMut(&Object) -> bool) -> f64 {
        let objects = self.heap.objects().iter().filter(|object| is_it(object));
        let (all, objects) = objects.fold((0.0, 0.0), |(all, objects), object| {
            let weight = object.weight();
            (all + weight * (1.0 + f64::from(object.resizes)), objects + weight)
        });
        all / f64::max(objects, 1.0)
    }

    /// Returns what a call site takes whose objects grow in steps.
    fn growing(
        &self,
        is_it: impl FnMut(&Object) -> bool,
        at_once: &Cost,
        steps: f64,
        most: usize,
    ) -> Result<Cost> {
        let traffic = Traffic::new(&self.heap.expanded_trace(Growth::Steps, most, is_it));
        // Both, so that a slow process can be told from a slow candidate.
        let candidates = [at_once.settings, Candidate::Vec, "heap".parse()?];
        let size = if self.analysis.is_test { Size { processes: 1, rounds: 1 } } else { STEPS };
        let times =
            self.replay(&traffic, &candidates, |parent| parent.time(&[0, 1, 2], size, "Rounds of growth."))?;
        let one = Times::of(times.first().context("nothing was timed")?);
        let times = Times { median: one.median * steps, p10: one.p10 * steps, p90: one.p90 * steps, ..one };
        Ok(Cost { times, processor: self.prices.share(times.median), ..at_once.clone() })
    }

    /// Has children replay such traffic.
    fn replay<T>(
        &self,
        traffic: &Traffic,
        candidates: &[Candidate],
        run: impl FnOnce(&Parent<'_>) -> Result<T>,
    ) -> Result<T> {
        run(&Parent {
            program: self.parent.program.clone(),
            traffic,
            piped: traffic_pipe::both(traffic),
            candidates,
            prices: self.prices,
            given: None,
        })
    }
}

/// Returns how sure the verdict on a call site is whose choice is near the best in a share `near`
/// of the resamplings.
fn sure(site: &Site, near: f64, saved: f64, error: f64) -> Certainty {
    let (low, high) = (saved - 2.0 * error, saved + 2.0 * error);
    if site.count_error > 0.0 && site.samples < FEW_SAMPLES {
        Certainty::FewSamples
    } else if low < NOTICED && high > NOTICED {
        Certainty::MayNotBeNoticed
    } else if near < 0.8 {
        Certainty::Noisy
    } else if near < 0.95 || site.count_error > site.count / 10.0 {
        Certainty::FairlySure
    } else {
        Certainty::Sure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(samples: usize, count: f64, count_error: f64) -> Site {
        let mut site = Site::default();
        (site.samples, site.count, site.count_error) = (samples, count, count_error);
        site
    }

    #[test]
    fn few_samples_and_close_calls_are_not_sure() {
        let exact = site(10, 10.0, 0.0);
        assert_eq!(sure(&exact, 1.0, 0.5, 0.01), Certainty::Sure);
        assert_eq!(sure(&exact, 0.9, 0.5, 0.01), Certainty::FairlySure);
        assert_eq!(sure(&exact, 0.5, 0.5, 0.01), Certainty::Noisy);
        assert_eq!(sure(&exact, 1.0, 0.0, 0.0), Certainty::Sure);
        // Between 0.02 % and 0.22 % of a processor: somebody may notice 0.1 %.
        assert_eq!(sure(&exact, 1.0, 0.0012, 0.0005), Certainty::MayNotBeNoticed);
        assert_eq!(sure(&site(10, 1000.0, 300.0), 1.0, 0.5, 0.01), Certainty::FewSamples);
        assert_eq!(sure(&site(90, 9000.0, 950.0), 1.0, 0.5, 0.01), Certainty::FairlySure);
        assert_eq!(sure(&site(900, 9000.0, 95.0), 1.0, 0.5, 0.01), Certainty::Sure);
    }

    #[test]
    fn the_error_has_both_parts() {
        let cost = |settings: &str, median: f64, spread: f64| Cost {
            settings: settings.parse().unwrap(),
            times: Times { median, p10: median - spread, p90: median + spread, processes: 4 },
            processor: median / 1000.0,
            bytes: 0,
        };
        let choice = |cost: Cost| {
            let choice = Choice { pick: 0, no_pool: false, fastest: 0, near: Vec::new(), sure: 1.0 };
            Some((choice, cost))
        };
        let now = || cost("vec", 500.0, 0.0);
        let found = |choice| Found { steps: 1.0, now: now(), at_once: None, choice };
        let close = |one: (f64, f64), other: (f64, f64)| {
            assert!((one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9, "{one:?}");
        };
        // A tenth of the saved 0.4; then the spread: 1.25 × 51.2 / 2.56 / 2 ns.
        close(found(choice(cost("slot", 100.0, 0.0))).saved(0.1), (0.4, 0.04));
        close(found(choice(cost("slot", 100.0, 25.6))).saved(0.0), (0.4, 0.0125));
        close(found(choice(cost("vec", 500.0, 0.0))).saved(0.1), (0.0, 0.0));
        close(found(None).saved(0.1), (0.0, 0.0));
    }
}
