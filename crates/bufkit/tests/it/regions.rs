//! Pages that a block has to itself.

use std::time::Duration;

use bufcore::Region;
use bufkit::{DedicatedPages, PoolProvider};
use testkit::process::{self, alone};
use testkit::sandbox;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

/// Writes to every page.
fn touch(region: &Region) {
    for at in (0..region.len()).step_by(4096) {
        // SAFETY: within the region, which is this test's alone.
        let byte = unsafe { region.as_ptr().add(at) };
        // SAFETY: likewise.
        unsafe { byte.write_volatile(1) }
    }
}

/// Where the system refuses mappings, large memory is the allocator's.
#[test]
fn t17_large_memory_without_mappings() {
    alone(module_path!(), "t17_large_memory_without_mappings", LIMIT, || {
        let take = || DedicatedPages::large().take(MIB, &PoolProvider::none()).expect("the heap has room");
        let region = take();
        assert!(format!("{region:?}").contains("mapped"), "{region:?}");
        process::keeping_allocator();
        if !sandbox::refuse(libc::SYS_mmap, libc::ENOMEM) {
            return eprintln!("no filters here");
        }
        let region = take();
        assert!(format!("{region:?}").contains("heap"), "{region:?}");
        assert_eq!((region.len(), region.as_ptr().addr().get() % 4096), (MIB, 0));
        touch(&region);
        let before = process::resident_bytes_as_it_is();
        region.free_to_system();
        let after = process::resident_bytes_as_it_is();
        assert!(after + MIB <= before + 64 * 1024, "{before} bytes, then {after}");
    });
}
