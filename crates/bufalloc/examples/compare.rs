//! Compares the allocator with the one below it, in turns: `cargo run --release --example compare`.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one promise is behind all of a block")]
#![allow(clippy::std_instead_of_alloc, clippy::std_instead_of_core, reason = "it has an operating system")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bufalloc::Large;

static LARGE: Large = Large::new();

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("a size")
}

/// Grows a block from 4 KiB by doubling it, and writes what is new.
fn grow(alloc: &impl GlobalAlloc, to: usize) {
    let mut size = 4 << 10;
    // SAFETY: the size is not 0.
    let mut start = unsafe { alloc.alloc(layout(size)) };
    // SAFETY: its bytes.
    unsafe { start.write_bytes(1, size) };
    while size < to {
        // SAFETY: its block.
        start = unsafe { alloc.realloc(start, layout(size), size * 2) };
        // SAFETY: the new half.
        unsafe { start.add(size).write_bytes(1, size) };
        size *= 2;
    }
    // SAFETY: its block.
    unsafe { alloc.dealloc(start, layout(size)) };
}

/// Numbers that differ.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Allocates and frees blocks of 100 B to 4 KiB, some of which live for a while.
fn small(alloc: &impl GlobalAlloc, rounds: usize) {
    let mut numbers = Numbers(1);
    let mut held = [(std::ptr::null_mut::<u8>(), 0); 64];
    for round in 0..rounds {
        let size = 100 + numbers.below(3997);
        let place = &mut held[round % 64];
        if place.1 > 0 {
            // SAFETY: its block.
            unsafe { alloc.dealloc(place.0, layout(place.1)) };
        }
        // SAFETY: the size is not 0.
        *place = (unsafe { alloc.alloc(layout(size)) }, size);
        // SAFETY: its byte.
        unsafe { place.0.write_volatile(1) };
    }
    for (start, size) in held.into_iter().filter(|place| place.1 > 0) {
        // SAFETY: its block.
        unsafe { alloc.dealloc(start, layout(size)) };
    }
}

/// Eight threads allocate blocks of 32 KiB to 1 MiB, write to each page, and free blocks of others.
fn threads(alloc: &(impl GlobalAlloc + Sync), rounds: usize) {
    let places: Vec<_> = (0..64).map(|_| Mutex::new((0_usize, 0_usize))).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let places = &places;
            scope.spawn(move || {
                let mut numbers = Numbers(thread);
                for _ in 0..rounds {
                    let log = numbers.below(5);
                    let size = (32 << 10 << log) + numbers.below(32 << 10 << log);
                    // SAFETY: the size is not 0.
                    let start = unsafe { alloc.alloc(layout(size)) };
                    for at in (0..size).step_by(4096) {
                        // SAFETY: within it.
                        unsafe { start.add(at).write(1) };
                    }
                    let place = &places[numbers.below(places.len())];
                    let new = (start.expose_provenance(), size);
                    let (other, size) = std::mem::replace(&mut *place.lock().expect("no panic"), new);
                    if size > 0 {
                        let other = std::ptr::with_exposed_provenance_mut(other);
                        // SAFETY: taken out of its place.
                        unsafe { alloc.dealloc(other, layout(size)) };
                    }
                }
            });
        }
    });
    for place in places {
        let (start, size) = place.into_inner().expect("no panic");
        if size > 0 {
            // SAFETY: its block.
            unsafe { alloc.dealloc(std::ptr::with_exposed_provenance_mut(start), layout(size)) };
        }
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Prints the times of both in turns, the median of each, and of their quotients.
fn compare(name: &str, ours: impl Fn(), theirs: impl Fn()) {
    const TURNS: usize = 41;
    let turn = |turn: usize| {
        if turn.is_multiple_of(2) {
            let ours = time(&ours);
            (ours, time(&theirs))
        } else {
            let theirs = time(&theirs);
            (time(&ours), theirs)
        }
    };
    let mut turns: Vec<_> = (0..TURNS).map(turn).collect();
    turns.sort_by(|a, b| {
        let quotient = |(ours, theirs): &(Duration, Duration)| ours.as_secs_f64() / theirs.as_secs_f64();
        quotient(a).total_cmp(&quotient(b))
    });
    let (ours, theirs) = turns[TURNS / 2];
    println!("{name:28} {ours:10.1?} of {theirs:10.1?}: {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
}

fn main() {
    for (name, to, times) in [("grown to 1 MiB", 1 << 20, 50), ("grown to 64 MiB", 64 << 20, 1)] {
        let grow_all = |alloc: &dyn Fn()| (0..times).for_each(|_| alloc());
        compare(name, || grow_all(&|| grow(&LARGE, to)), || grow_all(&|| grow(&System, to)));
    }
    compare("small blocks", || small(&LARGE, 2_000_000), || small(&System, 2_000_000));
    compare("eight threads", || threads(&LARGE, 400), || threads(&System, 400));
    println!("{:?}", bufalloc::stats());
}
