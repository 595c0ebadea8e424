//! What a buffer takes beside its bytes: in the pool's own count, and resident.

use std::thread;
use std::time::Duration;

use bufshard::{Builder, ShardPool};
use testkit::process::{alone, resident_bytes, steady_allocator};
use testkit::trials::live;

const PAGE: usize = 4096;
/// What every allocation starts at a multiple of.
const ALLOCATOR: usize = if size_of::<usize>() == 8 { 16 } else { 8 };

fn built(builder: Builder) -> ShardPool {
    builder.build().expect("settings are right")
}

/// Bytes that a pool holds for one buffer.
fn reserved(builder: Builder, bytes: usize) -> usize {
    let pool = built(builder);
    let _buf = pool.acquire(bytes).expect("the allocator has room");
    pool.stats().reserved_bytes
}

/// A header of 16 bytes, or 32 outside of the classes, and what the alignment takes beyond that of
/// all memory. Blocks from 4 KiB on take whole lines, with the allocator's word.
#[test]
fn headers_are_small() {
    let builder = ShardPool::builder();
    for bytes in [64, 128, 224] {
        assert_eq!(reserved(builder, bytes), 16 + bytes + 16 - ALLOCATOR);
    }
    for bytes in [256, 1024, 4096, 48 << 10] {
        let around = if bytes < 4096 { 16 + 64 - ALLOCATOR } else { 128 - size_of::<usize>() };
        assert_eq!(reserved(builder, bytes), bytes + around);
        assert_eq!(reserved(builder.alignment(512), bytes), 16 + bytes + 512 - ALLOCATOR);
    }
    let single = builder.smallest_pooled(1 << 20);
    assert_eq!(reserved(single, 100), 32 + 100 + 16 - ALLOCATOR);
    assert_eq!(reserved(single, 1000), 32 + 1000 + 64 - ALLOCATOR);
}

/// Buffers that start at pages have their headers elsewhere.
#[test]
fn pages_take_pages() {
    let pool = built(ShardPool::builder().alignment(PAGE));
    let mut held: Vec<_> = (0..32).map(|_| pool.acquire(PAGE).expect("room")).collect();
    let reserved = pool.stats().reserved_bytes;
    assert!((32 * PAGE..=32 * (PAGE + 64)).contains(&reserved), "{reserved} bytes for 32 pages");
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
    let least = bufs.capacity() * sizes.iter().min().expect("there is one");
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
        let bound = cached + shards + sizes.iter().max().expect("there is one");
        println!("{kept} bytes are resident, {bound} are allowed");
        assert!(kept <= bound + bound / 10, "{kept} bytes are resident, {bound} are allowed");
    }
    assert!(pool.stats().reserved_bytes > cached / 2, "the thread keeps nothing");
}

/// Of a first burst of large buffers a shard keeps little, of what comes again what it has room for.
#[test]
fn what_comes_again_is_kept() {
    const MIB: usize = 1 << 20;
    // Two cache lines, of which the count and the note for `trim_idle` take two words.
    let slots = 128 / size_of::<usize>() - 2;
    for (bytes, first, again) in [
        (64 << 10, slots.min(16), 16),
        (128 << 10, 8, 16),
        (MIB, 1, 16),
        (2 * MIB, 1, 8),
        (8 * MIB, 1, 2),
        (16 * MIB, 1, 1),
    ] {
        let pool = built(ShardPool::builder().thread_cache(0).shards(4));
        drop(pool.acquire(bytes));
        let block = pool.stats().reserved_bytes;
        for in_a_shard in [first, again, again] {
            drop([(); 80].map(|()| pool.acquire(bytes).expect("addresses are plenty")));
            let (kept, expected) = (pool.stats().reserved_bytes / block, 4 * in_a_shard);
            // Some are a few lines longer than the first.
            assert!((expected..=expected + 1).contains(&kept), "{kept} of {bytes}, {expected} expected");
        }
    }
}

/// Under any allocator: what is trimmed is unmapped at once, and a page takes a page.
#[cfg(feature = "mmap")]
mod mapped {
    use std::collections::HashSet;

    use bufshard::bufcore::{AcquireError, HugePages, MapOptions};
    use testkit::process::{self, address_space_bytes, mappings};

    use super::*;

    const MIB: usize = 1 << 20;
    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn pages_take_pages() {
        alone(module_path!(), "pages_take_pages", LIMIT, || {
            let pool = built(ShardPool::builder().alignment(PAGE).mapped_from(PAGE));
            let each = resident_each(PAGE, || {
                let mut buf = pool.acquire(PAGE).expect("room");
                assert_eq!(buf.as_ptr().addr() % PAGE, 0);
                buf.resize(PAGE, 1).expect("asked for");
                buf
            });
            assert!(each < 1.05 * PAGE as f64, "{each} bytes for a page");
        });
    }

    #[test]
    fn trims_unmap() {
        alone(module_path!(), "trims_unmap", LIMIT, || {
            let pool = built(ShardPool::builder().mapped_from(64 << 10).largest_pooled(MIB));
            // What the thread and the pool set up; the last is not pooled.
            let sizes = [64 << 10, 100_000, MIB, 3 * MIB];
            let burst = || {
                let bufs: Vec<_> = (0..32).map(|n| pool.acquire(sizes[n % 4]).expect("room")).collect();
                let space = address_space_bytes();
                drop(bufs);
                space
            };
            burst();
            pool.trim();
            let (before, count) = (address_space_bytes(), mappings());
            assert!(burst() >= before + 8 * (4 * MIB + 160_000));
            pool.trim();
            assert_eq!(pool.stats().reserved_bytes, 0);
            assert_eq!((address_space_bytes(), mappings()), (before, count), "what is free is unmapped");
        });
    }

    #[test]
    fn as_the_options_say() {
        alone(module_path!(), "as_the_options_say", LIMIT, || {
            let locked = || process::status_bytes("VmLck");
            let before = locked();
            let options = MapOptions::new().lock(true);
            let pool = built(ShardPool::builder().mapped_from(1).map_options(options));
            let small = pool.acquire(1000).expect("room");
            assert_eq!(locked(), before, "less than a page is the allocator's");
            let buf = pool.acquire(5000).expect("room");
            assert_eq!(locked(), before + 8192, "5120 bytes and a header");
            drop((small, buf));
            pool.trim();
            assert_eq!(locked(), before);
            // Options alone are for the mappings that there are in any case.
            let pool = built(ShardPool::builder().map_options(options));
            let bufs = [112 << 10, 128 << 10].map(|bytes| pool.acquire(bytes).expect("room"));
            assert_eq!(locked(), before + (128 << 10) + 4096);
            drop((bufs, pool));
            assert_eq!(locked(), before);
            let options = MapOptions::new().huge_pages(HugePages::Advise);
            let builder = ShardPool::builder().mapped_from(MIB).map_options(options);
            assert_eq!(reserved(builder, 3 * MIB), 4 * MIB);
            assert_eq!(reserved(builder.alignment(PAGE), 2 * MIB), 2 * MIB + 64);
        });
    }

    /// Buffers from 128 KiB on have mappings, and none where a program says so.
    #[test]
    fn unless_set() {
        alone(module_path!(), "unless_set", LIMIT, || {
            const BYTES: usize = 512 << 10;
            // The allocator maps nothing meanwhile.
            process::keeping_allocator();
            let burst = |pool: &ShardPool, bytes| {
                let bufs = [(); 8].map(|()| pool.acquire(bytes).expect("room"));
                let space = address_space_bytes();
                drop(bufs);
                pool.trim();
                space - address_space_bytes()
            };
            let pool = built(ShardPool::builder());
            assert_eq!(burst(&pool, BYTES), 8 * (BYTES + PAGE), "unmapped");
            // What the allocator gives back is another number.
            assert_ne!(burst(&pool, 112 << 10), 8 * ((112 << 10) + PAGE));
            let pool = built(ShardPool::builder().mapped_from(usize::MAX));
            assert_ne!(burst(&pool, BYTES), 8 * (BYTES + PAGE));
        });
    }

    /// A page in front has the header, whatever the colour, and starts differ.
    #[test]
    fn colours() {
        let pool = built(ShardPool::builder().mapped_from(64 << 10).thread_cache(0).shard_buffers(0));
        let held: Vec<_> = (0..64).map(|_| pool.acquire(64 << 10).expect("room")).collect();
        assert_eq!(pool.stats().reserved_bytes, 64 * ((64 << 10) + PAGE));
        let starts: HashSet<_> = held.iter().map(|buf| buf.as_ptr().addr() % PAGE).collect();
        assert_eq!(starts.len(), 64);
        assert!(starts.iter().all(|start| start % 64 == 0));
    }

    #[test]
    fn refused() {
        alone(module_path!(), "refused", LIMIT, || {
            let pool = built(ShardPool::builder().mapped_from(PAGE));
            drop(pool.acquire(MIB));
            process::limit(libc::RLIMIT_AS, (address_space_bytes() + 8 * MIB) as u64);
            let requested = 64 * MIB;
            assert_eq!(pool.acquire(requested).map(drop), Err(AcquireError::OutOfMemory { requested }));
            pool.trim();
            assert_eq!(pool.stats().reserved_bytes, 0, "nothing counts that is not there");
        });
    }
}
