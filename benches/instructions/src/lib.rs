//! What one operation of a strategy costs in instructions, mispredicted branches and cache misses:
//! the work that `benches/instructions.rs` counts.
//!
//! A [`Measure`] is one operation of one strategy, done a given number of times by the same code
//! for all. It is counted for two numbers of times. The cost of one operation is what the longer
//! run takes more, divided by what it does more, without what it costs to start. Counts do not
//! depend on the machine's load, so a change of a few percent is a change of the code.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod gate;

use core::hint::black_box;

use bufbump::BumpPool;
use bufcore::{Buf, BufferPool, Frozen, Lease, SplitLease, Writer};
use bufring::RingPool;
use bufshard::ShardPool;
use bufslot::SlotPool;

/// Bytes of each buffer and of each step by which a frame grows.
const BYTES: usize = 64;
/// Operations in the shorter run. Enough that a cost which comes once in a hundred operations is in
/// it.
const SHORT: usize = 1000;
/// Operations in the longer run.
const LONG: usize = 3000;

/// One operation of a strategy.
pub struct Measure {
    /// The strategy's name.
    pub strategy: &'static str,
    /// The operation's.
    pub operation: &'static str,
    prepare: Box<dyn Fn(usize) -> Box<dyn Work>>,
}

impl core::fmt::Debug for Measure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.strategy, self.operation)
    }
}

/// All measures. A strategy is in by two lines: its pool, built for a number of buffers, and its
/// frames, if it has any.
#[must_use]
pub fn measures() -> Vec<Measure> {
    let mut all = Vec::new();
    all.extend(whole("slot", slots));
    all.push(frames("slot", slots));
    all.extend(whole("ring", ring));
    all.push(frames("ring", ring));
    all.extend(whole("bump", bump));
    all.extend(whole("shard", shard));
    all
}

/// With a region in which a frame has room to grow to the end.
fn slots(count: usize) -> SlotPool {
    let built = SlotPool::builder().slots(count).capacity(2 * count * BYTES).build();
    built.unwrap_or_else(|error| panic!("a slot pool for {count} buffers: {error}"))
}

/// Twice as large as the buffers with their guards.
fn ring(count: usize) -> RingPool {
    let built = RingPool::new(4 * count * BYTES);
    built.unwrap_or_else(|error| panic!("a ring for {count} buffers: {error}"))
}

/// With the usual shards.
fn bump(_count: usize) -> BumpPool {
    BumpPool::new().unwrap_or_else(|error| panic!("a bump pool: {error}"))
}

/// With all buffers in the one shard, from where the thread's cache takes them.
fn shard(count: usize) -> ShardPool {
    let pool = ShardPool::builder().shards(1).shard_buffers(count).build();
    let pool = pool.unwrap_or_else(|error| panic!("a sharded pool for {count} buffers: {error}"));
    let kept = pool.preallocate(count, BYTES);
    assert!(kept.is_ok_and(|kept| kept >= count), "room for {count} buffers, not {kept:?}");
    pool
}

/// Work that is prepared: pools are built, and buffers acquired that are only to be dropped.
pub trait Work {
    /// Does it, once.
    fn work(&mut self);
}

impl core::fmt::Debug for dyn Work {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Work")
    }
}

/// Numbers of the runs: two for each measure, the shorter one first.
pub fn runs() -> impl Iterator<Item = usize> {
    0..2 * measures().len()
}

/// Prepares the run of this number.
///
/// # Panics
///
/// When there is no such run.
#[must_use]
pub fn prepare(run: usize) -> Box<dyn Work> {
    let all = measures();
    (all[run / 2].prepare)(if run.is_multiple_of(2) { SHORT } else { LONG })
}

/// Events in one operation, from those of its two runs.
#[must_use]
pub fn per_operation(short: u64, long: u64) -> f64 {
    (long as f64 - short as f64) / (LONG - SHORT) as f64
}

/// A pool and what is out of it.
struct Pool<P: BufferPool> {
    pool: P,
    count: usize,
    /// Of requests, where they differ.
    sizes: Vec<usize>,
    live: Vec<Buf<P::Lease>>,
    frozen: Vec<Frozen<P::Lease>>,
}

impl<P: BufferPool> Pool<P> {
    fn new(pool: P, count: usize) -> Self {
        let (live, frozen) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Self { pool, count, sizes: Vec::new(), live, frozen }
    }

    #[inline(always)]
    fn one(&mut self) -> Buf<P::Lease> {
        self.pool.acquire(black_box(BYTES)).expect("the pool was built for as many")
    }

    /// Draws sizes, and has one buffer of each after the other, so that the pool is not new.
    fn draw(&mut self, size: fn(&mut fastrand::Rng) -> usize) {
        let mut random = fastrand::Rng::with_seed(3);
        self.sizes = (0..self.count).map(|_| size(&mut random)).collect();
        self.play();
    }

    fn play(&mut self) {
        for &bytes in &self.sizes {
            let mut buf = self.pool.acquire(bytes).expect("the pool has room for the largest");
            touch(&mut buf);
        }
    }

    fn acquire(&mut self) {
        for _ in 0..self.count {
            let buf = self.one();
            self.live.push(buf);
        }
    }
}

/// One of the sizes of `classes`: all classes of the sharded pool up to 64 KiB, the k-th doubling
/// with weight 1 / k.
fn any_class(random: &mut fastrand::Rng) -> usize {
    let least = 64 << buftrials::sizes::zipf(10, || random.f64());
    random.usize(least + 1..=2 * least)
}

/// What is done with a pool.
struct Job<P: BufferPool>(Pool<P>, fn(&mut Pool<P>));

impl<P: BufferPool> Work for Job<P> {
    fn work(&mut self) {
        (self.1)(&mut self.0);
    }
}

/// The operations on whole buffers.
fn whole<P: BufferPool + 'static>(strategy: &'static str, build: fn(usize) -> P) -> Vec<Measure> {
    type Do<P> = fn(&mut Pool<P>);
    let nothing: Do<P> = |_| {};
    let acquire: Do<P> = Pool::acquire;
    let used: Do<P> = |pool| {
        pool.acquire();
        pool.live.clear();
    };
    let operations: [(&str, Do<P>, Do<P>); 6] = [
        // All of them stay.
        ("acquire", nothing, acquire),
        // Oldest first.
        ("drop", acquire, |pool| pool.live.drain(..).for_each(drop)),
        // Acquired, its first byte written, and dropped, as in the workload `reuse`, from a pool
        // that is not new.
        ("reuse", used, |pool| {
            for _ in 0..pool.count {
                let mut buf = pool.one();
                touch(&mut buf);
            }
        }),
        // As `reuse`, with sizes at random.
        ("classes", |pool| pool.draw(any_class), Pool::play),
        ("two-sizes", |pool| pool.draw(|random| if random.bool() { 100 } else { 5000 }), Pool::play),
        ("freeze", acquire, |pool| {
            for buf in pool.live.drain(..) {
                pool.frozen.push(buf.freeze());
            }
        }),
    ];
    operations
        .into_iter()
        .map(|(operation, before, work)| Measure {
            strategy,
            operation,
            prepare: Box::new(move |count| {
                let mut pool = Pool::new(build(count), count);
                before(&mut pool);
                Box::new(Job(pool, work))
            }),
        })
        .collect()
}

/// A frame that grows.
struct Growing<P> {
    pool: P,
    count: usize,
}

impl<P: BufferPool<Lease: SplitLease>> Work for Growing<P> {
    fn work(&mut self) {
        let mut writer = Writer::new(&mut self.pool);
        let step = black_box([1; BYTES]);
        for _ in 0..self.count {
            writer.extend_from_slice(&step).expect("room for the frame");
        }
        black_box(writer.finish());
    }
}

/// The operation on frames.
fn frames<P>(strategy: &'static str, build: fn(usize) -> P) -> Measure
where
    P: BufferPool<Lease: SplitLease> + 'static,
{
    let prepare = move |count| -> Box<dyn Work> { Box::new(Growing { pool: build(count), count }) };
    Measure { strategy, operation: "grow", prepare: Box::new(prepare) }
}

/// Writes the first byte of a buffer, in a way that the optimiser can neither leave out nor look through. It looks whether that is filled,
/// as the matrix does.
#[inline(always)]
fn touch<L: Lease>(buf: &mut Buf<L>) {
    let start = if buf.is_empty() { buf.spare_mut().as_mut_ptr() } else { buf.as_mut_slice().as_mut_ptr() };
    // SAFETY: the buffer is this one's alone, and has [`BYTES`] bytes.
    unsafe { start.write(1) };
    black_box(start);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_everything_runs() {
        let names: HashSet<String> = measures().iter().map(|measure| format!("{measure:?}")).collect();
        assert_eq!(names.len(), measures().len());
        for run in runs() {
            prepare(run).work();
        }
    }

    #[test]
    fn the_start_does_not_count() {
        assert_eq!(per_operation(700 + 1000 * 5, 700 + 3000 * 5), 5.0);
    }
}
