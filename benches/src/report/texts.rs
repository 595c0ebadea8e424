//! What the report says in words, the same in each.

/// How it was measured, in short.
pub(super) const METHOD: &str = "Each row runs in processes of its own. Every contestant first proves that it keeps the bytes of several \
live buffers apart. Then all take turns, a few milliseconds each, in an order that rotates from round to round. Times are the \
median over the rounds of several processes; ratios are formed of medians of the same rounds, since times on a shared machine mean little by \
themselves. Building pools is not timed. Heap calls, fallbacks and memory come from separate processes that time nothing. \
`floor` keeps no books at all: it shows what the workload costs by itself. The rest is in `docs/benchmarking.md`.";

/// What the workloads do.
const ABOUT: [(&str, &str); 18] = [
    ("reuse", "Acquire a buffer, write its first byte, drop it. One operation is all of that."),
    (
        "live",
        "As `reuse`, while others are held: the cost must not grow with the number of live \
         buffers. One operation is one buffer that comes and goes.",
    ),
    (
        "two-pools",
        "As `reuse`, from two pools in turn, and from one of them alone for comparison: what is \
         cached for one pool must not go when another is used. One operation is one buffer.",
    ),
    (
        "burst",
        "Acquire N buffers, write the first byte of each, drop them oldest first, newest first, \
         or at random. One operation is one buffer.",
    ),
    ("mixed", "Requests of 64 B to 64 KiB, the newest eight held. One operation is one buffer."),
    (
        "queue",
        "The newest 64 or 1024 buffers are held, each of a random size up to 4 KiB, and memory is \
         short: a quarter more bytes than are out, a quarter more buffers for `ring`, two slots \
         more for `slot`. One operation is one buffer that comes and the oldest that goes.",
    ),
    (
        "ring-fixed",
        "RingAl's first table: the newest N buffers are held, each filled to a random part of its \
         size. One operation is one buffer that comes and the oldest that goes.",
    ),
    (
        "ring-extend",
        "RingAl's second table: as `ring-fixed`, with buffers that grow in steps to their length, \
         which nobody knows beforehand, and are then finished.",
    ),
    (
        "chaos",
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
         that the compiler knows. `vec` is a `VecDeque`, `floor` two plain copies through the \
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
        "Bytes from one thread to another through a ring of 256 KiB, in chunks that are copied in \
         and out. `pipe` is the operating system's. A contestant that cannot wait is asked again until there is \
         something to do. One operation is a chunk.",
    ),
    (
        "messages",
        "Messages through one queue of 64 KiB, from some threads to others, each copied in and \
         copied out; lengths fixed or random up to 4 KiB. `vec` a `VecDeque` of vectors behind one \
         lock. One operation is one message.",
    ),
    ("file", "Read a large file in chunks and sum the bytes. One operation is one chunk."),
    (
        "replay",
        "The requests of a recorded program, in their order, by one thread. One operation is one \
         buffer.",
    ),
];

/// What a workload does, in a few sentences.
pub(super) fn about(workload: &str) -> &'static str {
    ABOUT.iter().find(|(name, _)| *name == workload).map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::WORKLOADS;

    #[test]
    fn every_workload_is_described() {
        assert_eq!(ABOUT.len(), WORKLOADS.len());
        for workload in WORKLOADS {
            assert!(!about(workload).is_empty(), "{workload}");
        }
    }
}
