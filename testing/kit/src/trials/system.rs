//! T25: a hostile system, for each strategy: calls that it refuses after the start, signals amid
//! traffic, and an address space that is used up. Each trial is for a process of its
//! own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, BufferPool, SplitLease};
use bufkit::orphan;
use fastrand::Rng;

use super::traffic;
use crate::Kit;
use crate::errands::Errands;
use crate::parcel::Parcel;
use crate::{process, sandbox};

/// Longer than anything takes on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(10);
/// Sizes of requests: small ones, some of pages, and ones that an allocator has mappings for.
const SIZES: [usize; 7] = [1, 60, 1500, 5000, 20_000, 70_000, 300_000];
/// Buffers that are held at once.
const HELD: usize = 6;
/// Signals that reach each thread amid the traffic.
const SIGNALS: usize = 100;
/// Address space that is left, and buffers that are more than that.
const LEFT_BYTES: usize = 8 << 20;
const LARGE_BYTES: usize = 300_000;
const MOST_LARGE: usize = 4000;
/// More than are held of those.
const LISTED: usize = 64;

/// Lists the calls of a pool, its allocator and its locks, after the start. `brk` is not among
/// them, since it reports no error: the C library takes that of a filter for an address.
fn calls() -> Vec<(&'static str, libc::c_long)> {
    vec![
        ("madvise", libc::SYS_madvise),
        ("mmap", sandbox::MMAP),
        ("munmap", libc::SYS_munmap),
        ("mremap", libc::SYS_mremap),
        ("mprotect", libc::SYS_mprotect),
        ("membarrier", libc::SYS_membarrier),
        ("futex", libc::SYS_futex),
        ("sched_yield", libc::SYS_sched_yield),
    ]
}

/// Another handle of a pool, for another thread, where there are such.
pub type Handle<P> = fn(&P) -> Option<P>;

/// A pool whose buffers can go to any thread.
pub trait Sent: BufferPool<Lease: SplitLease> + Send + 'static {}

impl<P: BufferPool<Lease: SplitLease> + Send + 'static> Sent for P {}

/// Whether requests may fail for want of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Enough,
    MayLack,
}

/// A filled buffer, which is looked at when it goes.
type Filled<P> = Parcel<<P as BufferPool>::Lease>;

/// Returns the largest request for which a pool has room beside those that are held.
fn limit_of<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>, pool: &P) -> usize {
    if kit.rejects { pool.max_capacity() / (4 * HELD) } else { pool.max_capacity() }
}

/// Takes a filled buffer of `bytes` bytes. `None` is a refusal that there is a reason for.
fn filled<P: BufferPool<Lease: SplitLease>>(
    kit: &Kit<P>,
    pool: &mut P,
    bytes: usize,
    memory: Memory,
) -> Option<Filled<P>> {
    match Parcel::acquired(pool, bytes, None, &mut Rng::with_seed(bytes as u64)) {
        Ok(buf) => Some(buf),
        Err(AcquireError::OutOfMemory { requested }) if memory == Memory::MayLack => {
            assert_eq!(requested, bytes);
            None
        }
        Err(error @ AcquireError::Exhausted { requested, .. }) => {
            assert!(kit.rejects && requested == bytes, "{error}");
            None
        }
        Err(error) => panic!("{bytes} bytes: {error}"),
    }
}

/// Takes and drops buffers of all sizes, some held at once, and a frame in between. Returns how
/// many were served.
fn work<P: BufferPool<Lease: SplitLease>>(
    kit: &Kit<P>,
    pool: &mut P,
    rounds: usize,
    memory: Memory,
) -> usize {
    let (mut held, mut served) = (VecDeque::with_capacity(2 * HELD), 0);
    let limit = limit_of(kit, pool);
    for _ in 0..rounds {
        for bytes in SIZES.into_iter().filter(|&bytes| bytes <= limit) {
            match filled(kit, pool, bytes, memory) {
                Some(buf) => {
                    held.push_back(buf);
                    served += 1;
                }
                None => held.clear(),
            }
            if held.len() > HELD {
                held.pop_front();
            }
        }
        drop(Parcel::framed(pool, 700.min(limit), None, &mut Rng::with_seed(3)));
    }
    served
}

/// Checks that all buffers of a pool came back.
fn nothing_is_out<P: BufferPool<Lease: SplitLease>>(pool: &P) {
    assert_eq!(pool.stats().in_use, 0, "nothing is out");
}

/// Runs what a pool goes through once: requests, releases here and on another thread, trims,
/// statistics, and its end on that thread, with buffers out here.
fn whole_life<P: Sent>(
    kit: Kit<P>,
    handle: Handle<P>,
    mut pool: P,
    before: Vec<Filled<P>>,
    there: &Errands,
    memory: Memory,
) {
    let handle = handle(&pool);
    let few = 1500.min(limit_of(&kit, &pool));
    there.run(move || {
        drop(before);
        if let Some(mut pool) = handle {
            work(&kit, &mut pool, 2, memory);
            kit.trim_all(&mut pool);
        }
    });
    let served = work(&kit, &mut pool, 3, memory);
    assert!(served > 0, "nothing was served");
    for _ in 0..3 {
        kit.trim_all(&mut pool);
        work(&kit, &mut pool, 1, memory);
    }
    let theirs: Vec<_> = (0..3).filter_map(|_| filled(&kit, &mut pool, few, memory)).collect();
    there.run(move || drop(theirs));
    kit.trim_all(&mut pool);
    nothing_is_out(&pool);
    let late: Vec<_> = (0..4).filter_map(|_| filled(&kit, &mut pool, few, memory)).collect();
    there.run(move || drop(pool));
    drop(late);
    orphan::sweep();
}

/// Refuses one call after another once a pool was used. Requests, releases, trims and the pool's
/// end continue, or end in an error.
///
/// Each refusal is in a child of its own: a filter stays for good.
pub fn t25_refused_calls<P: Sent>(kit: &Kit<P>, handle: Handle<P>) {
    let make = || {
        let mut pool = (kit.make)();
        work(kit, &mut pool, 1, Memory::Enough);
        let few = 1500.min(limit_of(kit, &pool));
        let before: Vec<_> = (0..4).filter_map(|_| filled(kit, &mut pool, few, Memory::Enough)).collect();
        (pool, before)
    };
    sandbox::each_refused(&calls(), LIMIT, make, |name, (pool, before), begin| {
        // A thread from before, as most programs have: one that is made then may be refused itself.
        let there = Errands::new();
        there.run(|| ());
        begin();
        let memory = if name == "mmap" { Memory::MayLack } else { Memory::Enough };
        whole_life(*kit, handle, pool, before, &there, memory);
        // The standard library's, and the C library's, ends of threads need these two.
        if !["futex", "munmap"].contains(&name) {
            there.end();
        }
    });
}

/// Signals each thread every millisecond, amid traffic between threads and whole lives of pools:
/// nothing is lost, and nothing fails.
pub fn t25_signals<P: Sent>(kit: &Kit<P>, handle: Handle<P>) {
    let there = Errands::new();
    sandbox::signalled(SIGNALS, || {
        traffic::for_a_moment(kit);
        let mut pool = (kit.make)();
        let before = filled(kit, &mut pool, 1500, Memory::Enough).into_iter().collect();
        whole_life(*kit, handle, pool, before, &there, Memory::Enough);
    });
    there.end();
}

/// Uses up the address space amid the traffic of two threads. Requests end in an error, what is out
/// stays as it is, and all is as before once there is room again.
///
/// The list of what is out, where there is one, ends the process when it cannot grow, so it has
/// room before.
pub fn t25_no_address_space<P: Sent>(kit: &Kit<P>, handle: Handle<P>) {
    process::calm_allocator();
    let mut pool = (kit.make)();
    let bytes = LARGE_BYTES.min(limit_of(kit, &pool));
    let (there, over) = (Errands::new(), Arc::new(AtomicBool::new(false)));
    let rounds = Arc::new(AtomicUsize::new(0));
    let (kit, is_over, count) = (*kit, Arc::clone(&over), Arc::clone(&rounds));
    let mut theirs = handle(&pool).unwrap_or_else(kit.make);
    work(&kit, &mut theirs, 1, Memory::Enough);
    let busy = there.start(move || {
        // ORDER: SeqCst, for ease; here and below.
        while !is_over.load(SeqCst) {
            work(&kit, &mut theirs, 1, Memory::MayLack);
            kit.trim_all(&mut theirs);
            count.fetch_add(1, SeqCst);
        }
        theirs
    });
    work(&kit, &mut pool, 1, Memory::Enough);
    drop((0..LISTED).filter_map(|_| filled(&kit, &mut pool, 1, Memory::Enough)).collect::<Vec<_>>());
    // With room, so that nothing but the pools has to allocate.
    let mut held: Vec<Filled<P>> = Vec::with_capacity(MOST_LARGE);
    while rounds.load(SeqCst) == 0 {
        thread::yield_now();
    }
    let left = (process::address_space_bytes() + LEFT_BYTES) as u64;
    process::limited(libc::RLIMIT_AS, left, || {
        while held.len() < MOST_LARGE
            && let Some(buf) = filled(&kit, &mut pool, bytes, Memory::MayLack)
        {
            held.push(buf);
        }
        let is_refused = held.len() < MOST_LARGE;
        assert!(
            is_refused,
            "{} buffers of {bytes} bytes in {LEFT_BYTES}: the trial showed nothing",
            held.len()
        );
        // Again and again, in all sizes, and beside the other thread.
        let before = rounds.load(SeqCst);
        for round in 0..3 {
            work(&kit, &mut pool, 1, Memory::MayLack);
            held[round % held.len().max(1)].check();
        }
        while rounds.load(SeqCst) < before + 2 {
            thread::yield_now();
        }
        // Some room, and none again.
        let half = held.len() / 2;
        held.truncate(half);
        kit.trim_all(&mut pool);
        while held.len() < MOST_LARGE
            && let Some(buf) = filled(&kit, &mut pool, bytes, Memory::MayLack)
        {
            held.push(buf);
        }
        assert!(held.len() > half, "what came back is not to be had");
    });
    over.store(true, SeqCst);
    let mut theirs = busy.wait();
    held.clear();
    for pool in [&mut pool, &mut theirs] {
        kit.trim_all(pool);
        assert!(work(&kit, pool, 2, Memory::Enough) > 0);
        nothing_is_out(pool);
    }
    whole_life(kit, handle, pool, Vec::new(), &there, Memory::Enough);
    there.end();
}
