//! T26: what an operation costs as its surroundings grow.

use std::mem;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bufcore::{Buf, BufferPool};
use fastrand::Rng;

use crate::process::ThreadTimer;

/// Bytes of each buffer.
const BYTES: usize = 32;
/// Numbers of late releases of one pool, and of pools with a buffer each, some of which take a while
/// to make: what one costs at the first is compared with what it costs at the others.
const NUMBERS: &[usize] = if cfg!(debug_assertions) { &[500, 16_000] } else { &[4_000, 32_000, 256_000] };
const POOLS: &[usize] = if cfg!(debug_assertions) { &[500, 8_000] } else { &[4_000, 32_000] };
/// How many handles of pools that are gone are forgotten before.
const FORGOTTEN: usize = 1000;
/// What a release may cost more at a large number than at a small one: a factor, and what may come
/// on top of that, for caches that are too small, or that others use. A cost that grows with the
/// number is far beyond both.
const FACTOR: u32 = 8;
const SLACK: Duration = Duration::from_micros(3);

/// In which order the buffers are released.
#[derive(Debug, Clone, Copy)]
enum Order {
    OldestFirst,
    NewestFirst,
    Random,
}

/// Whose the buffers were.
#[derive(Debug, Clone, Copy)]
enum Pools {
    One,
    OneForEach,
}

/// What the parts of a run cost, for one buffer.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// The end of the pools.
    ends: Duration,
    /// The releases.
    releases: Duration,
}

impl Costs {
    const NONE: Self = Self { ends: Duration::MAX, releases: Duration::MAX };

    fn least(self, other: Self) -> Self {
        Self { ends: self.ends.min(other.ends), releases: self.releases.min(other.releases) }
    }

    #[track_caller]
    /// Returns a part that costs more than it may where there are many, and what it costs where there
    /// are few, which is `few`.
    fn over(self, few: Self, pools: Pools) -> Option<(&'static str, Duration, Duration)> {
        // The memory of many pools is spread over the heap.
        let slack = if matches!(pools, Pools::One) { SLACK } else { SLACK * 4 };
        let parts = [("end", self.ends, few.ends), ("release", self.releases, few.releases)];
        parts.into_iter().find(|(_, more, few)| *more > *few * FACTOR + slack)
    }
}

/// Makes buffers of pools that are not gone yet.
fn held<P: BufferPool>(make: &impl Fn(usize) -> P, pools: Pools, n: usize) -> (Vec<P>, Vec<Buf<P::Lease>>) {
    let acquire = |pool: &mut P| pool.acquire(BYTES).expect("made for as many");
    match pools {
        Pools::One => {
            let mut pool = make(n);
            let bufs = (0..n).map(|_| acquire(&mut pool)).collect();
            (vec![pool], bufs)
        }
        Pools::OneForEach => (0..n)
            .map(|_| {
                let mut pool = make(1);
                let buf = acquire(&mut pool);
                (pool, buf)
            })
            .unzip(),
    }
}

/// Releases `n` buffers whose pools are gone.
fn run<P: BufferPool>(make: &impl Fn(usize) -> P, from: Pools, order: Order, n: usize) -> Costs {
    let (pools, mut bufs) = held(make, from, n);
    match order {
        Order::OldestFirst => {}
        Order::NewestFirst => bufs.reverse(),
        Order::Random => Rng::with_seed(n as u64).shuffle(&mut bufs),
    }
    let timer = ThreadTimer::start();
    drop(pools);
    let ends = timer.elapsed();
    let timer = ThreadTimer::start();
    bufs.into_iter().for_each(drop);
    let releases = timer.elapsed();
    let each = |time: Duration| time / n as u32;
    Costs { ends: each(ends), releases: each(releases) }
}

/// Checks that the buffers of pools that are gone cost the same to release, whatever their number
/// and their order, and whatever was forgotten of other pools that are gone (T26 for late
/// releases). `make` makes a pool for a number of buffers of 32 bytes at once.
///
/// For a process of its own, because what is forgotten stays for ever.
pub fn t26_late_releases<P: BufferPool>(make: impl Fn(usize) -> P) {
    let numbers_of = |pools| if matches!(pools, Pools::One) { NUMBERS } else { POOLS };
    let setups = || {
        let orders = [Order::OldestFirst, Order::NewestFirst, Order::Random];
        [Pools::One, Pools::OneForEach].into_iter().flat_map(move |pools| orders.map(|order| (pools, order)))
    };
    // The least of several, since an interrupt may fall into any of them.
    let few =
        |pools, order| (0..5).fold(Costs::NONE, |least, _| run(&make, pools, order, NUMBERS[0]).least(least));
    let few: Vec<_> = setups().map(|(pools, order)| few(pools, order)).collect();
    for forgotten in [0, FORGOTTEN] {
        for pools in [Pools::One, Pools::OneForEach].into_iter().filter(|_| forgotten > 0) {
            let (gone, bufs) = held(&make, pools, forgotten);
            drop(gone);
            bufs.into_iter().for_each(mem::forget);
        }
        for ((pools, order), few) in setups().zip(&few) {
            for &n in numbers_of(pools) {
                let what = format!("{n} late releases, {order:?}, pools: {pools:?}, {forgotten} forgotten");
                let mut costs = run(&make, pools, order, n);
                for _ in 0..4 {
                    if costs.over(*few, pools).is_some() {
                        costs = run(&make, pools, order, n).least(costs);
                    }
                }
                println!("{what}: {:?} for each end, {:?} for each release", costs.ends, costs.releases);
                if let Some((part, more, few)) = costs.over(*few, pools) {
                    panic!("{what}: {more:?} for each {part}, with few {few:?}");
                }
            }
        }
    }
}

/// Buffers that are out when the measured pool ends, each released late.
const LATE: usize = 16;
/// Buffers of ended pools that are kept while the measured pool ends.
const KEPT: usize = 16_000;
/// How many times the cost of an end and its late releases may grow with the number of kept
/// buffers.
const KEPT_FACTOR: u32 = 3;
/// What may come on top of that for caches that others use too, which no list of all that is kept
/// can be walked in.
const KEPT_SLACK: Duration = Duration::from_micros(30);

/// Checks that the end of a pool, and the releases after it, cost the same however many buffers of
/// other ended pools are still out. Another thread, which lives, has acquired all buffers. `make`
/// makes a pool for a number of buffers of 32 bytes at once.
pub fn t26_an_end_costs_the_same_beside_kept_buffers<P>(make: impl Fn(usize) -> P + Send + Sync)
where
    P: BufferPool + Send,
    P::Lease: Send,
{
    thread::scope(|scope| {
        let (ask, asked) = mpsc::channel::<(Pools, usize)>();
        let (give, given) = mpsc::channel();
        let make = &make;
        // The owner of all buffers: it lives until the end of the trial, and releases none.
        scope.spawn(move || {
            for (pools, buffers) in asked {
                give.send(held(make, pools, buffers)).expect("the trial waits for it");
            }
        });
        let held = |pools, buffers| {
            ask.send((pools, buffers)).expect("the owner lives");
            given.recv().expect("the owner lives")
        };
        // The least of many: others have the processor and its caches too.
        let least = || {
            let once = || {
                let (pools, bufs) = held(Pools::One, LATE);
                let timer = ThreadTimer::start();
                drop(pools);
                drop(bufs);
                timer.elapsed()
            };
            (0..100).map(|_| once()).min().expect("some runs")
        };
        let before = least();
        let (pools, kept) = held(Pools::OneForEach, KEPT);
        drop(pools);
        let beside = least();
        drop(kept);
        let alone = before.max(least());
        println!(
            "an end and {LATE} late releases: {beside:?} beside {KEPT} kept buffers, {alone:?} beside none"
        );
        assert!(
            beside <= alone * KEPT_FACTOR + KEPT_SLACK,
            "{beside:?} beside {KEPT} kept buffers, {alone:?} beside none"
        );
    });
}

/// Buffers that are out while requests are measured, from few to many.
const OUT: &[usize] = if cfg!(debug_assertions) { &[64, 16_000] } else { &[64, 4_000, 64_000, 1_000_000] };
/// Measured requests.
const REQUESTS: usize = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
/// What a request may cost with many out: a factor over that with few, and the misses of the
/// processor's caches in logarithmically many steps.
const OUT_FACTOR: u32 = 8;
const OUT_SLACK: Duration = Duration::from_nanos(if cfg!(debug_assertions) { 20_000 } else { 10_000 });

/// What the measured requests are for.
#[derive(Debug, Clone, Copy)]
enum Traffic {
    /// Another buffer of the same size, for one that is released.
    Equal,
    /// Another of up to twice the bytes, for as many as it takes.
    Mixed,
    /// More than is free, in vain, between those of `Mixed`.
    Refused,
}

/// Returns what one request costs with `n` buffers out, releases included.
fn request<P: BufferPool>(make: &impl Fn(usize) -> P, traffic: Traffic, n: usize) -> Duration {
    let mut pool = make(n);
    let mut random = Rng::with_seed(n as u64);
    let mut bufs: Vec<_> = (0..n).map(|_| pool.acquire(BYTES).expect("made for as many")).collect();
    random.shuffle(&mut bufs);
    let mut serve = |requests| {
        for _ in 0..requests {
            drop(bufs.swap_remove(random.usize(..bufs.len())));
            if matches!(traffic, Traffic::Refused) {
                pool.acquire(n * BYTES - BYTES).map(drop).expect_err("most of it is out");
            }
            let bytes = if matches!(traffic, Traffic::Equal) { BYTES } else { random.usize(1..=2 * BYTES) };
            let buf = loop {
                match pool.acquire(bytes) {
                    Ok(buf) => break buf,
                    Err(_) => drop(bufs.swap_remove(random.usize(..bufs.len()))),
                }
            };
            bufs.push(buf);
        }
    };
    // First, what is paid once, and holes between the buffers.
    serve(REQUESTS);
    let timer = ThreadTimer::start();
    serve(REQUESTS);
    timer.elapsed() / REQUESTS as u32
}

/// Checks that a request costs the same, or grows with the logarithm, however many buffers are out,
/// in a pool that is full (T26 for requests). `make` makes a pool for a number of buffers of 32 bytes
/// at once, with an error for more.
pub fn t26_requests_with_many_out<P: BufferPool>(make: impl Fn(usize) -> P) {
    for traffic in [Traffic::Equal, Traffic::Mixed, Traffic::Refused] {
        let measured = |n| (0..3).map(|_| request(&make, traffic, n)).min().expect("three");
        let few = measured(OUT[0]);
        for &n in OUT {
            let most = few * OUT_FACTOR + OUT_SLACK;
            let mut cost = measured(n);
            if cost > most {
                cost = cost.min(measured(n));
            }
            println!("{traffic:?}: {cost:?} for each request with {n} out");
            assert!(cost <= most, "{traffic:?}: {cost:?} with {n} out, {few:?} with few");
        }
    }
}
