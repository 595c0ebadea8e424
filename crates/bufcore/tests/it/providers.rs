//! Regions of memory that a program supplies.

#![allow(clippy::disallowed_methods, reason = "a provider of memory allocates")]

use std::alloc::{Layout, alloc, dealloc};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use bufcore::{MemoryProvider, Provided, Region, RegionError};

/// What came and went, in order. Its memory is full of ones unless it says that it is zeroed.
#[derive(Default)]
struct Ledger {
    out: Mutex<Vec<(usize, Layout)>>,
    is_zeroed: bool,
    refuses: bool,
}

// SAFETY: what the allocator returns is valid until it is freed, for nobody else, and stays where
// it is; with `is_zeroed` it is zeroed.
unsafe impl MemoryProvider for Ledger {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        if self.refuses {
            return Err(RegionError::Refused { call: "ioctl", errno: 12 });
        }
        // SAFETY: a region has at least one byte.
        let start = NonNull::new(unsafe { alloc(layout) })
            .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
        let byte = if self.is_zeroed { 0 } else { 0xFF };
        // SAFETY: just allocated, of this size.
        unsafe { start.write_bytes(byte, layout.size()) };
        self.out.lock().expect("nobody panics").push((start.addr().get(), layout));
        Ok(Provided { start, is_zeroed: self.is_zeroed })
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        let mut out = self.out.lock().expect("nobody panics");
        let at = out.iter().position(|&entry| entry == (start.addr().get(), layout));
        out.swap_remove(at.expect("it is out, with this layout"));
        // SAFETY: from `allocate`, with this layout, and given back once, as was just seen.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

fn count(provider: &Ledger) -> usize {
    provider.out.lock().expect("nobody panics").len()
}

fn bytes_of(region: &Region) -> Vec<u8> {
    let bytes = |at| {
        // SAFETY: within the region.
        let place = unsafe { region.as_ptr().add(at) };
        // SAFETY: initialised, and this test's alone.
        unsafe { place.read() }
    };
    (0..region.len()).map(bytes).collect()
}

#[test]
fn zeroed_aligned_and_given_back() {
    for is_zeroed in [false, true] {
        let provider = Arc::new(Ledger { is_zeroed, ..Ledger::default() });
        let regions: Vec<_> = [(1, 1), (100, 64), (5000, 4096)]
            .map(|(len, alignment)| {
                let region = Region::from_provider(Arc::clone(&provider), len, alignment).expect("room");
                assert_eq!((region.len(), region.as_ptr().addr().get() % alignment), (len, 0));
                assert_eq!(bytes_of(&region), vec![0; len], "zeroed by the provider: {is_zeroed}");
                assert!(!region.is_static() && format!("{region:?}").contains("\"provider\""));
                region
            })
            .into();
        assert_eq!(count(&provider), 3);
        // On any thread; and the provider lives as long as its memory.
        std::thread::spawn(move || drop(regions)).join().expect("it takes its memory back");
        assert_eq!((count(&provider), Arc::strong_count(&provider)), (0, 1));
    }
    let last: &'static Ledger = Box::leak(Box::default());
    drop(Region::from_provider(last, 10, 1));
    drop(Region::from_provider(Box::<Ledger>::default() as Box<dyn MemoryProvider>, 10, 1));
    assert_eq!(count(last), 0);
}

#[test]
fn regions_may_be_anywhere() {
    const fn is<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    const { is::<Region>() };
}

#[test]
fn refused() {
    let provider = Arc::new(Ledger { refuses: true, ..Ledger::default() });
    let region = |len, alignment| Region::from_provider(Arc::clone(&provider), len, alignment).map(drop);
    assert_eq!(region(0, 1), Err(RegionError::Empty));
    assert_eq!(region(8, 3), Err(RegionError::BadAlignment { alignment: 3 }));
    assert_eq!(region(usize::MAX, 1), Err(RegionError::TooLarge { requested: usize::MAX }));
    assert_eq!(region(8, 8), Err(RegionError::Refused { call: "ioctl", errno: 12 }));
    assert_eq!(Arc::strong_count(&provider), 1, "nothing is kept");
}
