//! The schedule of each worker of a replay: the recorded threads are shared out among as many
//! workers as there are processors.
//!
//! The order between workers is that of the recording, as far as a request can see it. A release
//! waits for its buffer, which is handed over. An acquire waits for the release of all buffers of
//! its recorded thread that had been released by then. So a pool gets the recorded requests in the
//! recorded order, and never has more out than it had; some buffers come back sooner. Each wait is
//! for something earlier in the trace, so nobody waits for ever.

use std::collections::{HashMap, VecDeque};

use super::traffic::{Act, Traffic};

/// The most workers.
const MOST_WORKERS: usize = 16;
/// How often memory is measured in a replay, at equal distances.
const LOOKS: usize = 16;
/// How often threads are given to workers anew at most.
const ROUNDS: usize = 20;

/// One thing that a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Waits until that worker has released `releases` buffers since the start of the run.
    Await { worker: u32, releases: u32 },
    /// Takes a buffer for the `to`-th worker, which will know it by its place.
    Acquire { source: u32, bytes: u32, place: u32, to: u32 },
    /// Drops what the `from`-th worker took for the place.
    Release { from: u32, place: u32, bytes: u32 },
    /// Measures memory.
    Look,
}

/// What one worker does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// In order.
    pub(crate) steps: Vec<Step>,
    /// For each acquire and release, the buffer's number in the traffic.
    #[cfg(test)]
    pub(crate) buffers: Vec<u32>,
    /// The pools of the threads that it plays, by their number among all (`Schedule::pools`).
    /// `Step::Acquire` has the place in this list.
    pub(crate) sources: Vec<u32>,
    /// Its releases.
    pub(crate) releases: u32,
}

/// What all workers do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// By worker.
    pub(crate) parts: Vec<Part>,
    /// Places: all are below this.
    pub(crate) places: usize,
    /// Buffers in all.
    pub(crate) buffers: usize,
    /// Pools, where each thread that acquires has its own.
    pub(crate) pools: usize,
    /// The most bytes of a buffer that are touched.
    pub(crate) touched: usize,
}

/// Returns how many workers play such traffic on `processors` processors: one for one thread, two
/// at least where buffers cross threads.
pub(crate) fn workers(traffic: &Traffic, processors: usize) -> usize {
    let crosses = traffic.buffers.iter().any(|buffer| buffer.from != buffer.to);
    processors.clamp(1 + usize::from(crosses), MOST_WORKERS).min(traffic.threads.max(1))
}

/// Gives each recorded thread to a worker: the busiest first, each to where most of the threads
/// that it exchanges buffers with are not, and to the least busy of these.
fn assign(traffic: &Traffic, workers: usize) -> Vec<u32> {
    let mut work = vec![0_u64; traffic.threads];
    for (thread, _) in &traffic.acts {
        work[*thread as usize] += 1;
    }
    let mut exchanged: HashMap<(u32, u32), u64> = HashMap::new();
    for buffer in traffic.buffers.iter().filter(|buffer| buffer.from != buffer.to) {
        *exchanged.entry((buffer.from, buffer.to)).or_default() += 1;
        *exchanged.entry((buffer.to, buffer.from)).or_default() += 1;
    }
    let mut partners: Vec<Vec<(u32, u64)>> = vec![Vec::new(); traffic.threads];
    for ((one, other), count) in exchanged {
        partners[one as usize].push((other, count));
    }
    let total: u64 = work.iter().sum();
    let mut order: Vec<usize> = (0..traffic.threads).collect();
    order.sort_by_key(|thread| std::cmp::Reverse(work[*thread]));
    let mut load = vec![0; workers];
    let mut assigned = vec![u32::MAX; traffic.threads];
    let together = |assigned: &[u32], thread: usize, worker: usize| -> u64 {
        let here = |partner: &&(u32, u64)| assigned[partner.0 as usize] == worker as u32;
        partners[thread].iter().filter(here).map(|partner| partner.1).sum()
    };
    // Later rounds move those that would be better elsewhere by now, until nobody would, or it goes
    // round and round.
    for _ in 0..ROUNDS {
        let before = assigned.clone();
        for &thread in &order {
            if let Some(load) = load.get_mut(assigned[thread] as usize) {
                *load -= work[thread];
            }
            let rank = |worker: &usize| {
                // Nobody gets so much that the others would only wait for it.
                let full = load[*worker] + work[thread] > total / workers as u64 * 6 / 5 && load[*worker] > 0;
                (full, together(&assigned, thread, *worker), load[*worker])
            };
            let best = (0..workers).min_by_key(rank).unwrap_or(0);
            assigned[thread] = best as u32;
            load[best] += work[thread];
        }
        if assigned == before {
            break;
        }
    }
    assigned
}

/// The writing of a schedule: what has been given out and come back by the event that is looked at.
struct Writer<'a> {
    traffic: &'a Traffic,
    assigned: &'a [u32],
    parts: Vec<Part>,
    /// By thread that has acquired: its pool, and the pool's place with the worker.
    pools: Vec<Option<(usize, u32)>>,
    /// Free places, with the release that freed each: worker and count. Twice as many as are
    /// needed, first in, first out, so that hardly anybody waits for a place.
    free: VecDeque<(u32, Option<(u32, u32)>)>,
    places: u32,
    live: usize,
    most_live: usize,
    /// By buffer.
    place_of: Vec<u32>,
    /// By buffer.
    pool_of: Vec<usize>,
    /// What each pool got back so far: by worker, how many releases had been made there by then.
    back: Vec<Vec<u32>>,
    /// What each worker knows of the others' releases by what it has waited for.
    known: Vec<Vec<u32>>,
}

impl<'a> Writer<'a> {
    fn new(traffic: &'a Traffic, assigned: &'a [u32], workers: usize) -> Self {
        let buffers = traffic.buffers.len();
        Self {
            traffic,
            assigned,
            parts: (0..workers).map(|_| Part::default()).collect(),
            pools: vec![None; traffic.threads],
            free: VecDeque::new(),
            places: 0,
            live: 0,
            most_live: 0,
            place_of: vec![0; buffers],
            pool_of: vec![0; buffers],
            back: Vec::new(),
            known: vec![vec![0; workers]; workers],
        }
    }

    /// Notes that `thread` takes the buffer of this number.
    fn acquire(&mut self, thread: usize, number: u32) {
        let worker = self.assigned[thread] as usize;
        let buffer = self.traffic.buffers[number as usize];
        self.live += 1;
        self.most_live = self.most_live.max(self.live);
        let (place, freed) = if self.free.len() > self.most_live {
            self.free.pop_front().unwrap_or((0, None))
        } else {
            self.places += 1;
            (self.places - 1, None)
        };
        self.place_of[number as usize] = place;
        let workers = self.parts.len();
        let part = &mut self.parts[worker];
        let (pool, source) = *self.pools[thread].get_or_insert_with(|| {
            part.sources.push(self.back.len() as u32);
            self.back.push(vec![0; workers]);
            (self.back.len() - 1, part.sources.len() as u32 - 1)
        });
        self.pool_of[number as usize] = pool;
        for other in (0..workers).filter(|other| *other != worker) {
            let place = freed.filter(|freed| freed.0 as usize == other).map_or(0, |freed| freed.1);
            let releases = self.back[pool][other].max(place);
            let known = &mut self.known[worker][other];
            if releases > *known {
                *known = releases;
                part.steps.push(Step::Await { worker: other as u32, releases });
            }
        }
        let to = self.assigned[buffer.to as usize];
        part.steps.push(Step::Acquire { source, bytes: buffer.bytes, place, to });
        #[cfg(test)]
        part.buffers.push(number);
    }

    /// Notes that `thread` drops the buffer of this number.
    fn release(&mut self, thread: usize, number: u32) {
        let worker = self.assigned[thread];
        let buffer = self.traffic.buffers[number as usize];
        self.live -= 1;
        let place = self.place_of[number as usize];
        let part = &mut self.parts[worker as usize];
        part.steps.push(Step::Release {
            from: self.assigned[buffer.from as usize],
            place,
            bytes: buffer.bytes,
        });
        #[cfg(test)]
        part.buffers.push(number);
        part.releases += 1;
        self.back[self.pool_of[number as usize]][worker as usize] = part.releases;
        self.free.push_back((place, Some((worker, part.releases))));
    }

    fn finish(self) -> Schedule {
        Schedule {
            places: self.places as usize,
            buffers: self.traffic.buffers.len(),
            pools: self.back.len(),
            parts: self.parts,
            touched: usize::MAX,
        }
    }
}

impl Schedule {
    /// Shares the traffic out to `workers` workers.
    pub(crate) fn new(traffic: &Traffic, workers: usize) -> Self {
        let assigned = assign(traffic, workers);
        let mut writer = Writer::new(traffic, &assigned, workers);
        let looks = looks(traffic);
        for (index, (thread, act)) in traffic.acts.iter().enumerate() {
            let thread = *thread as usize;
            match *act {
                Act::Acquire(number) => writer.acquire(thread, number),
                Act::Release(number) => writer.release(thread, number),
            }
            if looks.contains(&index) {
                writer.parts[assigned[thread] as usize].steps.push(Step::Look);
            }
        }
        writer.finish()
    }
}

/// Returns the events after which memory is measured: some at equal distances, and the first after
/// which the most bytes are in use.
fn looks(traffic: &Traffic) -> Vec<usize> {
    let events = traffic.acts.len();
    let mut looks: Vec<usize> = (1..=LOOKS).map(|look| (look * events / LOOKS).saturating_sub(1)).collect();
    let (mut bytes, mut most, mut peak) = (0, 0, 0);
    for (index, (_, act)) in traffic.acts.iter().enumerate() {
        match act {
            Act::Acquire(number) => bytes += u64::from(traffic.buffers[*number as usize].bytes),
            Act::Release(number) => bytes -= u64::from(traffic.buffers[*number as usize].bytes),
        }
        if bytes > most {
            (most, peak) = (bytes, index);
        }
    }
    looks.push(peak);
    looks
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::traffic::Needs;
    use super::super::traffic::tests::{random, trace};
    use super::*;

    #[test]
    fn pairs_of_threads_are_kept_apart() {
        let mut events = Vec::new();
        for round in 0..100 {
            for pair in 0..4 {
                events.push((2 * pair, pair, Some(100 + round)));
                events.push((2 * pair + 1, pair, None));
            }
        }
        let traffic = Traffic::new(&trace(&events), 0);
        let schedule = Schedule::new(&traffic, 2);
        let crosses = |worker: u32, step: &Step| matches!(step, Step::Acquire { to, .. } if *to != worker);
        let kept = (0..).zip(&schedule.parts);
        let kept =
            kept.flat_map(|(worker, part)| part.steps.iter().filter(move |step| crosses(worker, step)));
        assert_eq!(kept.count(), 400);
        let steps: Vec<usize> = schedule.parts.iter().map(|part| part.buffers.len()).collect();
        assert_eq!(steps, [400, 400]);
    }

    #[test]
    fn as_many_workers_as_there_is_use_for() {
        let alone = Traffic::new(&random(1, 100, 100), 0);
        assert_eq!(workers(&alone, 8), 1);
        let crossing = Traffic::new(&random(3, 100, 100), 0);
        assert_eq!([1, 2, 8].map(|processors| workers(&crossing, processors)), [2, 2, 3]);
    }

    /// Plays the schedule with workers that take turns at random, and compares what each pool sees
    /// with the recording.
    #[test]
    fn every_pool_sees_the_recorded_requests_and_no_release_late() {
        for workers in [1, 2, 3] {
            let traffic = Traffic::new(&random(5, 3000, 900), 0);
            let schedule = Schedule::new(&traffic, workers);
            assert!(schedule.places <= 2 * Needs::of(&traffic).live + 1, "{} places", schedule.places);
            let mut random = fastrand::Rng::with_seed(workers as u64);
            let mut next = vec![(0, 0); workers];
            let mut released = vec![0; workers];
            let mut held: Vec<Option<u32>> = vec![None; schedule.places];
            let mut seen: Vec<Vec<Act>> = vec![Vec::new(); schedule.pools];
            let mut pool_of = vec![0; traffic.buffers.len()];
            let mut stuck = 0;
            while next.iter().zip(&schedule.parts).any(|(next, part)| next.0 < part.steps.len()) {
                let worker = random.usize(..workers);
                let part = &schedule.parts[worker];
                let (step, number) = &mut next[worker];
                let Some(now) = part.steps.get(*step) else { continue };
                let buffer = part.buffers.get(*number).copied().unwrap_or(u32::MAX);
                let done = match *now {
                    Step::Await { worker, releases } => released[worker as usize] >= releases,
                    Step::Acquire { place, bytes, source, .. } => {
                        assert_eq!(traffic.buffers[buffer as usize].bytes, bytes);
                        assert_eq!(held[place as usize].replace(buffer), None, "place {place} is taken");
                        let pool = part.sources[source as usize] as usize;
                        pool_of[buffer as usize] = pool;
                        seen[pool].push(Act::Acquire(buffer));
                        *number += 1;
                        true
                    }
                    Step::Release { place, .. } if held[place as usize] == Some(buffer) => {
                        held[place as usize] = None;
                        released[worker] += 1;
                        seen[pool_of[buffer as usize]].push(Act::Release(buffer));
                        *number += 1;
                        true
                    }
                    Step::Release { .. } => false,
                    Step::Look => true,
                };
                *step += usize::from(done);
                stuck = if done { 0 } else { stuck + 1 };
                assert!(stuck < 10_000, "nobody can go on");
            }
            let mut recorded: Vec<Vec<Act>> = vec![Vec::new(); schedule.pools];
            for (_, act) in &traffic.acts {
                let (Act::Acquire(number) | Act::Release(number)) = act;
                recorded[pool_of[*number as usize]].push(*act);
            }
            for (seen, recorded) in seen.iter().zip(&recorded) {
                compare(seen, recorded, workers);
            }
        }
    }

    /// Compares what a pool saw with what was recorded of it.
    fn compare(seen: &[Act], recorded: &[Act], workers: usize) {
        let (seen, recorded) = (by_acquire(seen), by_acquire(recorded));
        assert_eq!(seen.len(), recorded.len());
        for (seen, recorded) in seen.iter().zip(&recorded) {
            assert_eq!(seen.0, recorded.0, "{workers} workers: another order of requests");
            assert!(seen.1.is_superset(&recorded.1), "{workers} workers: a release is late");
        }
    }

    /// Returns each acquire with the releases that come before it.
    fn by_acquire(acts: &[Act]) -> Vec<(u32, HashSet<u32>)> {
        let mut back = HashSet::new();
        let mut all = Vec::new();
        for act in acts {
            match act {
                Act::Release(number) => _ = back.insert(*number),
                Act::Acquire(number) => all.push((*number, back.clone())),
            }
        }
        all
    }
}
