//! Where the pages of a pool come from, and what goes back to the system, as the system says.

use std::time::Duration;

use bufbump::{Builder, BumpPool};
#[cfg(feature = "mmap")]
use bufbump::{ConfigError, HugePages, MapOptions};
use testkit::process::{self, alone, resident_bytes};

const PAGE: usize = 4096;
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn built(builder: Builder) -> BumpPool {
    builder.build().expect("settings are right")
}

/// What is trimmed is the system's, under any allocator, and so is what no request needed.
#[test]
fn trims_reach_the_system() {
    alone(module_path!(), "trims_reach_the_system", LIMIT, || {
        let pool = built(BumpPool::builder().shard_size(256 * KIB).max_idle_bytes(usize::MAX));
        let sizes = [100_000, 200_000, MIB, 3 * MIB];
        let fill = || {
            let mut bufs: Vec<_> = (0..32).map(|n| pool.acquire(sizes[n % 4]).expect("room")).collect();
            for buf in &mut bufs {
                buf.resize(buf.capacity(), 1).expect("asked for");
            }
            bufs
        };
        // What the thread and the pool set up, and the shard that the thread keeps.
        drop(fill());
        pool.trim();
        let base = resident_bytes();
        for trim in [BumpPool::trim, |pool: &BumpPool| (0..2).for_each(|_| pool.trim_idle(Duration::ZERO))] {
            let bufs = fill();
            assert!(resident_bytes() >= base + 8 * 4 * MIB);
            drop(bufs);
            assert!(resident_bytes() >= base + 8 * 4 * MIB, "kept for the next");
            trim(&pool);
            assert!(pool.stats().reserved_bytes <= 260 * KIB, "the shard that is carved");
            let kept = resident_bytes().saturating_sub(base);
            assert!(kept <= MIB, "{kept} bytes are still resident");
        }
    });
}

/// What is over the budget for idle memory is the system's when it is released.
#[test]
fn the_budget_is_what_is_resident() {
    alone(module_path!(), "the_budget_is_what_is_resident", LIMIT, || {
        let pool = built(BumpPool::builder().max_idle_bytes(4 * MIB));
        drop(pool.acquire(1));
        let base = resident_bytes();
        for bytes in [MIB, 200_000] {
            let mut bufs: Vec<_> = (0..64).map(|_| pool.acquire(bytes).expect("room")).collect();
            bufs.iter_mut().for_each(|buf| buf.resize(bytes, 1).expect("asked for"));
            assert!(resident_bytes() >= base + 64 * bytes);
            drop(bufs);
            let kept = resident_bytes().saturating_sub(base);
            // And what the thread has put aside, of shards and of larger buffers.
            assert!((3 * MIB..8 * MIB).contains(&kept), "{kept} bytes are resident");
        }
    });
}

/// The end of the pool gives back what is free, and so does the last buffer that outlives it.
#[test]
fn the_end_gives_back() {
    alone(module_path!(), "the_end_gives_back", LIMIT, || {
        let filled = |pool: &BumpPool, bytes| {
            let mut buf = pool.acquire(bytes).expect("room");
            buf.resize(bytes, 1).expect("asked for");
            buf
        };
        // The thread-locals are there then, and what a thread takes that releases.
        let pool = built(BumpPool::builder());
        let buf = filled(&pool, 1);
        drop(pool);
        std::thread::spawn(move || drop((buf, vec![1_u8; 100]))).join().expect("the thread ends well");
        let (base, space) = (resident_bytes(), process::address_space_bytes());
        let pool = built(BumpPool::builder().shard_size(MIB));
        // Pages of the pool, and shards of the thread and of the pool.
        drop(filled(&pool, 8 * MIB));
        drop([(); 12].map(|()| filled(&pool, MIB)));
        let bufs = [1, MIB, 5 * MIB].map(|bytes| filled(&pool, bytes));
        drop(pool);
        let kept = resident_bytes() - base;
        assert!((6 * MIB..8 * MIB).contains(&kept), "{kept} bytes of buffers of 6 MiB");
        std::thread::spawn(move || drop(bufs)).join().expect("the thread ends well");
        assert!(resident_bytes() <= base + MIB);
        assert!(process::address_space_bytes() <= space + MIB, "addresses go as well");
    });
}

/// No buffer of a shard, or larger, starts where a page does, where some processors copy slowly.
#[test]
fn starts_are_not_those_of_pages() {
    for alignment in [8, 16, 64, 128, 256] {
        let pool = built(BumpPool::builder().alignment(alignment));
        for bytes in [100, 64 * KIB, 512 * KIB, 3 * MIB] {
            let buf = pool.acquire(bytes).expect("room");
            let offset = buf.as_ptr().addr() % PAGE;
            assert!(offset >= 64 && offset.is_multiple_of(alignment), "{bytes}, {alignment}: {offset}");
        }
    }
}

/// A mapping goes as a whole: so no shard is cut from a large one that is free.
#[cfg(feature = "mmap")]
#[test]
fn small_buffers_hold_no_large_mapping() {
    let pool = built(BumpPool::builder().map_options(MapOptions::new().populate(true)));
    drop(pool.acquire(15 * MIB));
    drop(pool.acquire(MIB));
    let small = pool.acquire(100).expect("room");
    pool.trim();
    let stats = pool.stats();
    assert!(stats.reserved_bytes <= 260 * KIB, "{stats:?}");
    // Where nothing else is to be had, it serves all the same.
    drop(small);
}

#[cfg(feature = "mmap")]
#[test]
fn as_the_options_say() {
    alone(module_path!(), "as_the_options_say", LIMIT, || {
        let locked = || process::status_bytes("VmLck");
        let before = locked();
        let options = MapOptions::new().lock(true);
        let pool = built(BumpPool::builder().shard_size(4 * PAGE - 64).map_options(options));
        let small = pool.acquire(1000).expect("room");
        assert_eq!(locked(), before + 4 * PAGE, "a shard");
        let buf = pool.acquire(6 * PAGE - 64).expect("room");
        assert_eq!(locked(), before + 10 * PAGE, "and pages of its own");
        drop(buf);
        pool.trim();
        assert_eq!(locked(), before + 4 * PAGE);
        drop((small, pool));
        assert_eq!(locked(), before, "unlocked with the mapping");

        let populated = BumpPool::builder().shard_size(8 * MIB);
        let pool = built(populated.map_options(MapOptions::new().populate(true)));
        let resident = resident_bytes();
        drop(pool.acquire(1).expect("room"));
        assert!(resident_bytes() >= resident + 8 * MIB, "populated");

        let options = MapOptions::new().huge_pages(HugePages::Advise);
        let pool = built(BumpPool::builder().shard_size(MIB).map_options(options));
        let buf = pool.acquire(1000).expect("room");
        assert_eq!(pool.stats().reserved_bytes, 2 * MIB);
        let large = pool.acquire(3 * MIB).expect("room");
        assert_eq!(pool.stats().reserved_bytes, 6 * MIB);
        drop(large);
        let of_buf = process::smaps(buf.as_ptr().addr());
        // Where the kernel knows of huge pages, it notes the advice.
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            let flags = of_buf.lines().find(|line| line.starts_with("VmFlags:")).expect("it has flags");
            assert!(flags.split_whitespace().any(|flag| flag == "hg"), "{flags}");
        }
    });
}

/// Buffers have all of a shard's pages, at every alignment.
#[test]
fn whole_pages_are_used() {
    for alignment in [8, 16, 64, 512, PAGE, 4 * PAGE] {
        let pool = built(BumpPool::builder().shard_size(100_000).alignment(alignment));
        let bytes = 32.max(alignment) - 16;
        let (mut held, mut one) = (Vec::new(), 0);
        while pool.stats().reserved_bytes == one {
            let buf = pool.acquire_zeroed(bytes).expect("the system has room");
            assert_eq!(buf.as_ptr().addr() % alignment, 0);
            held.push(buf);
            if held.len() == 1 {
                one = pool.stats().reserved_bytes;
            }
        }
        let shard = pool.stats().reserved_bytes / 2;
        assert!(shard.is_multiple_of(PAGE) && shard >= 100_000, "{shard} bytes");
        let used = (held.len() - 1) * (bytes + 16);
        // What is in front of the first buffer, and behind the last one.
        assert!(used + alignment.max(64) >= shard, "{used} of {shard} bytes, aligned to {alignment}");
        for (number, buf) in (0..=u8::MAX).zip(&mut held) {
            buf.fill(number);
        }
        for (number, buf) in (0..=u8::MAX).zip(&held) {
            assert!(buf.iter().all(|byte| *byte == number), "two buffers share bytes");
        }
    }
}

/// A buffer that starts at a page, and is larger than a shard, has no page for its header.
#[test]
fn pages_are_exact() {
    let pool = built(BumpPool::builder().shard_size(PAGE).alignment(PAGE));
    let mut bufs = [(); 3].map(|()| pool.acquire(64 * PAGE).expect("room"));
    assert_eq!(pool.stats().reserved_bytes, 3 * 64 * PAGE);
    for (number, buf) in (0..).zip(&mut bufs) {
        assert_eq!(buf.as_ptr().addr() % PAGE, 0);
        buf.resize(64 * PAGE, number).expect("asked for");
    }
    assert!((0..).zip(&bufs).all(|(number, buf)| buf.iter().all(|byte| *byte == number)));
}

/// The budget for idle memory counts whole mappings, with huge pages too.
#[cfg(feature = "mmap")]
#[test]
fn the_budget_counts_mappings() {
    let options = MapOptions::new().huge_pages(HugePages::Advise);
    let pool = built(BumpPool::builder().shard_size(64 * KIB).map_options(options).max_idle_bytes(8 * MIB));
    for round in 0..3 {
        let bufs: Vec<_> = (0..8).map(|n| pool.acquire(MIB + n * 500 * KIB).expect("room")).collect();
        drop(bufs);
        let idle = pool.stats().idle_bytes;
        assert!((2 * MIB..=8 * MIB).contains(&idle), "{idle} bytes are kept, round {round}");
    }
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// What the system refuses is an error, and nothing counts that is not there.
#[test]
fn refused() {
    alone(module_path!(), "refused", LIMIT, || {
        let pool = built(BumpPool::builder());
        drop((pool.acquire(1), pool.acquire(MIB)));
        pool.trim();
        let reserved = pool.stats().reserved_bytes;
        // The administrator set no such pages aside, or fewer.
        #[cfg(feature = "mmap")]
        {
            let options = MapOptions::new().huge_pages(HugePages::Require);
            let huge = BumpPool::builder().shard_size(1 << 30).map_options(options);
            let refused = huge.max_idle_bytes(usize::MAX).preallocate(1000).build().map(drop);
            assert!(matches!(refused, Err(ConfigError::Region(_))), "{refused:?}");
        }
        process::limit(libc::RLIMIT_AS, (process::address_space_bytes() + 8 * MIB) as u64);
        // Larger than the addresses that the pool has.
        let requested = isize::MAX as usize / 2;
        let refused = Err(bufbump::AcquireError::OutOfMemory { requested });
        assert_eq!(pool.acquire(requested).map(drop), refused);
        assert_eq!(pool.stats().reserved_bytes, reserved, "nothing counts that is not there");
        let shards = built(BumpPool::builder().shard_size(64 * MIB));
        let refused = Err(bufbump::AcquireError::OutOfMemory { requested: 1 });
        assert_eq!(shards.acquire(1).map(drop), refused);
        assert_eq!(shards.stats().reserved_bytes, 0);
        // A request that fits is served again.
        assert!(pool.acquire(2 * MIB).is_ok());
    });
}

/// Where nobody may lock memory, a pool that asks for it says so.
#[cfg(feature = "mmap")]
#[test]
fn locks_that_are_refused() {
    alone(module_path!(), "locks_that_are_refused", LIMIT, || {
        process::give_up_privileges();
        process::limit(libc::RLIMIT_MEMLOCK, 16 * KIB as u64);
        let builder = BumpPool::builder().shard_size(MIB).map_options(MapOptions::new().lock(true));
        let refused = builder.preallocate(1).build().map(drop);
        assert!(matches!(refused, Err(ConfigError::Region(_))), "{refused:?}");
        let pool = built(builder);
        drop(pool.acquire(100));
        let space = process::address_space_bytes();
        for _ in 0..3 {
            let refused = Err(bufbump::AcquireError::OutOfMemory { requested: 100 });
            assert_eq!(pool.acquire(100).map(drop), refused);
        }
        assert_eq!((pool.stats().reserved_bytes, process::address_space_bytes()), (0, space));
    });
}
