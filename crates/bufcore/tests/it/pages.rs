//! Pages of a region that go back to the system, and what keeps them.

#![cfg(all(feature = "mmap", target_os = "linux"))]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use bufcore::{HugePages, MapOptions, MemoryProvider, Provided, Region, RegionError};
use testkit::process::{alone, page_bytes, resident_bytes, steady_allocator};

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

/// What the memory of a provider is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Private,
    Shared,
    /// Of a file, with a copy of each page that is written to.
    File,
    Locked,
}

/// Maps memory, and says that its pages may go, whatever it is.
struct Claims(Kind);

// SAFETY: a mapping is valid until it is unmapped, for nobody else, and stays where it is.
unsafe impl MemoryProvider for Claims {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        let mut file = -1;
        if self.0 == Kind::File {
            // SAFETY: a name that ends with a zero.
            file = unsafe { libc::memfd_create(c"pages".as_ptr(), 0) };
            // SAFETY: a file of this test's own.
            assert_eq!(unsafe { libc::ftruncate(file, layout.size() as libc::off_t) }, 0);
        }
        let flags = match self.0 {
            Kind::Private | Kind::Locked => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            Kind::Shared => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            Kind::File => libc::MAP_PRIVATE,
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: no address is asked for.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), layout.size(), protection, flags, file, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        if self.0 == Kind::Locked {
            // SAFETY: just mapped.
            assert_eq!(unsafe { libc::mlock(start, layout.size()) }, 0);
        }
        Ok(Provided { start: NonNull::new(start.cast()).expect("it is mapped"), is_zeroed: true })
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: from `allocate`, and given back once.
        assert_eq!(unsafe { libc::munmap(start.as_ptr().cast(), layout.size()) }, 0);
    }

    fn returns_pages(&self) -> bool {
        true
    }
}

/// Says nothing of its pages.
struct Silent;

// SAFETY: as the other provider.
unsafe impl MemoryProvider for Silent {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        Claims(Kind::Private).allocate(layout)
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { Claims(Kind::Private).deallocate(start, layout) }
    }
}

fn provided(provider: impl MemoryProvider, bytes: usize) -> Region {
    Region::from_provider(provider, bytes, 4096).expect("the system maps")
}

/// Byte `at` of a region.
fn byte(region: &Region, at: usize) -> *mut u8 {
    assert!(at < region.len());
    // SAFETY: within the region.
    unsafe { region.as_ptr().add(at) }.as_ptr()
}

/// Writes numbers that are not zero to all of it.
fn fill(region: &Region) {
    for at in 0..region.len() {
        // SAFETY: within the region, which is this test's alone.
        unsafe { byte(region, at).write((at % 251) as u8 + 1) }
    }
}

/// Whether the bytes are as `fill` left them.
fn is_filled(region: &Region, mut bytes: std::ops::Range<usize>) -> bool {
    // SAFETY: within the region, which is this test's alone.
    bytes.all(|at| unsafe { byte(region, at).read() } == (at % 251) as u8 + 1)
}

/// Gives back what there are whole pages of in these bytes.
fn give_back(region: &Region, bytes: std::ops::Range<usize>) -> usize {
    let start = region.as_ptr().addr().get();
    // SAFETY: the region is this test's alone.
    unsafe { region.return_pages(start + bytes.start..start + bytes.end) }
}

#[test]
fn what_may_go() {
    let mapped = |options| Region::mapped(4 * MIB, options).expect("the system maps");
    let options = MapOptions::new();
    assert!(Region::heap(MIB, 64).expect("room").returns_pages());
    assert!(Region::heap_aligned(MIB, 64).expect("room").returns_pages());
    assert!(mapped(options).returns_pages());
    assert!(mapped(options.huge_pages(HugePages::Advise)).returns_pages());
    assert!(!mapped(options.populate(true)).returns_pages());
    assert!(!mapped(options.huge_pages(HugePages::Advise).populate(true)).returns_pages());
    assert!(!Region::mapped(4096, options.lock(true)).expect("the limit is higher").returns_pages());
    if let Ok(huge) = Region::mapped(MIB, options.huge_pages(HugePages::Require)) {
        assert!(!huge.returns_pages());
    }
    assert!(!Region::from_static(Box::leak(vec![0; MIB].into())).returns_pages());
    assert!(!provided(Silent, MIB).returns_pages() && !provided(Arc::new(Silent), MIB).returns_pages());
    let last: &'static Claims = Box::leak(Box::new(Claims(Kind::Private)));
    assert!(provided(last, MIB).returns_pages());
    assert!(provided(Arc::new(Claims(Kind::Private)), MIB).returns_pages());
    assert!(provided(Box::new(Claims(Kind::Private)) as Box<dyn MemoryProvider>, MIB).returns_pages());
}

/// Whole pages, within the region, and all of them.
#[test]
fn whole_pages_are_within() {
    let page = page_bytes();
    let region = Region::heap(16 * page, 64).expect("room");
    let start = region.as_ptr().addr().get();
    for (from, to) in [(0, 16 * page), (1, 5 * page), (page - 1, page + 1), (3, 3), (page, 16 * page - 1)] {
        let pages = region.whole_pages(start + from..start + to);
        let is_whole = pages.start.is_multiple_of(page) && pages.end.is_multiple_of(page);
        let is_within = start + from <= pages.start && pages.end <= start + to;
        assert!(pages.is_empty() || (is_whole && is_within), "{pages:?} of {from} to {to}");
        assert!(pages.len() + 2 * page > to - from, "{pages:?} of {from} to {to}");
    }
    for nonsense in [0..usize::MAX, usize::MAX - 1..usize::MAX, 0..start, start + 16 * page..usize::MAX] {
        let pages = region.whole_pages(nonsense);
        assert!(pages.is_empty() || (start <= pages.start && pages.end <= start + region.len()));
    }
    #[allow(clippy::reversed_empty_ranges, reason = "nonsense")]
    let reversed = region.whole_pages(usize::MAX..0);
    assert!(reversed.is_empty());
    let huge = Region::mapped(8 * MIB, MapOptions::new().huge_pages(HugePages::Advise)).expect("room");
    let start = huge.as_ptr().addr().get();
    let pages = huge.whole_pages(start..start + 8 * MIB);
    assert!(pages.start.is_multiple_of(2 * MIB) && pages.len() >= 6 * MIB, "{pages:?}");
}

/// What goes is not resident, and zero when it is looked at; what is beside it is as it was.
#[test]
fn resident_pages_go_alone() {
    alone(module_path!(), "resident_pages_go_alone", LIMIT, || {
        steady_allocator();
        let regions = [
            Region::heap(16 * MIB, 64).expect("room"),
            Region::mapped(16 * MIB, MapOptions::new()).expect("the system maps"),
            provided(Claims(Kind::Private), 16 * MIB),
        ];
        for region in &regions {
            fill(region);
            let before = resident_bytes();
            let gone = 1000..9 * MIB + 1000;
            let bytes = give_back(region, gone.clone());
            assert!(bytes > 9 * MIB - 2 * page_bytes(), "{bytes} bytes of {region:?}");
            assert!(resident_bytes() + 8 * MIB < before, "{region:?}");
            assert!(is_filled(region, 0..gone.start) && is_filled(region, gone.end..16 * MIB), "{region:?}");
            // SAFETY: within the region, which is this test's alone.
            let zeros = gone.filter(|&at| unsafe { byte(region, at).read() } == 0).count();
            assert_eq!(zeros, bytes, "{region:?}");
        }
    });
}

/// The kernel says what kind of memory it is, if the provider does not: nothing goes, and nothing is
/// lost.
#[test]
fn resident_memory_of_other_kinds() {
    alone(module_path!(), "resident_memory_of_other_kinds", LIMIT, || {
        for kind in [Kind::Shared, Kind::File, Kind::Locked] {
            let region = provided(Claims(kind), 64 * page_bytes());
            fill(&region);
            assert_eq!(give_back(&region, 0..region.len()), 0, "{kind:?}");
            assert!(is_filled(&region, 0..region.len()), "{kind:?}");
        }
        let silent = provided(Silent, 64 * page_bytes());
        fill(&silent);
        assert_eq!(give_back(&silent, 0..silent.len()), 0);
        assert!(is_filled(&silent, 0..silent.len()));
    });
}
