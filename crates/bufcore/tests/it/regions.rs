//! T17 and T18 for regions: what the kernel says about them.

#![cfg(all(feature = "mmap", target_os = "linux"))]

use std::fs;
use std::time::Duration;

use bufcore::{HugePages, MapOptions, Region, RegionError};
use testkit::process::{self, alone, smaps};
use testkit::sandbox;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn mapped(bytes: usize, options: MapOptions) -> Region {
    Region::mapped(bytes, options).expect("the system maps")
}

/// Writes to every page.
fn touch(region: &Region) {
    for at in (0..region.len()).step_by(4096) {
        // SAFETY: within the region, which is this test's alone.
        let byte = unsafe { region.as_ptr().add(at) };
        // SAFETY: likewise.
        unsafe { byte.write_volatile(1) }
    }
}

/// Where the system has no room for another mapping, it refuses to unmap the middle of one. The
/// memory goes all the same.
#[test]
fn t18_memory_goes_where_unmapping_is_refused() {
    alone(module_path!(), "t18_memory_goes_where_unmapping_is_refused", LIMIT, || {
        let regions = [mapped(32 * MIB, MapOptions::new()), mapped(MIB, MapOptions::new().lock(true))];
        regions.iter().for_each(touch);
        let counts = || (process::resident_bytes(), process::status_bytes("VmLck"));
        let before = counts();
        if !sandbox::refuse(libc::SYS_munmap, libc::ENOMEM) {
            return eprintln!("no filters here");
        }
        drop(regions);
        let after = counts();
        assert!(after.0 + 32 * MIB < before.0, "{before:?} bytes, then {after:?}");
        assert_eq!(after.1 + MIB, before.1);
    });
}

#[test]
fn t17_locked_memory_is_locked_until_dropped() {
    alone(module_path!(), "t17_locked_memory_is_locked_until_dropped", LIMIT, || {
        let before = process::status_bytes("VmLck");
        let region = mapped(MIB, MapOptions::new().lock(true));
        assert_eq!(process::status_bytes("VmLck"), before + MIB);
        assert!(smaps(region.as_ptr().addr().get()).contains(" lo"), "the mapping is not marked as locked");
        let second = mapped(MIB / 2, MapOptions::new().lock(true).populate(true));
        assert_eq!(process::status_bytes("VmLck"), before + MIB + MIB / 2);
        drop(region);
        assert_eq!(process::status_bytes("VmLck"), before + MIB / 2);
        drop(second);
        assert_eq!(process::status_bytes("VmLck"), before);
    });
}

#[test]
fn t17_pages_come_when_they_should_and_go() {
    alone(module_path!(), "t17_pages_come_when_they_should_and_go", LIMIT, || {
        const BYTES: usize = 64 * MIB;
        process::steady_allocator();
        let (resident, space) = (process::resident_bytes(), process::address_space_bytes());
        let near = |now: usize, expected: usize| now.abs_diff(expected) < 4 * MIB;
        let region = mapped(BYTES, MapOptions::new());
        assert!(near(process::address_space_bytes(), space + BYTES));
        assert!(near(process::resident_bytes(), resident), "untouched pages are resident");
        touch(&region);
        assert!(near(process::resident_bytes(), resident + BYTES), "touched pages are not");
        drop(region);
        assert!(near(process::resident_bytes(), resident) && near(process::address_space_bytes(), space));
        for huge_pages in [HugePages::No, HugePages::Advise] {
            let region = mapped(BYTES, MapOptions::new().populate(true).huge_pages(huge_pages));
            assert!(near(process::resident_bytes(), resident + BYTES), "populated pages are not resident");
            drop(region);
            assert!(near(process::resident_bytes(), resident) && near(process::address_space_bytes(), space));
        }
        // From the heap as well: pages come when they are touched, at any alignment.
        let region = Region::heap(BYTES, 4096).expect("the heap has room");
        assert!(near(process::resident_bytes(), resident), "an untouched heap region is resident");
        touch(&region);
        assert!(near(process::resident_bytes(), resident + BYTES));
        drop(region);
        assert!(near(process::resident_bytes(), resident) && near(process::address_space_bytes(), space));
    });
}

#[test]
fn t17_huge_pages_are_asked_for() {
    let region = mapped(4 * MIB, MapOptions::new().huge_pages(HugePages::Advise));
    assert_eq!(region.len() % (2 * MIB), 0);
    // A kernel without them refuses the advice, which is a hint.
    if fs::exists("/sys/kernel/mm/transparent_hugepage").expect("sysfs is mounted") {
        let smaps = smaps(region.as_ptr().addr().get());
        let flags = smaps.lines().find(|line| line.starts_with("VmFlags")).expect("flags");
        assert!(flags.split(' ').any(|flag| flag == "hg"), "{flags}");
    }
    match Region::mapped(1, MapOptions::new().huge_pages(HugePages::Require)) {
        Ok(region) => assert_eq!(region.len(), 2 * MIB),
        Err(error) => {
            assert!(matches!(error, RegionError::Refused { call: "mmap", errno } if errno != 0), "{error}")
        }
    }
}

#[test]
fn t05_absurd_sizes() {
    assert!(matches!(Region::mapped(0, MapOptions::new()), Err(RegionError::Empty)));
    let page = process::page_bytes();
    for bytes in [1, page - 1, page, page + 1] {
        let region = mapped(bytes, MapOptions::new());
        assert!(
            region.len() >= bytes && region.len() < bytes + page && !region.is_static() && !region.is_empty()
        );
        touch(&region);
    }
    let absurd = [
        #[cfg(target_pointer_width = "64")]
        (1 << 47),
        #[cfg(target_pointer_width = "64")]
        (1 << 61),
        isize::MAX as usize,
        isize::MAX as usize + 1,
        usize::MAX,
    ];
    for bytes in absurd {
        for huge_pages in [HugePages::No, HugePages::Advise] {
            let refused =
                Region::mapped(bytes, MapOptions::new().huge_pages(huge_pages)).expect_err("no room");
            match refused {
                RegionError::TooLarge { requested } => assert_eq!(requested, bytes),
                RegionError::Refused { call: "mmap", errno } => {
                    assert!(errno != 0 && bytes <= isize::MAX as usize)
                }
                _ => panic!("{refused}"),
            }
        }
        assert!(matches!(
            Region::heap(bytes, 1),
            Err(RegionError::TooLarge { .. } | RegionError::OutOfMemory { .. })
        ));
    }
}

/// A thousand of each kind of failure leave no mapping and no descriptor behind.
#[test]
fn t18_failing_constructions() {
    alone(module_path!(), "t18_failing_constructions", LIMIT, || {
        let failing = |bytes: usize, options: MapOptions, call: &str| {
            let fail = || match Region::mapped(bytes, options).expect_err("over the limit") {
                RegionError::Refused { call: failed, errno } => {
                    assert!(failed == call && errno != 0, "{failed} {errno}")
                }
                error => panic!("{error}"),
            };
            fail();
            let before = (process::open_files(), process::mappings(), process::address_space_bytes());
            (0..1000).for_each(|_| fail());
            let after = (process::open_files(), process::mappings(), process::address_space_bytes());
            assert_eq!(after, before, "descriptors, mappings, address space after failures of {call}");
        };
        process::limit(libc::RLIMIT_MEMLOCK, 64 << 10);
        // Whom the limit does not bind.
        process::give_up_privileges();
        failing(MIB, MapOptions::new().lock(true), "mlock");
        failing(MIB, MapOptions::new().lock(true).populate(true), "mlock");
        process::limit(libc::RLIMIT_AS, (process::address_space_bytes() + 8 * MIB) as u64);
        failing(32 * MIB, MapOptions::new(), "mmap");
        failing(32 * MIB, MapOptions::new().populate(true).huge_pages(HugePages::Advise), "mmap");
        drop(mapped(MIB, MapOptions::new()));
    });
}
