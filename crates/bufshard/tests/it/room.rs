//! What a buffer takes beside its bytes: in the pool's own count, and resident.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use bufshard::{Builder, ShardPool};
use testkit::process::{alone, resident_bytes, steady_allocator};
use testkit::trials::live;

const PAGE: usize = 4096;
fn built(builder: Builder) -> ShardPool {
    builder.build().expect("settings are right")
}

/// Bytes that a pool holds for one buffer.
fn reserved(builder: Builder, bytes: usize) -> usize {
    let pool = built(builder);
    let _buf = pool.acquire(bytes).expect("the allocator has room");
    pool.stats().reserved_bytes
}

/// A header of 16 bytes, and what the alignment takes: a slab has as many as that leaves room for.
#[test]
fn headers_are_small() {
    for (bytes, each) in [(64, 80), (80, 96), (256, 320), (1024, 1088), (4096, 4160), (28 << 10, 28_736)] {
        let pool = built(ShardPool::builder());
        let held: Vec<_> = (0..1000).map(|_| pool.acquire(bytes).expect("room")).collect();
        let reserved = pool.stats().reserved_bytes;
        let most = each * 1000 * 17 / 16 + (128 << 10);
        assert!((each * 1000..=most).contains(&reserved), "{reserved} for 1000 of {bytes}");
        drop(held);
    }
    let single = reserved(ShardPool::builder().smallest_pooled(1 << 20), 60_000);
    assert!((15 * PAGE..=16 * PAGE).contains(&single), "{single}");
    assert_eq!(reserved(ShardPool::builder(), 48 << 10), 52 << 10);
}

/// Buffers that start at pages have their headers elsewhere.
#[test]
fn pages_take_pages() {
    let pool = built(ShardPool::builder().alignment(PAGE));
    let mut held: Vec<_> = (0..32).map(|_| pool.acquire(PAGE).expect("room")).collect();
    let reserved = pool.stats().reserved_bytes;
    assert_eq!(reserved, 32 * PAGE);
    for (number, buf) in (0_u8..).zip(&mut held) {
        assert_eq!(buf.as_ptr().addr() % PAGE, 0);
        assert!(buf.spare_mut().iter().all(|byte| *byte == 0), "new memory is zero");
        buf.resize(PAGE, number).expect("asked for");
    }
    for (number, buf) in (0_u8..).zip(&held) {
        assert!(buf.iter().all(|byte| *byte == number), "two buffers share bytes");
    }
    drop(held);
    // The newest is used again at once, by the thread's cache.
    let first = pool.acquire(PAGE).expect("room").as_ptr();
    assert_eq!(pool.acquire(PAGE).expect("room").as_ptr(), first);
    #[cfg(feature = "stats")]
    assert!(crate::totals(&pool).thread_hits >= 2, "{:?}", pool.class_stats());
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Every alignment works for every size, pooled and not, with `compact` and views.
#[test]
fn every_alignment() {
    // There are few addresses on 32 bits.
    let most = if size_of::<usize>() == 8 { 30 } else { 24 };
    for alignment in (0..=most).map(|power| 1_usize << power) {
        for (largest, bytes) in [(64 << 20, 100), (64 << 20, 70_000), (64, 100), (64, 70_000)] {
            let pool = built(ShardPool::builder().alignment(alignment).largest_pooled(largest));
            for round in 0..2 {
                let mut buf = pool.acquire_zeroed(bytes).expect("addresses are plenty");
                assert_eq!(buf.as_ptr().addr() % alignment, 0, "{bytes} bytes aligned to {alignment}");
                assert!(buf.iter().all(|byte| *byte == 0), "round {round}");
                buf.fill(1);
                buf.consume(10);
                buf.compact();
                assert_eq!((buf.len(), buf.capacity()), (bytes - 10, bytes));
                let view = buf.freeze();
                assert!(view.clone().iter().all(|byte| *byte == 1));
            }
            assert_eq!(pool.preallocate(1, 64), Ok(1));
            pool.trim();
            assert_eq!(pool.stats().reserved_bytes, 0, "{bytes} bytes aligned to {alignment}");
        }
    }
}

/// Resident bytes of each of many equal buffers, with `make` having made one before.
fn resident_each<T>(bytes: usize, mut make: impl FnMut() -> T) -> f64 {
    let count = (64 << 20) / bytes;
    // The list is there before.
    let mut held: Vec<Option<T>> = Vec::new();
    held.resize_with(count + 1, || None);
    held[count] = Some(make());
    let before = resident_bytes();
    held[..count].fill_with(|| Some(make()));
    let after = resident_bytes();
    (after - before) as f64 / count as f64
}

/// Small buffers take at most 1.3 times the resident memory of vectors of the same length; with a
/// tracker, which notes where each of them was acquired, 2.4 times.
#[test]
fn resident_beside_vectors() {
    alone(module_path!(), "resident_beside_vectors", Duration::from_secs(60), || {
        steady_allocator();
        let most = if cfg!(feature = "track") { 2.4 } else { 1.3 };
        for bytes in [64, 1024] {
            let of_vectors = resident_each(bytes, || vec![1_u8; bytes]);
            let pool = ShardPool::new().expect("settings are right");
            let of_buffers = resident_each(bytes, || {
                let mut buf = pool.acquire(bytes).expect("room");
                buf.resize(bytes, 1).expect("asked for");
                buf
            });
            println!("{bytes} bytes: {of_buffers:.1} each, {of_vectors:.1} of a vector");
            assert!(of_buffers <= most * of_vectors, "{of_buffers} bytes each, {of_vectors} of a vector");
        }
    });
}

/// The same with all that a pool takes, of which 1024 buffers are out: within 1.3 times the
/// vectors. Counters of each class and thread, and notes of where buffers were acquired, take more.
#[test]
fn resident_with_the_pool() {
    alone(module_path!(), "resident_with_the_pool", Duration::from_secs(60), || {
        steady_allocator();
        let most = match (cfg!(feature = "track"), cfg!(feature = "stats")) {
            (true, _) => 2.4,
            (false, true) => 1.4,
            (false, false) => 1.3,
        };
        for bytes in [64, 1024] {
            let of_vectors = live::resident_each(bytes, || (), |()| vec![1_u8; bytes]);
            let pool = || ShardPool::new().expect("settings are right");
            let of_buffers = live::resident_each(bytes, pool, |pool| {
                let mut buf = pool.acquire(bytes).expect("room");
                buf.resize(bytes, 1).expect("asked for");
                buf
            });
            println!("{bytes} bytes: {of_buffers:.1} each, {of_vectors:.1} of a vector");
            assert!(of_buffers <= most * of_vectors, "{of_buffers} bytes each, {of_vectors} of a vector");
        }
    });
}

/// A thread that had ten thousand buffers out and is idle keeps what the settings allow (T12): the
/// room of its caches, what the shards have, and the one buffer that it keeps apart.
#[test]
fn resident_after_many_buffers() {
    const BYTES: usize = 64 << 10;
    const CACHED: usize = 4 << 20;
    const SHARD_BUFFERS: usize = 32;
    alone(module_path!(), "resident_after_many_buffers", Duration::from_secs(120), || {
        steady_allocator();
        let builder = ShardPool::builder().shards(1).shard_buffers(SHARD_BUFFERS).max_cached_bytes(CACHED);
        keeps_at_most(&built(builder), &[BYTES], CACHED, SHARD_BUFFERS * BYTES);
    });
}

/// The same at default settings. Of a class a cache keeps 4 MiB at most, so there are several.
#[test]
fn resident_after_many_buffers_by_default() {
    const SIZES: [usize; 4] = [32 << 10, 40 << 10, 48 << 10, 56 << 10];
    alone(module_path!(), "resident_after_many_buffers_by_default", Duration::from_secs(120), || {
        steady_allocator();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let (cached, shards) = (processors.max(8) << 20, processors.clamp(4, 64));
        let pool = ShardPool::new().expect("settings are right");
        // A shard has a MiB of a class.
        keeps_at_most(&pool, &SIZES, cached, (shards * SIZES.len()) << 20);
    });
}

/// Has ten thousand buffers of the sizes out, and releases them: then as much is resident as
/// caches, shards and a buffer apart may keep, and more than half of what caches may.
fn keeps_at_most(pool: &ShardPool, sizes: &[usize], cached: usize, shards: usize) {
    let mut bufs = Vec::new();
    // The list and the bookkeeping are there before.
    bufs.resize_with(10_000, || Some(pool.acquire(1).expect("room")));
    bufs.clear();
    let smallest = sizes.iter().min().expect("there is one");
    let least = bufs.capacity() * smallest;
    pool.trim();
    let before = resident_bytes();
    let mut at = sizes.iter().cycle();
    // Until the caches have grown. Memory that is not written to is not resident.
    for _ in 0..8 {
        bufs.extend(at.by_ref().take(2000).map(|bytes| Some(pool.acquire(*bytes).expect("room"))));
        bufs.clear();
    }
    for _ in 0..2 {
        bufs.resize_with(10_000, || {
            let bytes = at.next().copied().unwrap_or(1);
            let mut buf = pool.acquire(bytes).expect("room");
            buf.resize(bytes, 1).expect("asked for");
            Some(buf)
        });
        let peak = resident_bytes();
        assert!(peak > before + least, "{peak}: the trial measures nothing");
        bufs.clear();
        let kept = resident_bytes().saturating_sub(before);
        // And a page for the header and the colour of each, and the pages that stay free where nobody
        // looks after them.
        let bound = (cached + shards) / smallest * (smallest + 4096) + (32 << 20);
        println!("{kept} bytes are resident, {bound} are allowed");
        assert!(kept <= bound + bound / 10, "{kept} bytes are resident, {bound} are allowed");
    }
    assert!(pool.stats().reserved_bytes > cached / 2, "the thread keeps nothing");
}

/// Of a first burst of large buffers a shard keeps little, of what comes again what it has room for.
#[test]
fn what_comes_again_is_kept() {
    // Two cache lines, of which the count and the note for `trim_idle` take two words.
    let slots = 128 / size_of::<usize>() - 2;
    for (bytes, most, first, again) in
        [(64 << 10, 16, slots.min(16), 16), (128 << 10, 16, 8, 16), (128 << 10, 10, 8, 10)]
    {
        let pool = built(ShardPool::builder().thread_cache(0).shards(4).shard_buffers(most));
        drop(pool.acquire(bytes));
        for in_a_shard in [first, again, again] {
            drop([(); 80].map(|()| pool.acquire(bytes).expect("addresses are plenty")));
            let kept = pool.class_stats().iter().map(|class| class.shard_idle).sum::<usize>();
            assert_eq!(kept, 4 * in_a_shard, "of {bytes}");
        }
    }
}

/// A large buffer stays with its thread, one of a class; of all others the pages are free for any
/// size, and serve it.
#[test]
fn pages_serve_any_size() {
    const MIB: usize = 1 << 20;
    let pool = built(ShardPool::builder());
    drop([(); 16].map(|()| pool.acquire(MIB).expect("addresses are plenty")));
    let before = pool.stats().reserved_bytes;
    for bytes in [300_000, 2 * MIB, 8 * MIB] {
        let buf = pool.acquire(bytes).expect("room");
        assert_eq!(pool.stats().reserved_bytes, before, "{bytes} bytes");
        drop(buf);
        pool.trim_to(before);
    }
    let idle = pool.class_stats().iter().map(|class| class.thread_idle + class.shard_idle).sum::<usize>();
    assert!(idle <= 4, "{idle} buffers");
}

/// Starts of large buffers differ, and take no page for that.
#[test]
fn colours() {
    let pool = built(ShardPool::builder().thread_cache(0).shard_buffers(0));
    let held: Vec<_> = (0..64).map(|_| pool.acquire(64 << 10).expect("room")).collect();
    assert_eq!(pool.stats().reserved_bytes, 64 * ((64 << 10) + PAGE));
    let starts: HashSet<_> = held.iter().map(|buf| buf.as_ptr().addr() % PAGE).collect();
    assert_eq!(starts.len(), 64);
    assert!(starts.iter().all(|start| start % 64 == 0));
}

/// Memory that is trimmed is the system's.
#[cfg(target_os = "linux")]
#[test]
fn resident_trims_give_back() {
    alone(module_path!(), "resident_trims_give_back", Duration::from_secs(60), || {
        let pool = ShardPool::new().expect("settings are right");
        let burst = || {
            let bufs = [100, 5000, 64 << 10, 100_000, 1 << 20, 3 << 20].map(|bytes| {
                let fill =
                    |_| pool.acquire_zeroed(bytes).map(|mut buf| buf.fill(1)).map(|()| pool.acquire(bytes));
                (0..(8 << 20) / bytes).map(fill).collect::<Vec<_>>()
            });
            let resident = resident_bytes();
            drop(bufs);
            resident
        };
        burst();
        pool.trim();
        let before = resident_bytes();
        assert!(burst() > before + (16 << 20));
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0);
        let after = resident_bytes();
        assert!(after < before + (1 << 20), "{before} before, {after} after");
    });
}

/// Memory as the options of mappings say.
#[cfg(feature = "mmap")]
mod mapped {
    use bufshard::{ConfigError, HugePages, MapOptions};
    use testkit::process;

    use super::*;

    const MIB: usize = 1 << 20;
    const LIMIT: Duration = Duration::from_secs(60);

    /// Memory comes in huge pages: a budget of less serves nothing.
    #[test]
    fn the_budget_has_room_for_a_mapping() {
        let options = MapOptions::new().huge_pages(HugePages::Advise);
        let builder = ShardPool::builder().map_options(options);
        assert_eq!(
            builder.max_bytes(200_000).build().map(drop),
            Err(ConfigError::TooSmall { setting: "max_bytes", requested: 200_000, least: 2 * MIB })
        );
        let pool = built(builder.max_bytes(5 * MIB));
        let limit = pool.max_capacity();
        assert!(limit <= 4 * MIB && pool.acquire(limit).is_ok(), "{limit}");
        assert!(pool.acquire(limit + 1).is_err());
        // Aligning takes some of what a provider or a mapping gives.
        let pool = built(ShardPool::builder().map_options(options).alignment(MIB).max_bytes(4 * MIB));
        assert!(pool.acquire(pool.max_capacity()).is_ok());
    }

    #[test]
    fn as_the_options_say() {
        alone(module_path!(), "as_the_options_say", LIMIT, || {
            let locked = || process::status_bytes("VmLck");
            let before = locked();
            let options = MapOptions::new().lock(true);
            let pool = built(ShardPool::builder().map_options(options));
            let small = pool.acquire(1000).expect("room");
            let slab = locked() - before;
            assert!(slab > 0, "small ones too");
            let buf = pool.acquire(128 << 10).expect("room");
            assert_eq!(locked(), before + slab + (128 << 10) + 4096, "with the header");
            drop((small, buf));
            pool.trim();
            assert_eq!(locked(), before);
            let options = MapOptions::new().huge_pages(HugePages::Advise);
            let builder = ShardPool::builder().map_options(options);
            assert_eq!(reserved(builder, 3 * MIB), 4 * MIB);
            assert_eq!(reserved(builder.alignment(PAGE), 2 * MIB), 2 * MIB);
        });
    }
}
