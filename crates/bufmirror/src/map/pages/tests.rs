//! Each system call of the set-up fails once: the error names it, and nothing is left behind.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;
use std::os::fd::OwnedFd;

use buftest::process::{self, alone};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);
/// No system has this error.
const INJECTED: i32 = 9999;

/// The kernel, but that one call fails without being made.
#[derive(Debug, Clone, Copy)]
struct Failing<'a> {
    /// Which one fails, counted from 0.
    at: usize,
    made: &'a RefCell<Vec<&'static str>>,
}

impl Failing<'_> {
    fn make<T>(
        &self,
        call: &'static str,
        make: impl FnOnce() -> Result<T, RegionError>,
    ) -> Result<T, RegionError> {
        self.made.borrow_mut().push(call);
        if self.made.borrow().len() == self.at + 1 {
            return Err(RegionError::Refused { call, errno: INJECTED });
        }
        make()
    }
}

impl Calls for Failing<'_> {
    fn page_bytes(&self) -> Result<usize, RegionError> {
        self.make("sysconf", || Kernel.page_bytes())
    }

    fn memory_file(&self) -> Result<OwnedFd, RegionError> {
        self.make("memfd_create", || Kernel.memory_file())
    }

    fn set_len(&self, file: &OwnedFd, bytes: usize) -> Result<(), RegionError> {
        self.make("ftruncate", || Kernel.set_len(file, bytes))
    }

    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, RegionError> {
        self.make("mmap, reserving", || Kernel.reserve(bytes))
    }

    unsafe fn map_shared(
        &self,
        at: NonNull<u8>,
        bytes: usize,
        file: &OwnedFd,
        offset: usize,
    ) -> Result<(), RegionError> {
        // SAFETY: as the caller promises.
        self.make("mmap", || unsafe { Kernel.map_shared(at, bytes, file, offset) })
    }

    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), RegionError> {
        // SAFETY: as the caller promises.
        unsafe { Kernel.unmap(at, bytes) }
    }
}

/// What of this process a leak would add to.
fn held() -> [usize; 3] {
    [process::open_files(), process::mappings(), process::address_space_bytes()]
}

/// Fails each call in turn; returns those that are made when none fails.
fn fail_each(bytes: usize, populate: bool) -> Vec<&'static str> {
    let made = RefCell::new(Vec::with_capacity(64));
    let before = held();
    for at in 0.. {
        made.borrow_mut().clear();
        let pages = map_by(Failing { at, made: &made }, bytes, populate);
        let struck = made.borrow().get(at).copied();
        match (&pages, struck) {
            (Ok(_), None) => {}
            (Ok(_), Some(call)) => panic!("{call} failed, and nobody heard of it"),
            (Err(error), Some(call)) => assert_eq!(*error, RegionError::Refused { call, errno: INJECTED }),
            (Err(error), None) => panic!("nothing was made to fail, but {error}"),
        }
        if let Ok(pages) = &pages {
            check(pages);
        }
        drop(pages);
        assert_eq!(held(), before, "descriptors, mappings, address space after {struck:?} failed");
        if struck.is_none() {
            break;
        }
    }
    made.into_inner()
}

/// Both halves are there, zero, and the same.
fn check<C: Calls>(pages: &Pages<C>) {
    let (base, capacity) = (pages.base(), pages.capacity());
    for (at, value) in [(0, 1), (capacity - 1, 2), (capacity / 2, 3)] {
        for (to, from) in [(at, capacity + at), (capacity + at, at)] {
            // SAFETY: within the mappings.
            let to = unsafe { base.add(to) };
            // SAFETY: likewise.
            let from = unsafe { base.add(from) };
            // SAFETY: mapped, and nobody else's; volatile, because it is the byte that the next
            // line is about.
            assert_eq!(unsafe { from.read_volatile() }, 0);
            // SAFETY: as above.
            unsafe { to.write_volatile(value) };
            // SAFETY: as above.
            assert_eq!(unsafe { from.read_volatile() }, value);
            // SAFETY: as above.
            unsafe { from.write_volatile(0) };
        }
    }
}

#[test]
fn t18_each_call_fails_once() {
    alone(module_path!(), "t18_each_call_fails_once", LIMIT, || {
        let set_up = ["sysconf", "memfd_create", "ftruncate", "mmap, reserving", "mmap", "mmap"];
        for populate in [false, true] {
            assert_eq!(fail_each(3 << 20, populate), set_up);
        }
    });
}

#[test]
fn sizes_are_whole_pages() {
    let page = process::page_bytes();
    for (bytes, capacity) in [(1, page), (page, page), (page + 1, 2 * page), (3 * page - 1, 3 * page)] {
        let pages = map_by(Kernel, bytes, false).unwrap();
        assert_eq!((pages.capacity(), pages.base().addr().get() % page), (capacity, 0));
        check(&pages);
    }
}
