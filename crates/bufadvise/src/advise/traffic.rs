//! A trace as it is replayed: buffers by number, and who takes and returns each.

use std::collections::HashMap;

use buftrace::{EventKind, Trace};

/// The most events of a trace that are replayed.
pub(crate) const MOST_EVENTS: usize = 1 << 19;

/// How far the second of two copies of a traffic is behind the first, in events.
const SHIFT: usize = 7;
/// Settings have room for this many times the recorded traffic.
pub(crate) const MARGIN: usize = 2;
/// And for this many buffers of each thread that acquires, however few were out.
pub(crate) const LEAST_BUFFERS: usize = 8;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Who does what, in order. All buffers are back at the end.
    pub(crate) acts: Vec<(u32, Act)>,
    /// When, in nanoseconds since the recording began. Empty in child processes, and at twice the
    /// connections: nobody looks at it there.
    pub(crate) at_ns: Vec<u64>,
    /// The buffers, by number: in the order in which they were taken.
    pub(crate) buffers: Vec<Buffer>,
    /// Recorded threads: all are below this.
    pub(crate) threads: usize,
}

impl Traffic {
    /// Numbers the buffers, leaves out what cannot be replayed, and releases at the end what the
    /// program still held.
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut traffic =
            Self { acts: Vec::new(), at_ns: Vec::new(), buffers: Vec::new(), threads: trace.threads() };
        let mut live: HashMap<u32, u32> = HashMap::new();
        for event in trace.events() {
            match event.kind {
                EventKind::Acquire { id, bytes } => {
                    // Those of no bytes, and of 4 GiB and more, are not replayed.
                    let Some(bytes) = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0) else {
                        continue;
                    };
                    let number = traffic.buffers.len() as u32;
                    traffic.buffers.push(Buffer { bytes, from: event.thread, to: event.thread });
                    traffic.act(event.at_ns, event.thread, Act::Acquire(number));
                    live.insert(id, number);
                }
                EventKind::Release { id } => {
                    if let Some(number) = live.remove(&id) {
                        traffic.buffers[number as usize].to = event.thread;
                        traffic.act(event.at_ns, event.thread, Act::Release(number));
                    }
                }
            }
        }
        let mut left: Vec<u32> = live.into_values().collect();
        left.sort_unstable();
        for number in left {
            let thread = traffic.buffers[number as usize].to;
            traffic.act(trace.duration_ns(), thread, Act::Release(number));
        }
        traffic
    }

    fn act(&mut self, at_ns: u64, thread: u32, act: Act) {
        self.acts.push((thread, act));
        self.at_ns.push(at_ns);
    }

    /// Returns the same traffic twice at once: each thread serves twice the connections. The second
    /// one is [`SHIFT`] events behind the first, so its peaks nearly meet those of the first.
    pub(crate) fn at_twice_the_connections(&self) -> Self {
        let mut twice = Self {
            acts: Vec::with_capacity(2 * self.acts.len()),
            at_ns: Vec::new(),
            buffers: Vec::with_capacity(2 * self.buffers.len()),
            threads: self.threads,
        };
        // Buffers are numbered in the order in which they are taken.
        let mut numbers = [vec![0; self.buffers.len()], vec![0; self.buffers.len()]];
        let shift = SHIFT.min(self.acts.len() / 2);
        for at in 0..self.acts.len() + shift {
            for (copy, numbers) in numbers.iter_mut().enumerate() {
                let Some((thread, act)) = at.checked_sub(copy * shift).and_then(|at| self.acts.get(at))
                else {
                    continue;
                };
                let act = match *act {
                    Act::Acquire(number) => {
                        numbers[number as usize] = twice.buffers.len() as u32;
                        twice.buffers.push(self.buffers[number as usize]);
                        Act::Acquire(numbers[number as usize])
                    }
                    Act::Release(number) => Act::Release(numbers[number as usize]),
                };
                twice.acts.push((*thread, act));
            }
        }
        twice
    }

    /// Returns the bytes that are out after each event. It allocates nothing.
    pub(crate) fn bytes_out(&self) -> impl Iterator<Item = u64> {
        let after = |out: &mut u64, (_, act): &(u32, Act)| {
            match act {
                Act::Acquire(number) => *out += u64::from(self.buffers[*number as usize].bytes),
                Act::Release(number) => *out -= u64::from(self.buffers[*number as usize].bytes),
            }
            Some(*out)
        };
        self.acts.iter().scan(0, after)
    }

    /// Returns the recorded threads that acquire, ascending. Where pools serve one thread each, the
    /// first has the first pool, and so on.
    pub(crate) fn owners(&self) -> Vec<u32> {
        let mut owners: Vec<u32> = self.buffers.iter().map(|buffer| buffer.from).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Returns for each recorded thread the number of its pool.
    pub(crate) fn pool_numbers(&self) -> Vec<Option<u32>> {
        let mut numbers = vec![None; self.threads];
        for (number, owner) in (0..).zip(self.owners()) {
            numbers[owner as usize] = Some(number);
        }
        numbers
    }
}

/// What the traffic needs of its pools. All settings that are tried are derived from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Needs {
    /// Requests that are replayed.
    pub(crate) acquires: usize,
    /// Threads that acquire.
    pub(crate) owners: usize,
    /// The largest request.
    pub(crate) largest: usize,
    /// The size that half of the requests do not exceed.
    pub(crate) median_size: usize,
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
        let mut sizes: Vec<u32> = traffic.buffers.iter().map(|buffer| buffer.bytes).collect();
        sizes.sort_unstable();
        Self {
            acquires: sizes.len(),
            owners: traffic.owners().len(),
            largest: sizes.last().map_or(0, |bytes| *bytes as usize),
            median_size: sizes.get(sizes.len() / 2).map_or(0, |bytes| *bytes as usize),
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
        let traffic = Traffic::new(&trace);
        assert_eq!(
            traffic.buffers,
            [Buffer { bytes: 10, from: 0, to: 1 }, Buffer { bytes: 30, from: 1, to: 1 }]
        );
        let acts = [(0, Act::Acquire(0)), (1, Act::Acquire(1)), (1, Act::Release(0)), (1, Act::Release(1))];
        assert_eq!(traffic.acts, acts);
        let needs = Needs::of(&traffic);
        assert_eq!((needs.live, needs.bytes, needs.own_live, needs.own_bytes), (2, 40, 1, 30));
        assert_eq!((needs.owners, needs.largest, needs.acquires), (2, 30, 2));
    }

    #[test]
    fn twice_the_connections_need_twice_as_much() {
        let once = Traffic::new(&random(3, 2000, 5000));
        let twice = once.at_twice_the_connections();
        assert_eq!((twice.acts.len(), twice.buffers.len()), (2 * once.acts.len(), 2 * once.buffers.len()));
        let (needs, more) = (Needs::of(&once), Needs::of(&twice));
        assert_eq!((more.owners, more.largest), (needs.owners, needs.largest));
        assert!((needs.own_live..=2 * needs.own_live).contains(&more.own_live), "{more:?}");
        assert!(more.bytes * 10 > needs.bytes * 15, "the peaks nearly meet: {more:?}, {needs:?}");
        let room = needs.with_margin();
        assert!(room.live >= more.live && room.bytes >= more.bytes && room.own_bytes >= more.own_bytes);
        // One buffer at a time becomes two.
        let alone: Vec<_> = (0..50).flat_map(|_| [(0, 0, Some(9)), (0, 0, None)]).collect();
        let alone = Traffic::new(&trace(&alone));
        assert_eq!(Needs::of(&alone).live, 1);
        assert_eq!(Needs::of(&alone.at_twice_the_connections()).live, 2);
        assert_eq!(Needs::of(&alone).with_margin().own_live, LEAST_BUFFERS);
    }

    #[test]
    fn needs_are_those_of_the_summary() {
        let trace = random(3, 2000, 5000);
        let (summary, needs) = (trace.summary(), Needs::of(&Traffic::new(&trace)));
        assert_eq!(summary.max_live_bytes, needs.bytes as u64);
        assert!(needs.own_bytes < needs.bytes && needs.own_bytes * 3 >= needs.bytes, "{needs:?}");
        assert_eq!(needs.owners, 3);
    }
}
