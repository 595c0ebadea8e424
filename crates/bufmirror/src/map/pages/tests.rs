//! Each system call of the set-up fails once: the error names it, and nothing is left behind.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;
use std::os::fd::OwnedFd;

use testkit::process::{self, alone};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);
/// No system has this error.
const INJECTED: i32 = 9999;

std::thread_local! {
    /// Which call of this thread fails, counted from 0, and those that were made.
    static FAILING: RefCell<Option<(usize, Vec<&'static str>)>> = const { RefCell::new(None) };
}

/// The system calls, but that one may fail without being made.
pub(super) mod calls {
    use super::super::calls;
    use super::*;

    fn make<T>(call: &'static str, make: impl FnOnce() -> Result<T, RegionError>) -> Result<T, RegionError> {
        let fails = FAILING.with_borrow_mut(|failing| {
            failing.as_mut().is_some_and(|(at, made)| {
                made.push(call);
                made.len() == *at + 1
            })
        });
        if fails { Err(RegionError::Refused { call, errno: INJECTED }) } else { make() }
    }

    pub(crate) fn page_bytes() -> Result<usize, RegionError> {
        make("sysconf", calls::page_bytes)
    }

    pub(crate) fn memory_file() -> Result<OwnedFd, RegionError> {
        make("memfd_create", calls::memory_file)
    }

    pub(crate) fn set_len(file: &OwnedFd, bytes: usize) -> Result<(), RegionError> {
        make("ftruncate", || calls::set_len(file, bytes))
    }

    pub(crate) fn reserve(bytes: usize) -> Result<NonNull<u8>, RegionError> {
        make("mmap, reserving", || calls::reserve(bytes))
    }

    pub(crate) unsafe fn map_shared(
        at: NonNull<u8>,
        bytes: usize,
        file: &OwnedFd,
        offset: usize,
    ) -> Result<(), RegionError> {
        // SAFETY: as the caller promises.
        make("mmap", || unsafe { calls::map_shared(at, bytes, file, offset) })
    }

    pub(in crate::map::pages) use calls::unmap;
}

/// What of this process a leak would add to.
fn held() -> [usize; 3] {
    [process::open_files(), process::mappings(), process::address_space_bytes()]
}

/// Fails each call in turn; returns those that are made when none fails.
fn fail_each(bytes: usize) -> Vec<&'static str> {
    let before = held();
    for at in 0.. {
        FAILING.set(Some((at, Vec::new())));
        let pages = map(bytes);
        let (_, made) = FAILING.take().expect("set above");
        let struck = made.get(at).copied();
        match (&pages, struck) {
            (Ok(_), None) => {}
            (Ok(_), Some(call)) => panic!("{call} failed, and nobody heard of it"),
            (Err(error), Some(call)) => assert_eq!(*error, RegionError::Refused { call, errno: INJECTED }),
            (Err(error), None) => panic!("nothing was made to fail, but {error}"),
        }
        if let Ok(pages) = &pages {
            check(pages.as_ref().expect("always"));
        }
        drop(pages);
        assert_eq!(held(), before, "descriptors, mappings, address space after {struck:?} failed");
        if struck.is_none() {
            return made;
        }
    }
    unreachable!("there are not so many calls")
}

/// Both halves are there, zero, and the same.
fn check(pages: &Pages) {
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
        assert_eq!(fail_each(3 << 20), set_up);
    });
}

#[test]
fn sizes_are_whole_pages() {
    let page = process::page_bytes();
    for (bytes, capacity) in [(1, page), (page, page), (page + 1, 2 * page), (3 * page - 1, 3 * page)] {
        let pages = map(bytes).unwrap().expect("always");
        assert_eq!((pages.capacity(), pages.base().addr().get() % page), (capacity, 0));
        check(&pages);
    }
}
