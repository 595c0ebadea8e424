//! What the kernel says about rings: descriptors, mappings, limits, advice.

use std::time::Duration;
use std::{fs, thread};

use bufmirror::{Builder, ConfigError, MirrorRing, RegionError, WaitError};
use testkit::process::{self, alone};
use testkit::sandbox::refuse;

use crate::waits::block_on;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(120);

/// What of this process a leak would add to.
fn held() -> [usize; 3] {
    [process::open_files(), process::mappings(), process::address_space_bytes()]
}

#[test]
fn t18_ten_thousand_rings_in_turn() {
    alone(module_path!(), "t18_ten_thousand_rings_in_turn", LIMIT, || {
        let pages = |n: usize| n % 4 * 4096 + 1;
        drop(MirrorRing::new(pages(0)).unwrap());
        let before = held();
        for n in 0..10_000 {
            let mut ring = MirrorRing::new(pages(n)).unwrap();
            ring.put(b"touched").unwrap();
            assert_eq!(ring.peek(), b"touched");
        }
        assert_eq!(held(), before, "descriptors, mappings, address space");
    });
}

/// A ring keeps no descriptor, and has two mappings of one file.
#[test]
fn t18_what_a_ring_holds() {
    alone(module_path!(), "t18_what_a_ring_holds", LIMIT, || {
        let [files, mappings, space] = held();
        let rings: Vec<_> = (0..100).map(|_| crate::mapped(3 * 4096)).collect();
        let bytes: usize = rings.iter().map(|ring| 2 * ring.capacity()).sum();
        assert_eq!(held(), [files, mappings + 200, space + bytes]);
        drop(rings);
        assert_eq!(held(), [files, mappings, space]);
    });
}

/// Has the set-up fail in `call` a thousand times; nothing is left behind.
fn failing(bytes: usize, call: &str) {
    let fail = || match MirrorRing::new(bytes).expect_err("over the limit") {
        ConfigError::Region(RegionError::Refused { call: failed, errno }) => {
            assert!(failed == call && errno != 0, "{failed} {errno}")
        }
        error => panic!("{error}"),
    };
    fail();
    let before = held();
    (0..1000).for_each(|_| fail());
    assert_eq!(held(), before, "descriptors, mappings, address space after failures of {call}");
}

#[test]
fn t18_no_address_space() {
    alone(module_path!(), "t18_no_address_space", LIMIT, || {
        process::limit(libc::RLIMIT_AS, (process::address_space_bytes() + 8 * MIB) as u64);
        failing(6 * MIB, "mmap");
        drop(crate::mapped(MIB));
    });
}

#[test]
fn t18_no_large_files() {
    alone(module_path!(), "t18_no_large_files", LIMIT, || {
        // Over the limit a process gets a signal first, which ends it unless it is ignored.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        process::limit(libc::RLIMIT_FSIZE, MIB as u64);
        failing(2 * MIB, "ftruncate");
        drop(crate::mapped(MIB));
    });
}

/// As many rings as the system lets one process map: the one that fails does so with one half
/// mapped, or none.
#[test]
fn t18_no_more_mappings() {
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").expect("procfs is mounted");
    let limit: usize = limit.trim().parse().expect("a number");
    if limit > 200_000 {
        eprintln!("too many mappings to make them all: {limit}");
        return;
    }
    alone(module_path!(), "t18_no_more_mappings", LIMIT, || {
        let mut rings = Vec::with_capacity(limit);
        let before = held();
        let fill = |rings: &mut Vec<MirrorRing>| {
            while let Ok(ring) = MirrorRing::new(1) {
                rings.push(ring);
            }
            let full = held();
            for _ in 0..100 {
                let error = MirrorRing::new(1).expect_err("no mapping is left");
                assert_eq!(error, RegionError::Refused { call: "mmap", errno: libc::ENOMEM }.into());
            }
            assert_eq!(held(), full, "descriptors, mappings, address space");
        };
        fill(&mut rings);
        assert!(rings.len() > limit / 4, "{} rings", rings.len());
        // One mapping more than a ring has, so that next time it is another call that fails.
        let page = process::page_bytes();
        rings.pop();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let odd = unsafe { libc::mmap(std::ptr::null_mut(), page, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(odd, libc::MAP_FAILED);
        fill(&mut rings);
        // SAFETY: mapped above, and never used.
        assert_eq!(unsafe { libc::munmap(odd, page) }, 0);
        rings.clear();
        assert_eq!(held(), before, "descriptors, mappings, address space");
    });
}

#[test]
fn t18_no_descriptors() {
    alone(module_path!(), "t18_no_descriptors", LIMIT, || {
        let before = held();
        // Every number that is free, so that none is left below the limit; the kernel takes the
        // lowest.
        let mut taken = vec![fs::File::open("/dev/null").unwrap()];
        process::limit(libc::RLIMIT_NOFILE, 64);
        while let Ok(file) = fs::File::open("/dev/null") {
            taken.push(file);
        }
        for _ in 0..1000 {
            let error = MirrorRing::new(1).expect_err("no descriptor is left");
            assert_eq!(error, RegionError::Refused { call: "memfd_create", errno: libc::EMFILE }.into());
        }
        drop(taken);
        assert_eq!(held(), before, "descriptors, mappings, address space");
        drop(crate::mapped(1));
    });
}

/// The lines about the mapping that holds the ring's first byte.
fn smaps(ring: &mut MirrorRing) -> String {
    ring.put(b"x").unwrap();
    let address = ring.peek().as_ptr().addr();
    process::smaps(address)
}

#[test]
fn the_file_is_shared_and_named() {
    let plain = smaps(&mut crate::mapped(1));
    assert!(plain.contains("/memfd:bufmirror") && plain.contains("rw-s"), "{plain}");
}

#[test]
fn t12_pages_come_when_they_should_and_go() {
    alone(module_path!(), "t12_pages_come_when_they_should_and_go", LIMIT, || {
        const BYTES: usize = 32 * MIB;
        let near = |now: usize, expected: usize| now.abs_diff(expected) < 2 * MIB;
        let resident = process::resident_bytes();
        let ring = crate::mapped(BYTES);
        assert!(near(process::resident_bytes(), resident), "untouched pages are resident");
        drop(ring);
        let ring = Builder::new().capacity(BYTES).populate(true).build().unwrap();
        // The kernel counts a page at each of its addresses.
        assert!(near(process::resident_bytes(), resident + 2 * BYTES), "populated pages are not resident");
        drop(ring);
        assert!(near(process::resident_bytes(), resident), "pages stay");
    });
}

/// T25: a sandbox that refuses the system's fence after the channel was made: waits go on, and end.
#[test]
fn t25_no_membarrier_after_the_start() {
    alone(module_path!(), "t25_no_membarrier_after_the_start", LIMIT / 6, || {
        let (mut producer, mut consumer) = bufmirror::channel(4096).expect("room");
        if !refuse(libc::SYS_membarrier, libc::EPERM) {
            eprintln!("no filters here");
            return;
        }
        let timed_out = Err(WaitError::TimedOut { requested: 1, available: 0 });
        let short = Duration::from_millis(20);
        process::within(LIMIT / 12, "a wait with a time-out", || {
            assert_eq!(consumer.wait_timeout(1, short), timed_out);
        });
        // Both sides sleep and are woken, and a task as well.
        let echo = thread::spawn(move || {
            for _ in 0..1000 {
                producer.wait(4096).expect("the consumer lives");
                producer.put(&[1; 4096]).expect("waited for");
            }
        });
        for round in 0..1000 {
            if round % 2 == 0 {
                consumer.wait(4096).expect("the producer lives");
            } else {
                block_on(consumer.wait_async(4096)).expect("the producer lives");
            }
            consumer.consume(4096);
        }
        echo.join().expect("it does not panic");
        // One that was made then never uses it.
        let (mut producer, mut consumer) = bufmirror::channel(4096).expect("room");
        assert_eq!(consumer.wait_timeout(1, short), timed_out);
        producer.put(b"1").expect("room");
        assert_eq!(consumer.wait(1), Ok(()));
    });
}
