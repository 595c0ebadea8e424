//! A soak of what only this pool does, for `BUFTEST_SOAK_SECONDS` (1 unless set).

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bufshard::bufcore::Buf;
use bufshard::{ShardLease, ShardPool};
use testkit::pattern;
use testkit::process::{alone, open_files, resident_bytes, status_bytes, steady_allocator};

const THREADS: usize = 8;
const MIB: usize = 1 << 20;

type Shelf = Mutex<Vec<(Buf<ShardLease>, u64)>>;

/// One thread's life: random sizes, some of which are left for others, and some of others' dropped;
/// trims, and requests that wait.
fn life(pool: &ShardPool, shelf: &Shelf, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held: Vec<(Buf<ShardLease>, u64)> = Vec::new();
    for round in 0..300 {
        let bytes = 1 << rng.usize(..18);
        let bytes = rng.usize(bytes..=2 * bytes);
        let buf = if round % 16 == 0 {
            pool.acquire_timeout(bytes, Duration::from_millis(20))
        } else {
            pool.acquire(bytes)
        };
        if let Ok(mut buf) = buf {
            let seed = rng.u64(..);
            pattern::fill(buf.spare_mut(), seed, 0);
            buf.commit(bytes);
            held.push((buf, seed));
        }
        while held.len() > rng.usize(..12) {
            let (buf, seed) = held.swap_remove(rng.usize(..held.len()));
            pattern::check(&buf, seed, 0);
            if rng.bool() {
                // Another thread's instead, on the way.
                let mut shelf = shelf.lock().expect("nobody panics with it");
                shelf.push((buf, seed));
                let at = rng.usize(..shelf.len());
                let (other, seed) = shelf.swap_remove(at);
                drop(shelf);
                pattern::check(&other, seed, 0);
            }
        }
        match rng.u8(..) {
            0 => pool.trim(),
            1 => pool.trim_to(MIB),
            2..4 => pool.trim_idle(Duration::from_millis(1)),
            _ => {}
        }
    }
}

#[test]
fn t19_soak() {
    alone(module_path!(), "t19_soak", Duration::from_secs(3600), || {
        let seconds =
            env::var("BUFTEST_SOAK_SECONDS").map_or(1, |text| text.parse().expect("a number of seconds"));
        steady_allocator();
        let started = Instant::now();
        let mut samples = Vec::new();
        let shelf = Shelf::default();
        let lasting = ShardPool::builder().max_bytes(64 * MIB).build().expect("settings are right");
        while started.elapsed() < Duration::from_secs(seconds) || samples.len() < 16 {
            let round = samples.len() as u64;
            // One pool that stays, and one that goes with buffers out.
            let passing = ShardPool::builder().thread_cache(2).shards(2).build().expect("settings are right");
            thread::scope(|scope| {
                for index in 0..THREADS {
                    let pool = if index % 2 == 0 { &lasting } else { &passing };
                    let shelf = &shelf;
                    scope.spawn(move || life(pool, shelf, round * THREADS as u64 + index as u64));
                }
            });
            assert!(lasting.stats().reserved_bytes <= 64 * MIB);
            drop(passing);
            let mut shelf = shelf.lock().expect("nobody panics with it");
            for (buf, seed) in shelf.drain(..) {
                pattern::check(&buf, seed, 0);
            }
            drop(shelf);
            samples.push((resident_bytes(), open_files()));
        }
        // The second quarter against the last: what the first one sets up does not count.
        let quarter = samples.len() / 4;
        let mean = |part: &[(usize, usize)]| part.iter().map(|sample| sample.0).sum::<usize>() / part.len();
        let (early, late) = (mean(&samples[quarter..2 * quarter]), mean(&samples[3 * quarter..]));
        assert!(late <= early + 16 * MIB, "from {early} to {late} bytes in {} rounds", samples.len());
        assert!(late <= 160 * MIB, "{late} bytes resident");
        let files = |part: &[(usize, usize)]| part.iter().map(|sample| sample.1).max();
        assert_eq!(files(&samples[3 * quarter..]), files(&samples[quarter..2 * quarter]), "descriptors");
        drop(lasting);
    });
}

const BUDGET: usize = 256 * MIB;
/// The largest request of the trial below.
const LARGEST: usize = 16 * MIB;

/// What threads have out, and what was refused although half of the budget had room for it.
#[derive(Default)]
struct Tally {
    out: AtomicUsize,
    served: AtomicUsize,
    refused: AtomicUsize,
}

/// One thread's life: sizes from 64 B to 16 MiB, as many of each doubling, and random lifetimes. It
/// waits only while it holds nothing.
fn mixed(pool: &ShardPool, tally: &Tally, seed: u64, end: Instant) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held: Vec<Buf<ShardLease>> = Vec::new();
    while Instant::now() < end {
        let doubling = 64 << rng.usize(..18);
        let bytes = rng.usize(doubling..=2 * doubling);
        // ORDER: Relaxed, here and below: numbers for people.
        let out = tally.out.load(Ordering::Relaxed);
        let buf = if held.is_empty() {
            pool.acquire_timeout(bytes, Duration::from_secs(60)).map_err(|error| panic!("{error}"))
        } else {
            pool.acquire(bytes)
        };
        match buf {
            Ok(mut buf) => {
                buf.spare_mut().chunks_mut(4096).for_each(|page| page[0] = 1);
                buf.commit(bytes);
                tally.out.fetch_add(bytes, Ordering::Relaxed);
                tally.served.fetch_add(1, Ordering::Relaxed);
                held.push(buf);
            }
            Err(_) if out + bytes <= BUDGET / 2 => _ = tally.refused.fetch_add(1, Ordering::Relaxed),
            Err(_) => {}
        }
        while held.len() > rng.usize(..12) {
            let buf = held.swap_remove(rng.usize(..held.len()));
            tally.out.fetch_sub(buf.len(), Ordering::Relaxed);
            drop(buf);
        }
    }
}

/// Under mixed traffic the process keeps to the budget, and nobody waits for ever.
#[test]
fn t39_the_process_keeps_to_the_budget() {
    alone(module_path!(), "t39_the_process_keeps_to_the_budget", Duration::from_secs(3600), || {
        let seconds =
            env::var("BUFTEST_SOAK_SECONDS").map_or(1, |text| text.parse().expect("a number of seconds"));
        steady_allocator();
        let pool = ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right");
        let (before, tally) = (resident_bytes(), Tally::default());
        let end = Instant::now() + Duration::from_secs(seconds.max(1));
        thread::scope(|scope| {
            for seed in 0..THREADS as u64 {
                let (pool, tally) = (&pool, &tally);
                scope.spawn(move || mixed(pool, tally, seed, end));
            }
        });
        // What the system counted: a walk over the pages counts those twice that are moved meanwhile.
        let most = status_bytes("VmHWM").saturating_sub(before);
        let stats = pool.page_stats();
        // ORDER: Relaxed: all threads have ended.
        let (served, refused) = (tally.served.load(Ordering::Relaxed), tally.refused.load(Ordering::Relaxed));
        println!(
            "t39: {served} served, {refused} refused with half of it free, {most} B resident, {stats:?}"
        );
        assert!(most <= BUDGET + BUDGET / 20, "{most} bytes are resident");
        assert!(refused <= served / 1000, "{refused} refusals beside {served} buffers");
        assert!(pool.acquire(LARGEST).is_ok(), "all is back");
    });
}
