//! A trace as it is replayed: buffers by number, and who takes and returns each.

use std::collections::{HashMap, HashSet};

use buftrace::{EventKind, Trace};

/// The most events of a trace that are replayed, and the most bytes that all its buffers have.
const MOST_EVENTS: usize = 1 << 19;
const MOST_BYTES: u64 = 512 << 20;
/// So many of the large ones, of which fewer would be replayed, are in any case, unless all have
/// this many times as many bytes.
const LEAST_REPLAYED: u64 = 24;
const MOST_TIMES: u64 = 4;
/// Pages of most systems are that large.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Settings have room for this many times the recorded traffic.
pub(crate) const MARGIN: usize = 2;
/// And for this many buffers of each thread that acquires, however few were out.
pub(crate) const LEAST_BUFFERS: usize = 8;
/// At least this share of what was in use at once is to be in use in a replay, or no settings
/// follow from it.
const LEAST_HELD: f64 = 0.5;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Takes the buffer of that number.
    Acquire(u32),
    /// Gives it back.
    Release(u32),
}

/// A buffer of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// How many bytes were asked for; at least one.
    pub(crate) bytes: u32,
    /// The recorded thread that took it.
    pub(crate) from: u32,
    /// The one that gave it back.
    pub(crate) to: u32,
}

/// What is replayed of a trace.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Who does what, in order. All buffers are back at the end.
    pub(crate) acts: Vec<(u32, Act)>,
    /// The buffers, by number: in the order in which they were taken.
    pub(crate) buffers: Vec<Buffer>,
    /// Recorded threads: all are below this.
    pub(crate) threads: usize,
}

impl Traffic {
    /// Numbers the buffers of a part of a trace, those that are in use at its start too, leaves out
    /// what cannot be replayed, and releases at the end what is still in use.
    pub(crate) fn new(trace: &Trace, start: usize) -> Self {
        let (before, part) = trace.events().split_at(start);
        let (mut held, mut released) = (Vec::new(), HashSet::new());
        for event in before.iter().rev() {
            match event.kind {
                EventKind::Release { id } => _ = released.insert(id),
                EventKind::Acquire { id, .. } if !released.remove(&id) => held.push(event),
                EventKind::Acquire { .. } => {}
            }
        }
        let mut traffic = Self { acts: Vec::new(), buffers: Vec::new(), threads: trace.threads() };
        let mut live: HashMap<u32, u32> = HashMap::new();
        let (mut sum, mut large) = (0, 0);
        for event in held.into_iter().rev().chain(part).take(MOST_EVENTS) {
            match event.kind {
                EventKind::Acquire { id, bytes } => {
                    // Those of no bytes, and of 4 GiB and more, are not replayed.
                    let Some(bytes) = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0) else {
                        continue;
                    };
                    sum += u64::from(bytes);
                    let is_large = u64::from(bytes) > MOST_BYTES / LEAST_REPLAYED;
                    large += u64::from(is_large);
                    let times = if is_large && large <= LEAST_REPLAYED { MOST_TIMES } else { 1 };
                    if sum > MOST_BYTES * times {
                        break;
                    }
                    let number = traffic.buffers.len() as u32;
                    traffic.buffers.push(Buffer { bytes, from: event.thread, to: event.thread });
                    traffic.acts.push((event.thread, Act::Acquire(number)));
                    live.insert(id, number);
                }
                EventKind::Release { id } => {
                    if let Some(number) = live.remove(&id) {
                        traffic.buffers[number as usize].to = event.thread;
                        traffic.acts.push((event.thread, Act::Release(number)));
                    }
                }
            }
        }
        let mut left: Vec<u32> = live.into_values().collect();
        left.sort_unstable();
        for number in left {
            let thread = traffic.buffers[number as usize].to;
            traffic.acts.push((thread, Act::Release(number)));
        }
        traffic
    }

    /// Returns where a part of a trace starts that has the most bytes in use, and some of what
    /// comes before: the start of the trace where that is too much.
    pub(crate) fn start_of_peak(trace: &Trace) -> usize {
        let mut live: HashMap<u32, u64> = HashMap::new();
        let (mut out, mut most, mut peak) = (0_u64, 0, 0);
        // What each event gives back.
        let mut released = Vec::with_capacity(trace.events().len());
        for (at, event) in trace.events().iter().enumerate() {
            released.push(match event.kind {
                EventKind::Acquire { id, bytes } => {
                    live.insert(id, bytes);
                    out = out.saturating_add(bytes);
                    0
                }
                EventKind::Release { id } => live.remove(&id).unwrap_or(0),
            });
            out = out.saturating_sub(released[at]);
            if out > most {
                (most, peak) = (out, at);
            }
        }
        if most > MOST_BYTES / 2 {
            return 0;
        }
        // A part that starts with a release has the buffer in use at its start. As much as comes
        // and goes before the peak has room behind it.
        let (mut left, first) = ((MOST_BYTES - most) / 2, peak.saturating_sub(MOST_EVENTS / 4));
        let mut start = peak;
        while start > first && released[start - 1] <= left {
            start -= 1;
            left -= released[start];
        }
        start
    }

    /// Returns the number of recorded threads that acquire.
    fn owners(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.from).collect::<HashSet<_>>().len()
    }
}

/// What the traffic needs of its pools. All settings that are tried are derived from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Threads that acquire.
    pub(crate) owners: usize,
    /// The largest request.
    pub(crate) largest: usize,
    /// The most buffers that were out at once.
    pub(crate) live: usize,
    /// The most bytes.
    pub(crate) bytes: usize,
    /// The most buffers that one thread had acquired and that were out at once, whoever released
    /// them.
    pub(crate) own_live: usize,
    /// The most bytes of such.
    pub(crate) own_bytes: usize,
}

impl Needs {
    /// Returns what settings are to have room for: the traffic to come, not only that of the trace.
    pub(crate) fn with_margin(&self) -> Self {
        Self {
            live: (MARGIN * self.live).max(LEAST_BUFFERS),
            bytes: MARGIN * self.bytes,
            own_live: (MARGIN * self.own_live).max(LEAST_BUFFERS),
            own_bytes: MARGIN * self.own_bytes,
            ..*self
        }
    }

    /// Returns the needs of all requests, `peak` of which were in use at once: buffers and bytes.
    pub(crate) fn of_all(&self, peak: (f64, f64), largest: u64) -> Self {
        let largest = usize::try_from(largest).unwrap_or(usize::MAX).max(self.largest);
        let scaled = |part: usize, of: usize, peak: f64| {
            (part as f64 * (peak / of.max(1) as f64).max(1.0)).round() as usize
        };
        Self {
            live: scaled(self.live, self.live, peak.0),
            bytes: scaled(self.bytes, self.bytes, peak.1).max(largest),
            own_live: scaled(self.own_live, self.live, peak.0),
            own_bytes: scaled(self.own_bytes, self.bytes, peak.1).max(largest),
            largest,
            ..*self
        }
    }

    /// Returns whether so much is in use in a replay that settings for `all` can be tried by it: of
    /// what buffers and their pages cost.
    pub(crate) fn are_enough_for(&self, all: &Self) -> bool {
        let work = |needs: &Self| (needs.live + needs.bytes / PAGE_BYTES) as f64;
        work(self) >= LEAST_HELD * work(all)
    }

    /// Walks through the traffic once.
    pub(crate) fn of(traffic: &Traffic) -> Self {
        #[derive(Clone, Copy, Default)]
        struct Out {
            live: usize,
            bytes: usize,
        }
        let mut by_thread = vec![Out::default(); traffic.threads];
        let (mut all, mut most, mut own) = (Out::default(), Out::default(), Out::default());
        for (_, act) in &traffic.acts {
            let (Act::Acquire(number) | Act::Release(number)) = act;
            let buffer = traffic.buffers[*number as usize];
            let thread = &mut by_thread[buffer.from as usize];
            let bytes = buffer.bytes as usize;
            for out in [&mut all, thread] {
                if matches!(act, Act::Acquire(_)) {
                    out.live += 1;
                    out.bytes += bytes;
                } else {
                    out.live -= 1;
                    out.bytes -= bytes;
                }
            }
            let thread = by_thread[buffer.from as usize];
            for (most, now) in [(&mut most, all), (&mut own, thread)] {
                most.live = most.live.max(now.live);
                most.bytes = most.bytes.max(now.bytes);
            }
        }
        Self {
            owners: traffic.owners(),
            largest: traffic.buffers.iter().map(|buffer| buffer.bytes as usize).max().unwrap_or(0),
            live: most.live,
            bytes: most.bytes,
            own_live: own.live,
            own_bytes: own.bytes,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use buftrace::{Event, Meta};

    use super::*;

    /// Returns a trace of these events: thread, id, and bytes where it is an acquire.
    pub(crate) fn trace(events: &[(u32, u32, Option<u64>)]) -> Trace {
        let event = |(at_ns, &(thread, id, bytes)): (u64, &(u32, u32, Option<u64>))| {
            let kind = bytes.map_or(EventKind::Release { id }, |bytes| EventKind::Acquire { id, bytes });
            Event { at_ns, thread, kind }
        };
        Trace::new(Meta::new("made up"), (0..).zip(events).map(event).collect()).expect("a right trace")
    }

    /// Makes up the traffic of `threads` threads. Sizes and lifetimes are random. Another thread
    /// releases half of the buffers, and some are never released.
    pub(crate) fn random(threads: u32, requests: usize, largest: u64) -> Trace {
        let mut random = fastrand::Rng::with_seed(u64::from(threads) << 32 | largest);
        // Threads are dense in order of their first event.
        let mut events: Vec<(u32, u32, Option<u64>)> =
            (0..threads).map(|thread| (thread, thread, Some(random.u64(1..=largest)))).collect();
        let mut live: Vec<(u32, u32)> = (0..threads).map(|id| (id, id)).collect();
        let mut free: Vec<u32> = Vec::new();
        let mut ids = threads;
        for _ in 0..requests {
            let thread = random.u32(..threads);
            let id = free.pop().unwrap_or_else(|| {
                ids += 1;
                ids - 1
            });
            events.push((thread, id, Some(random.u64(0..=largest))));
            live.push((thread, id));
            while live.len() > 20 || (live.len() > 1 && random.bool()) {
                let (owner, id) = live.swap_remove(random.usize(..live.len()));
                let thread = if random.bool() { owner } else { random.u32(..threads) };
                events.push((thread, id, None));
                free.push(id);
            }
        }
        trace(&events)
    }

    #[test]
    fn traffic_is_balanced_and_says_who_returns() {
        let trace = trace(&[(0, 0, Some(10)), (0, 1, Some(0)), (1, 2, Some(30)), (1, 0, None), (0, 1, None)]);
        let traffic = Traffic::new(&trace, 0);
        assert_eq!(
            traffic.buffers,
            [Buffer { bytes: 10, from: 0, to: 1 }, Buffer { bytes: 30, from: 1, to: 1 }]
        );
        let acts = [(0, Act::Acquire(0)), (1, Act::Acquire(1)), (1, Act::Release(0)), (1, Act::Release(1))];
        assert_eq!(traffic.acts, acts);
        let needs = Needs::of(&traffic);
        assert_eq!((needs.live, needs.bytes, needs.own_live, needs.own_bytes), (2, 40, 1, 30));
        assert_eq!((needs.owners, needs.largest), (2, 30));
    }

    /// Twice the buffers in use, and some where few were.
    #[test]
    fn settings_have_room_for_more() {
        let needs = Needs { owners: 3, largest: 9, live: 90, bytes: 500, own_live: 1, own_bytes: 9 };
        let room = needs.with_margin();
        assert_eq!((room.live, room.bytes, room.own_bytes), (180, 1000, 18));
        assert_eq!(room.own_live, LEAST_BUFFERS);
    }

    /// Settings are for all that was in use at once, not for the part that is replayed.
    #[test]
    fn needs_are_those_of_the_recorded_peak() {
        let part = Needs { owners: 3, largest: 9, live: 90, bytes: 500, own_live: 30, own_bytes: 100 };
        let all = part.of_all((180.0, 750.0), 7);
        assert_eq!(all, Needs { live: 180, bytes: 750, own_live: 60, own_bytes: 150, ..part });
        assert!(part.are_enough_for(&all) && !part.are_enough_for(&part.of_all((181.0, 1.0), 7)));
        assert!(!part.are_enough_for(&part.of_all((1.0, 1e6), 7)));
        assert_eq!(part.of_all((1.0, 1.0), 9), part);
        let large = part.of_all((1.0, 1.0), 700);
        assert_eq!((large.largest, large.bytes, large.own_bytes), (700, 700, 700));
    }

    #[test]
    fn large_traffic_is_cut_and_balanced() {
        let count = |bytes| {
            // Small ones in front of the large.
            let large: Vec<_> = (0..1000).map(|id| (0, id, Some(if id < 40 { 9 } else { bytes }))).collect();
            let traffic = Traffic::new(&trace(&large), 0);
            assert_eq!(traffic.acts.len(), 2 * traffic.buffers.len());
            traffic.buffers.len() as u64 - 40
        };
        assert_eq!([count(1 << 30), count(64 << 20), count(1 << 20)], [1, LEAST_REPLAYED, 511]);
        let many: Vec<_> = (0..MOST_EVENTS).flat_map(|_| [(0, 0, Some(9)), (0, 0, None)]).collect();
        assert_eq!(Traffic::new(&trace(&many), 0).acts.len(), MOST_EVENTS);
    }

    /// What is replayed around the peak has it, and what is in use at its start.
    #[test]
    fn the_peak_is_in_a_part() {
        const BYTES: u64 = 16 << 20;
        let acquires = |ids: core::ops::Range<u32>| ids.map(|id| (0, id, Some(BYTES)));
        let mut events: Vec<_> = acquires(0..3).collect();
        events.extend((0..100).flat_map(|_| [(0, 3, Some(BYTES)), (1, 3, None)]));
        events.extend(acquires(3..8).chain([(1, 1, None)]).chain(acquires(1..2)));
        let needs = |start| Needs::of(&Traffic::new(&trace(&events), start));
        let start = Traffic::start_of_peak(&trace(&events));
        assert_eq!((needs(0).live, needs(start).live), (4, 8));
        // Of 32 there are eight in use, and half of the others come and go before.
        assert_eq!(start, 3 + 2 * 100 - 2 * 12);
        let traffic = Traffic::new(&trace(&events), start);
        assert_eq!((traffic.buffers.len(), traffic.buffers[1].to), (3 + 12 + 5 + 1, 1));
        let large: Vec<_> = acquires(0..40).collect();
        assert_eq!(Traffic::start_of_peak(&trace(&large)), 0);
    }

    #[test]
    fn needs_are_those_of_the_summary() {
        let trace = random(3, 2000, 5000);
        let (summary, needs) = (trace.summary(), Needs::of(&Traffic::new(&trace, 0)));
        assert_eq!(summary.max_live_bytes, needs.bytes as u64);
        assert!(needs.own_bytes < needs.bytes && needs.own_bytes * 3 >= needs.bytes, "{needs:?}");
        assert_eq!(needs.owners, 3);
    }
}
