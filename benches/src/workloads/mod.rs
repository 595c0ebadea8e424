//! What the engines are put to.

pub mod burst;
pub mod file;
pub mod frame;
pub mod handoff;
pub mod messages;
pub mod mixed;
mod offers;
pub mod parse;
pub mod queue;
pub mod replay;
pub mod reuse;
mod script;
pub mod shape;
pub mod short_lived;
pub mod spsc;
pub mod stream;
pub mod tasks;
pub mod threads;
pub mod two_pools;

use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::crew::Crew;
use crate::harness::measure::Scale;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::{Frames, Pool};

/// All workloads in the order of the report, and what each does.
pub const WORKLOADS: [(&str, &str); 19] = [
    ("reuse", "Acquire a buffer, write its first byte, drop it. One operation is all of that."),
    (
        "live",
        "As `reuse`, while others are held: the cost must not grow with the number of live \
         buffers. One operation is one buffer that comes and goes.",
    ),
    (
        "pools",
        "As `reuse`, from two pools in turn, and from one of them alone for comparison: what is \
         cached for one pool must not go when another is used. One operation is one buffer.",
    ),
    (
        "burst",
        "Acquire N buffers, write the first byte of each, drop them oldest first, newest first, \
         or at random. One operation is one buffer.",
    ),
    (
        "mixed",
        "Requests of different sizes, the newest eight held unless the row says otherwise: twelve sizes from \
         64 B to 64 KiB in turn or by Zipf's frequencies, all size classes, two sizes at random, \
         1 B to 1 MiB, small then large then small ones. One operation is one buffer.",
    ),
    (
        "shape",
        "What `bench --cliffs` found: traffic in which one of our strategies without settings took many \
         times as long as the best. One operation is one buffer.",
    ),
    (
        "queue",
        "The newest 64 or 1024 buffers are held, each of a random size up to 4 KiB, and memory is \
         short: a quarter more bytes than are out, a quarter more buffers for `ring`, two slots \
         more for `slot`. One operation is one buffer that comes and the oldest that goes.",
    ),
    (
        "short-lived",
        "RingAl's first table: the newest N buffers are held, each filled to a random part of its \
         size. One operation is one buffer that comes and the oldest that goes.",
    ),
    (
        "growing",
        "RingAl's second table: as `short-lived`, with buffers that grow in steps to their length, \
         which nobody knows beforehand, and are then finished.",
    ),
    (
        "tasks",
        "bufpool's benchmark: a hundred tasks, each with one buffer after the other, of sizes \
         around 10 B or 2 KiB and with random lifetimes. They run on one thread in turn, or \
         on several threads. One operation is one buffer.",
    ),
    (
        "frame",
        "Stratum V2's benchmarks: frames of 4 to 16 KiB written in steps of ten bytes, two at a \
         time. They are then dropped here, sent to a thread that drops them, or sent and waited for. One \
         operation is one frame.",
    ),
    (
        "handoff",
        "One thread acquires and fills, another reads, sums and drops. One operation is one \
         buffer.",
    ),
    (
        "threads",
        "Several threads acquire, write a byte in each page, drop. One operation is what one \
         thread does, so a level line is perfect scaling, up to the number of cores.",
    ),
    (
        "stream",
        "Write a message into a ring of 64 KiB and read it, by one thread. Lengths are fixed \
         or random up to 4 KiB, also with bytes left in the ring all the time. `constant` is a length \
         that the compiler knows. `vec` is a `VecDeque`, `noop` two plain copies through the \
         same memory. One operation is a write and its read.",
    ),
    (
        "parse",
        "Records with their length in front come in chunks of 4 KiB, and are summed each as a \
         whole. That happens in place where the ring lends the record in one piece (`mirror`, and the two peers that \
         map twice). Else the record is copied out first. One operation is a record.",
    ),
    (
        "spsc",
        "Bytes from one thread to another through a ring of 256 KiB or what the row says, in chunks that are copied in \
         and out. `pipe` is the operating system's. An engine that cannot wait is asked again until there is \
         something to do. One operation is a chunk.",
    ),
    (
        "messages",
        "Messages through one queue of 64 KiB or what the row says, from some threads to others, each copied in and \
         copied out; lengths fixed or random up to 4 KiB. Where the row says by how many, as many are sent at once, and what \
         has come is received at once, in place where the engine lends it. `vec` is a `VecDeque` of vectors behind one \
         lock. One operation is one message.",
    ),
    ("file", "Read a large file in chunks and sum the bytes. One operation is one chunk."),
    (
        "replay",
        "The requests of a recorded program, in their order, by one thread. One operation is one \
         buffer.",
    ),
];

/// All rows of the matrix.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = reuse::cases(scale);
    cases.extend(two_pools::cases());
    cases.extend(burst::cases(scale));
    cases.extend(mixed::cases());
    cases.extend(shape::cases());
    cases.extend(queue::cases());
    cases.extend(short_lived::cases());
    cases.extend(frame::cases());
    cases.extend(handoff::cases());
    cases.extend(threads::cases());
    cases.extend(tasks::cases());
    cases.extend(stream::cases());
    cases.extend(parse::cases());
    cases.extend(spsc::cases());
    cases.extend(messages::cases());
    cases.extend(file::cases(scale));
    cases.extend(replay::cases());
    cases
}

/// The cells in which one thread acquires and releases whole buffers.
pub(crate) fn whole<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Reuse { .. } => reuse::cell::<P>(case, settings),
        Case::Burst { .. } => burst::cell::<P>(case, settings),
        Case::TwoPools { .. } => two_pools::cell::<P>(case, settings),
        Case::Mixed { .. } => mixed::cell::<P>(case, settings),
        Case::Queue { .. } => queue::cell::<P>(case, settings),
        Case::ShortLived { .. } => short_lived::fixed::<P>(case, settings),
        Case::Tasks { .. } => tasks::alone::<P>(case, settings),
        Case::File { .. } => file::cell::<P>(case, settings),
        Case::Replay { .. } => replay::cell::<P>(case, settings),
        Case::Shape { .. } => shape::cell::<P>(case, settings),
        _ => Err(not_mine(case)),
    }
}

/// The cells with frames.
pub(crate) fn frames<F: Frames>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Growing { .. } => short_lived::extend::<F>(case, settings),
        _ => frame::cell::<F>(case, settings),
    }
}

/// The cells in which several threads share one pool.
pub(crate) fn shared<P: Pool + Clone + Send>(
    case: &Case,
    settings: Settings,
) -> Result<Box<dyn Cell>, Unsupported> {
    threads(case, true, &|threads, plan| Crew::<P>::shared(threads, &plan.with(settings)))
}

/// The cells in which several threads have a pool each.
pub(crate) fn private<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    threads(case, false, &|threads, plan| Crew::<P>::private(threads, &plan.with(settings)))
}

/// Makes so many threads with pools for a plan.
type MakeCrew<'a, P> = &'a dyn Fn(usize, Plan) -> Result<Crew<P>, Unsupported>;

/// The cells with several threads, and whether these share one pool.
fn threads<P: Pool>(
    case: &Case,
    is_shared: bool,
    crew: MakeCrew<'_, P>,
) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Tasks { .. } => tasks::cell(case, is_shared, crew),
        _ => threads::cell(case, is_shared, crew),
    }
}

/// For a case that was sent to the wrong workload.
fn not_mine(case: &Case) -> Unsupported {
    format!("{case} is served elsewhere").into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::adapters;
    use crate::harness::Kind;
    use crate::harness::engine::Engine;

    #[test]
    fn ids_are_unique_and_all_workloads_have_rows() {
        let cases = cases(Scale::Full);
        let ids: HashSet<_> = cases.iter().map(Case::id).collect();
        assert_eq!(ids.len(), cases.len());
        for (workload, _) in WORKLOADS {
            let rows = cases.iter().filter(|case| case.workload() == workload).count();
            assert!(rows > 0 || workload == "replay", "{workload} has no rows");
        }
    }

    #[test]
    fn quick_is_part_of_full() {
        let full: HashSet<_> = cases(Scale::Full).iter().map(Case::id).collect();
        assert!(cases(Scale::Quick).iter().all(|case| full.contains(&case.id())));
    }

    /// Refuses everything, and says with what it was to be made.
    #[derive(Clone)]
    struct Asking;

    impl Pool for Asking {
        type Buf = Vec<u8>;

        fn build(plan: &Plan) -> Result<Self, Unsupported> {
            Err(format!("{:?}", plan.settings).into())
        }

        fn acquire(&mut self, _bytes: usize) -> Vec<u8> {
            unreachable!("it is never made")
        }
    }

    impl Frames for Asking {
        type Frame = Vec<u8>;
        type Open<'a> = adapters::vec::Open;

        fn build(plan: &Plan) -> Result<Self, Unsupported> {
            <Self as Pool>::build(plan)
        }

        fn open(&mut self) -> Self::Open<'_> {
            unreachable!("it is never made")
        }
    }

    /// In every workload with pools, the engine without settings gets none.
    #[test]
    fn settings_reach_the_pool_in_every_workload() {
        let bare = Engine::new("asking", Kind::Strategy, "").whole::<Asking>().sends::<Asking>();
        let each = bare.threads_each::<Asking>().frames::<Asking>();
        let mut cases = cases(Scale::Test);
        cases.retain(|case| bare.takes_part(case));
        assert!(cases.len() > 50);
        for planned in [each, bare.threads_share::<Asking>().frames::<Asking>()] {
            let unset = planned.without_settings("asking-default", "");
            for case in &cases {
                let reason = |engine: &Engine| engine.cell(case).err().map(|reason| reason.0);
                assert_eq!(reason(&planned).as_deref(), Some("Planned"), "{case}");
                assert_eq!(reason(&unset).as_deref(), Some("Unset"), "{case}");
            }
        }
    }
}
