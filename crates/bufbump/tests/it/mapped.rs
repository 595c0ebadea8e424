//! Shards and larger pieces with mappings of their own. Under any allocator, what is freed is
//! unmapped, pages are as the options say, and all of a mapping is for buffers.

use std::time::Duration;

use bufbump::{AcquireError, Builder, BumpPool, ConfigError, HugePages, MapOptions, RegionError};
use testkit::process::{self, address_space_bytes, alone, mappings, resident_bytes};

const PAGE: usize = 4096;
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn built(builder: Builder) -> BumpPool {
    builder.build().expect("settings are right")
}

/// Bytes that a pool holds for one buffer.
fn reserved(builder: Builder, bytes: usize) -> usize {
    let pool = built(builder);
    let _buf = pool.acquire(bytes).expect("the system has room");
    pool.stats().reserved_bytes
}

#[test]
fn trims_unmap() {
    alone(module_path!(), "trims_unmap", LIMIT, || {
        let pool = built(BumpPool::builder().shard_size(256 * KIB).mapped_from(1));
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
        let (space, count, resident) = (address_space_bytes(), mappings(), resident_bytes());
        let bufs = fill();
        assert!(address_space_bytes() >= space + 8 * 4 * MIB);
        assert!(resident_bytes() >= resident + 8 * 4 * MIB);
        drop(bufs);
        pool.trim();
        assert!(pool.stats().reserved_bytes <= 260 * KIB, "the shard that is carved");
        let kept = resident_bytes().saturating_sub(resident);
        assert!(kept <= MIB, "{kept} bytes are still resident");
        // The shard that the thread carves may be another one.
        assert!(address_space_bytes() <= space && mappings() <= count + 1, "what is free is unmapped");
        drop(pool);
        assert!(address_space_bytes() <= space - 256 * KIB);
    });
}

/// The end of the pool unmaps, and so does the last buffer that outlives it.
#[test]
fn the_end_unmaps() {
    alone(module_path!(), "the_end_unmaps", LIMIT, || {
        let pool = built(BumpPool::builder().mapped_from(1));
        // The thread-locals are there then, and what a thread takes that releases.
        let buf = pool.acquire(1).expect("room");
        drop(pool);
        std::thread::spawn(move || drop((buf, vec![1_u8; 100]))).join().expect("the thread ends well");
        let space = address_space_bytes();
        let pool = built(BumpPool::builder().shard_size(MIB).mapped_from(1));
        let bufs = [1, MIB, 5 * MIB].map(|bytes| pool.acquire(bytes).expect("room"));
        drop(pool);
        // The first two are side by side: there is room in the last page.
        assert!(address_space_bytes() >= space + 6 * MIB);
        std::thread::spawn(move || drop(bufs)).join().expect("the thread ends well");
        let left = address_space_bytes().saturating_sub(space);
        assert!(left < MIB, "{left} bytes of a pool that ended");
    });
}

/// No buffer of large memory starts where a page does, where some processors copy slowly: the first
/// of a shard, and a piece.
#[test]
fn starts_are_not_those_of_pages() {
    for builder in [BumpPool::builder(), BumpPool::builder().mapped_from(1)] {
        for alignment in [8, 16, 64, 128, 256] {
            let pool = built(builder.alignment(alignment));
            for bytes in [100, 64 * KIB, 512 * KIB, 3 * MIB] {
                let buf = pool.acquire(bytes).expect("room");
                let offset = buf.as_ptr().addr() % PAGE;
                assert!(offset >= 64 && offset.is_multiple_of(alignment), "{bytes}, {alignment}: {offset}");
            }
        }
    }
}

/// Shards and pieces from 128 KiB on have mappings, and none where a program says so.
#[test]
fn unless_set() {
    alone(module_path!(), "unless_set", LIMIT, || {
        const BYTES: usize = 512 * KIB;
        // The allocator maps nothing meanwhile.
        process::keeping_allocator();
        let burst = |builder: Builder, bytes| {
            let pool = built(builder);
            let bufs = [(); 8].map(|()| pool.acquire(bytes).expect("room"));
            let space = address_space_bytes();
            drop(bufs);
            pool.trim();
            space - address_space_bytes()
        };
        assert_eq!(burst(BumpPool::builder(), BYTES), 8 * (BYTES + PAGE), "unmapped");
        // What the allocator gives back is another number.
        assert_ne!(burst(BumpPool::builder(), 100 * KIB), 8 * 104 * KIB);
        assert_ne!(burst(BumpPool::builder().mapped_from(usize::MAX), BYTES), 8 * (BYTES + PAGE));
    });
}

#[test]
fn as_the_options_say() {
    alone(module_path!(), "as_the_options_say", LIMIT, || {
        let locked = || process::status_bytes("VmLck");
        let before = locked();
        let options = MapOptions::new().lock(true);
        let pool = built(BumpPool::builder().shard_size(10_000).mapped_from(20_000).map_options(options));
        let small = pool.acquire(1000).expect("room");
        assert_eq!(locked(), before, "shards are the allocator's");
        let buf = pool.acquire(19_000).expect("room");
        assert_eq!(locked(), before + 6 * PAGE, "a piece of 20 KiB, and a header");
        drop((small, buf));
        pool.trim();
        assert_eq!(locked(), before);
        drop(pool);
        let pool = built(BumpPool::builder().shard_size(4 * PAGE - 64).mapped_from(1).map_options(options));
        drop(pool.acquire(1).expect("room"));
        assert_eq!(locked(), before + 4 * PAGE);
        drop(pool);
        assert_eq!(locked(), before, "unlocked with the mapping");
        // Options alone are for the mappings that there are in any case.
        let pool = built(BumpPool::builder().shard_size(10_000).map_options(options));
        let bufs = [100 << 10, 128 << 10].map(|bytes| pool.acquire(bytes).expect("room"));
        assert_eq!(locked(), before + (128 << 10) + PAGE);
        drop((bufs, pool));
        assert_eq!(locked(), before);

        let populated = BumpPool::builder().shard_size(8 * MIB).mapped_from(1);
        let pool = built(populated.map_options(MapOptions::new().populate(true)));
        let resident = resident_bytes();
        drop(pool.acquire(1).expect("room"));
        assert!(resident_bytes() >= resident + 8 * MIB, "populated");

        let options = MapOptions::new().huge_pages(HugePages::Advise);
        let builder = BumpPool::builder().shard_size(MIB).mapped_from(1).map_options(options);
        assert_eq!(reserved(builder, 1), 2 * MIB);
        assert_eq!(reserved(builder, 3 * MIB), 4 * MIB);
        let pool = built(builder);
        let buf = pool.acquire(1000).expect("room");
        let of_buf = process::smaps(buf.as_ptr().addr());
        // Where the kernel knows of huge pages, it notes the advice.
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            let flags = of_buf.lines().find(|line| line.starts_with("VmFlags:")).expect("it has flags");
            assert!(flags.split_whitespace().any(|flag| flag == "hg"), "{flags}");
        }
    });
}

/// Buffers have all of a shard's mapping, at every alignment.
#[test]
fn whole_mappings_are_used() {
    for alignment in [8, 16, 64, 512, PAGE] {
        let pool = built(BumpPool::builder().shard_size(100_000).alignment(alignment).mapped_from(1));
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
    // Pages do not start at more: the memory is the allocator's, to the byte.
    let pool = built(BumpPool::builder().shard_size(100_000).alignment(4 * PAGE).mapped_from(1));
    assert_eq!(pool.acquire(1).expect("room").as_ptr().addr() % (4 * PAGE), 0);
    assert_eq!(pool.stats().reserved_bytes, 7 * 4 * PAGE - 16);
}

/// The budget for idle memory counts mappings, with huge pages too.
#[test]
fn the_budget_counts_mappings() {
    let options = MapOptions::new().huge_pages(HugePages::Advise);
    let builder = BumpPool::builder().shard_size(64 * KIB).mapped_from(1).map_options(options);
    let pool = built(builder.max_idle_bytes(8 * MIB).preallocate(100));
    assert_eq!(pool.stats().reserved_bytes, 8 * MIB, "four huge pages");
    pool.trim();
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
        let pool = built(BumpPool::builder().mapped_from(1));
        drop((pool.acquire(1), pool.acquire(MIB)));
        pool.trim();
        let reserved = pool.stats().reserved_bytes;
        // The administrator set no such pages aside, or fewer.
        let options = MapOptions::new().huge_pages(HugePages::Require);
        let huge = BumpPool::builder().shard_size(1 << 30).mapped_from(1).map_options(options);
        match huge.max_idle_bytes(usize::MAX).preallocate(1000).build() {
            Err(ConfigError::Region(RegionError::Refused { call: "mmap", errno })) => assert_ne!(errno, 0),
            other => panic!("{other:?}"),
        }
        process::limit(libc::RLIMIT_AS, (address_space_bytes() + 8 * MIB) as u64);
        let requested = 64 * MIB;
        assert_eq!(pool.acquire(requested).map(drop), Err(AcquireError::OutOfMemory { requested }));
        assert_eq!(pool.stats().reserved_bytes, reserved, "nothing counts that is not there");
        let shards = built(BumpPool::builder().shard_size(64 * MIB).mapped_from(1));
        assert_eq!(shards.acquire(1).map(drop), Err(AcquireError::OutOfMemory { requested: 1 }));
        assert_eq!(shards.stats().reserved_bytes, 0);
        // A request that fits is served again.
        assert!(pool.acquire(2 * MIB).is_ok());
    });
}

/// Where nobody may lock memory, a pool that asks for it says so.
#[test]
fn locks_that_are_refused() {
    alone(module_path!(), "locks_that_are_refused", LIMIT, || {
        process::give_up_privileges();
        process::limit(libc::RLIMIT_MEMLOCK, 16 * KIB as u64);
        let options = MapOptions::new().lock(true);
        let builder = BumpPool::builder().shard_size(MIB).mapped_from(1).map_options(options);
        let refused = builder.preallocate(1).build().map(drop);
        assert!(
            matches!(refused, Err(ConfigError::Region(RegionError::Refused { call: "mlock", .. }))),
            "{refused:?}"
        );
        let pool = built(builder);
        drop(pool.acquire(100));
        let space = address_space_bytes();
        for _ in 0..3 {
            assert_eq!(pool.acquire(100).map(drop), Err(AcquireError::OutOfMemory { requested: 100 }));
        }
        assert_eq!((pool.stats().reserved_bytes, address_space_bytes()), (0, space), "nothing stays mapped");
    });
}
