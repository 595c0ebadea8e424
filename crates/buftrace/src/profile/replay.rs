//! Traces out of heap recordings, so that what replays traces can replay these.

use std::collections::HashMap;

use super::{Object, Profile};
use crate::format::MAX_TEXT_BYTES;
use crate::{Event, EventKind, Meta, Trace};

/// Samples of a call stack are near to each other by chance, and so many together seldom are: the
/// copies of one that stands for several are spread over the time of as many.
const NEAR: usize = 8;
/// From this weight on. Of larger objects most are recorded, and when they were is kept.
const FEW: f64 = 3.0;

/// An event before the numbers of buffers and threads are given.
struct Step {
    at_ns: u64,
    thread: u32,
    /// Which copy of which object.
    copy: usize,
    /// The bytes of an acquire; `None` for a release.
    bytes: Option<u64>,
}

impl Profile {
    /// Returns the objects for which `keep` returns `true` as a trace: each as often as its
    /// [weight](Object::weight). The trace therefore has as many requests, and as many buffers in
    /// use at once, as the program is estimated to have had. An object that grew is one buffer of
    /// its largest size: the buffer that a pool would serve.
    ///
    /// The copies of an object are distributed evenly over the time until the eighth next object of
    /// the same call stack, or the next where it stands for less than three. Those of the last ones
    /// are distributed over as long a time as so many are apart, and where there are not so many,
    /// over the whole time. A trace of over `max_events` events is truncated there and marked as
    /// cut.
    ///
    /// Cost: memory for the events, at most `max_events` and those of one object more.
    ///
    /// ```no_run
    /// use buftrace::Profile;
    ///
    /// let profile = Profile::load("app.heap")?;
    /// let trace = profile.expanded_trace(1 << 20, |object| object.bytes >= 4096);
    /// println!("{}", trace.summary());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn expanded_trace(&self, max_events: usize, mut keep: impl FnMut(&Object) -> bool) -> Trace {
        // The part that was rounded off goes to the next object of the stack.
        let mut owed: HashMap<u32, f64> = HashMap::new();
        let (mut left, mut is_cut) = (max_events, false);
        let gaps = self.gaps();
        let mut steps = Vec::new();
        let mut copy = 0;
        for (number, object) in self.objects().iter().enumerate().filter(|(_, object)| keep(object)) {
            let owed = owed.entry(object.stack).or_insert(0.5);
            *owed += object.weight();
            let whole = owed.floor();
            *owed -= whole;
            // A float that is too large becomes the largest number.
            let copies = (whole as usize).min(left.div_ceil(2));
            is_cut |= copies < whole as usize;
            left = left.saturating_sub(copies.saturating_mul(2));
            for nth in 0..copies {
                let shift = (gaps[number] as u128 * nth as u128 / copies as u128) as u64;
                let step = |at_ns: u64, thread, bytes| Step {
                    at_ns: at_ns.saturating_add(shift).min(crate::MAX_TIME_NS),
                    thread,
                    copy,
                    bytes,
                };
                steps.push(step(object.at_ns, object.thread, Some(object.largest)));
                if let Some((at_ns, thread)) = object.released {
                    steps.push(step(at_ns, thread, None));
                }
                copy += 1;
            }
        }
        // Stable: what one object does at one time stays in order.
        steps.sort_by_key(|step| step.at_ns);
        let mut meta = self.meta();
        meta.cut |= is_cut;
        let trace = Trace::new(meta, numbered(&steps));
        let trace = trace.unwrap_or_else(|error| unreachable!("in order, and with dense numbers: {error}"));
        trace.prefix(max_events)
    }

    /// Returns the peak number of buffers and of bytes in use in
    /// [`expanded_trace`](Self::expanded_trace), computed without its limit. If an object
    /// represents several, fractions of a buffer count.
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// let (buffers, bytes) = profile.expanded_peak(|object| object.bytes >= 4096);
    /// println!("about {buffers:.0} buffers of {bytes:.0} bytes in all");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn expanded_peak(&self, mut keep: impl FnMut(&Object) -> bool) -> (f64, f64) {
        let gaps = self.gaps();
        // When, how many more are out from then on, how many more with each nanosecond, and the
        // bytes of each.
        let mut changes: Vec<(u64, f64, f64, f64)> = Vec::new();
        for (number, object) in self.objects().iter().enumerate().filter(|(_, object)| keep(object)) {
            let (weight, bytes) = (object.weight(), object.largest as f64);
            let gap = if weight < 2.0 { 0 } else { gaps[number] };
            let released = object.released.map(|(at_ns, _)| (at_ns, -weight));
            for (at_ns, more) in [(object.at_ns, weight)].into_iter().chain(released) {
                if gap == 0 {
                    changes.push((at_ns, more, 0.0, bytes));
                } else {
                    let each = more / gap as f64;
                    changes.extend([(at_ns, 0.0, each, bytes), (at_ns + gap, 0.0, -each, bytes)]);
                }
            }
        }
        changes.sort_by_key(|change| change.0);
        let (mut before, mut out, mut each, mut most) = (0, [0.0_f64; 2], [0.0; 2], [0.0_f64; 2]);
        for (at_ns, more, more_each, bytes) in changes {
            for (of, unit) in [1.0, bytes].into_iter().enumerate() {
                out[of] += each[of] * (at_ns - before) as f64 + more * unit;
                each[of] += more_each * unit;
                most[of] = most[of].max(out[of]);
            }
            before = at_ns;
        }
        (most[0], most[1])
    }

    /// Returns for each object the nanoseconds over which its copies are spread.
    fn gaps(&self) -> Vec<u64> {
        let mut times: HashMap<u32, Vec<u64>> = HashMap::new();
        let stacks = self.objects().iter().map(|object| {
            let times = times.entry(object.stack).or_default();
            times.push(object.at_ns);
            (object.stack, times.len() - 1)
        });
        let stacks: Vec<_> = stacks.collect();
        let gap = |(object, (stack, nth)): (&Object, (u32, usize))| {
            let (times, near) = (&times[&stack], if object.weight() < FEW { 1 } else { NEAR });
            let first = nth.min(times.len().saturating_sub(near + 1));
            times.get(first + near).map_or(self.duration_ns(), |next| next - times[first])
        };
        self.objects().iter().zip(stacks).map(gap).collect()
    }

    fn meta(&self) -> Meta {
        let info = self.info();
        let name = info.program.rsplit('/').next().unwrap_or_default();
        let mut made_by = format!("{}: objects from {} bytes on", info.made_by, info.min_bytes);
        let rate = self.objects().iter().map(|object| object.rate).max().unwrap_or(0);
        if rate > 0 {
            made_by += &format!(", sampled every {rate} bytes");
        }
        // Texts of the recording are at most as long as those of a trace; what is put between them
        // may be over.
        while made_by.len() > MAX_TEXT_BYTES {
            made_by.pop();
        }
        Meta { made_by, cut: self.is_cut() || self.ending() != super::Ending::Stopped, ..Meta::new(name) }
    }
}

/// Gives dense numbers to threads and buffers.
fn numbered(steps: &[Step]) -> Vec<Event> {
    let mut threads: HashMap<u32, u32> = HashMap::new();
    let mut ids: HashMap<usize, u32> = HashMap::new();
    let (mut free, mut used) = (Vec::new(), 0);
    let mut events = Vec::with_capacity(steps.len());
    for step in steps {
        let count = threads.len() as u32;
        let thread = *threads.entry(step.thread).or_insert(count);
        let kind = match step.bytes {
            Some(bytes) => {
                let id = free.pop().unwrap_or_else(|| {
                    used += 1;
                    used - 1
                });
                ids.insert(step.copy, id);
                EventKind::Acquire { id, bytes }
            }
            None => {
                let id = ids.remove(&step.copy).expect("released after its acquire");
                free.push(id);
                EventKind::Release { id }
            }
        };
        events.push(Event { at_ns: step.at_ns, thread, kind });
    }
    events
}
