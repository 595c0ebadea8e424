//! Each system call of the set-up fails once, and others take the addresses. Nothing is left
//! behind.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;
use std::os::windows::io::AsRawHandle;

use bufcore::size;
use testkit::process::alone;
use windows_sys::Win32::System::Memory::{
    MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, VirtualAlloc, VirtualFree,
};

use super::*;

/// No system has this error.
const INJECTED: i32 = 9999;
const BYTES: usize = 100_000;
const LIMIT: Duration = Duration::from_secs(60);

/// What was asked of the system, and what it still has of it.
#[derive(Debug, Default)]
struct Record {
    calls: Vec<&'static str>,
    reservations: Vec<usize>,
    views: Vec<usize>,
    /// What another thread took.
    taken: Vec<usize>,
}

/// The system, but that one call fails without being made, or that others take addresses.
#[derive(Debug, Clone, Copy)]
struct Changed<'a> {
    /// Which call fails, counted from 0.
    fails: usize,
    /// How many reservations others take as soon as they are given back.
    takes: usize,
    record: &'a RefCell<Record>,
}

impl Changed<'_> {
    fn make<T>(
        &self,
        call: &'static str,
        make: impl FnOnce() -> Result<T, RegionError>,
    ) -> Result<T, RegionError> {
        self.record.borrow_mut().calls.push(call);
        if self.record.borrow().calls.len() - 1 == self.fails {
            return Err(RegionError::Refused { call, errno: INJECTED });
        }
        make()
    }

    fn note(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.borrow_mut());
    }
}

fn remove(addresses: &mut Vec<usize>, at: NonNull<u8>) {
    let index = addresses.iter().position(|&address| address == at.addr().get());
    addresses.swap_remove(index.expect("it was made, and not given back yet"));
}

/// Reserves at an address, if nothing is there.
fn reserve_at(at: NonNull<u8>, bytes: usize) -> bool {
    let at = at.as_ptr().cast_const().cast::<c_void>();
    // SAFETY: where something is, it fails.
    !unsafe { VirtualAlloc(at, bytes, MEM_RESERVE, PAGE_NOACCESS) }.is_null()
}

// SAFETY: what succeeds is the system's.
unsafe impl Calls for Changed<'_> {
    fn granularity(&self) -> usize {
        Kernel.granularity()
    }

    fn section(&self, bytes: usize) -> Result<OwnedHandle, RegionError> {
        self.make("section", || Kernel.section(bytes))
    }

    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, RegionError> {
        self.make("reserve", || {
            let base = Kernel.reserve(bytes)?;
            self.note(|record| record.reservations.push(base.addr().get()));
            Ok(base)
        })
    }

    unsafe fn release(&self, at: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { Kernel.release(at) };
        self.note(|record| remove(&mut record.reservations, at));
        // The second half, in every second case: then one view is there already.
        let count = self.record.borrow().taken.len();
        if count < self.takes {
            let place = at.map_addr(|address| address.saturating_add(count % 2 * (2 << 16)));
            assert!(reserve_at(place, 1 << 16), "just given back");
            self.note(|record| record.taken.push(place.addr().get()));
        }
    }

    fn map_at(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), RegionError> {
        self.make("map_at", || {
            Kernel.map_at(at, section, bytes)?;
            self.note(|record| record.views.push(at.addr().get()));
            Ok(())
        })
    }

    unsafe fn unmap(&self, at: NonNull<u8>) {
        // SAFETY: as the caller promises.
        unsafe { Kernel.unmap(at) };
        self.note(|record| remove(&mut record.views, at));
    }
}

/// Maps, looks at the two views, and ends them.
fn round(changed: Changed<'_>) -> Result<(), RegionError> {
    let made = map_by(changed, BYTES);
    let made = made.map(|pages| {
        let (base, capacity) = (pages.base(), pages.capacity());
        assert!(capacity >= BYTES && capacity.is_multiple_of(1 << 16));
        for at in [0, 1, capacity / 2, capacity - 1] {
            // SAFETY: both are within the two views, and nobody else has them.
            unsafe {
                assert_eq!(base.add(at).read_volatile(), 0);
                base.add(at).write_volatile(7);
                assert_eq!(base.add(capacity + at).read_volatile(), 7);
                base.add(capacity + at).write_volatile(9);
                assert_eq!(base.add(at).read_volatile(), 9);
            }
        }
    });
    let mut record = changed.record.borrow_mut();
    for at in record.taken.drain(..) {
        // SAFETY: a reservation of the test's.
        unsafe { VirtualFree(core::ptr::without_provenance_mut(at), 0, MEM_RELEASE) };
    }
    assert_eq!((record.reservations.len(), record.views.len()), (0, 0), "left behind: {record:?}");
    made
}

/// The two tests whose addresses no other test may take run alone.
#[test]
fn every_call_fails_once() {
    alone(module_path!(), "every_call_fails_once", LIMIT, each_call_fails);
}

fn each_call_fails() {
    let calls = ["section", "reserve", "map_at", "map_at"];
    let record = RefCell::default();
    let changed = Changed { fails: usize::MAX, takes: 0, record: &record };
    assert_eq!(round(changed), Ok(()));
    assert_eq!(record.take().calls, calls);
    for fails in 0..calls.len() {
        let made = round(Changed { fails, ..changed });
        let record = record.take();
        match calls[fails] {
            call @ ("section" | "reserve") => {
                assert_eq!(made, Err(RegionError::Refused { call, errno: INJECTED }));
            }
            // Another try.
            _ => assert_eq!(made, Ok(()), "{record:?}"),
        }
        assert_eq!(record.calls[fails], calls[fails]);
    }
}

#[test]
fn others_take_the_addresses() {
    alone(module_path!(), "others_take_the_addresses", LIMIT, addresses_are_taken);
}

fn addresses_are_taken() {
    let record = RefCell::default();
    let changed = |takes| Changed { fails: usize::MAX, takes, record: &record };
    for takes in [1, 2, 7, TRIES - 1] {
        assert_eq!(round(changed(takes)), Ok(()));
        let reserved = record.take().calls.iter().filter(|call| **call == "reserve").count();
        assert_eq!(reserved, takes + 1);
    }
    // All the time: an error of the system's, after a bounded number of tries.
    assert!(matches!(round(changed(usize::MAX)), Err(RegionError::Refused { call: "MapViewOfFileEx", .. })));
}

#[test]
fn as_the_system_is() {
    for bytes in [1, 65_536, 65_537, 3 << 20] {
        let pages = map(bytes).expect("there is room").expect("always");
        assert_eq!(pages.capacity(), bytes.next_multiple_of(1 << 16));
    }
    let too_large = size::MAX_BYTES;
    assert!(matches!(map(too_large), Err(RegionError::TooLarge { requested }) if requested == too_large));
}

/// Nothing is left of thousands of rings: neither handles nor addresses.
#[test]
fn t18_thousands_in_turn() {
    alone(module_path!(), "t18_thousands_in_turn", LIMIT, thousands_in_turn);
}

fn thousands_in_turn() {
    /// The values of handles are multiples of it.
    const APART: usize = 4;
    const ROUNDS: usize = 2000;
    let ring = || map(BYTES).expect("there is room").expect("always");
    // Values that are free again are given out again.
    let next_handle = || Kernel.section(1 << 16).expect("there is room").as_raw_handle().addr();
    drop(ring());
    let before = next_handle();
    let places: BTreeSet<_> = (0..ROUNDS).map(|_| ring().base().addr().get()).collect();
    let after = next_handle();
    assert!(after < before + ROUNDS / 4 * APART, "handles: {before} before, {after} after");
    assert!(places.len() < ROUNDS / 4, "{} different addresses", places.len());
}
