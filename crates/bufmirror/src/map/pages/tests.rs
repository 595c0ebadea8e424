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

/// What happens to huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Huge {
    /// There are none.
    Refused,
    /// Ordinary pages pass for them.
    Given,
}

/// The kernel, but that one call fails without being made.
#[derive(Debug, Clone, Copy)]
struct Failing<'a> {
    huge: Huge,
    /// Which one fails, counted from 0.
    at: usize,
    made: &'a RefCell<Vec<&'static str>>,
}

impl Failing<'_> {
    fn make<T>(&self, call: &'static str, make: impl FnOnce() -> Result<T, MapError>) -> Result<T, MapError> {
        self.made.borrow_mut().push(call);
        if self.made.borrow().len() == self.at + 1 {
            return Err(MapError::Refused { call, errno: INJECTED });
        }
        make()
    }
}

impl Calls for Failing<'_> {
    fn page_bytes(&self) -> Result<usize, MapError> {
        self.make("sysconf", || Kernel.page_bytes())
    }

    fn memory_file(&self, huge: bool) -> Result<OwnedFd, MapError> {
        if huge && self.huge == Huge::Refused {
            return Err(MapError::Refused { call: "memfd_create", errno: libc::ENOSYS });
        }
        self.make("memfd_create", || Kernel.memory_file(false))
    }

    fn set_len(&self, file: &OwnedFd, bytes: usize) -> Result<(), MapError> {
        self.make("ftruncate", || Kernel.set_len(file, bytes))
    }

    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, MapError> {
        self.make("mmap, reserving", || Kernel.reserve(bytes))
    }

    fn map_anywhere(&self, file: &OwnedFd, bytes: usize) -> Result<NonNull<u8>, MapError> {
        self.make("mmap, probing", || Kernel.map_anywhere(file, bytes))
    }

    unsafe fn map_shared(
        &self,
        at: NonNull<u8>,
        bytes: usize,
        file: &OwnedFd,
        offset: usize,
    ) -> Result<(), MapError> {
        // SAFETY: as the caller promises.
        self.make("mmap", || unsafe { Kernel.map_shared(at, bytes, file, offset) })
    }

    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), MapError> {
        // SAFETY: as the caller promises.
        let unmap = || unsafe { Kernel.unmap(at, bytes) };
        // A span that drops does not ask twice; only what is cut off a reservation may fail here.
        if bytes < HUGE_PAGE_BYTES { self.make("munmap", unmap) } else { unmap() }
    }

    fn advise_huge(&self, at: NonNull<u8>, bytes: usize) -> Result<(), MapError> {
        self.make("madvise, a hint", || Kernel.advise_huge(at, bytes))
    }

    fn dont_fork(&self, at: NonNull<u8>, bytes: usize) -> Result<(), MapError> {
        self.make("madvise", || Kernel.dont_fork(at, bytes))
    }
}

/// What of this process a leak would add to.
fn held() -> [usize; 3] {
    [process::open_files(), process::mappings(), process::address_space_bytes()]
}

/// Fails each call in turn; returns those that are made when none fails. `forgiven` says which
/// failures are no error.
///
/// Mappings of 2 MiB and more in all, see `unmap`.
fn fail_each(
    bytes: usize,
    options: Options,
    huge: Huge,
    forgiven: impl Fn(usize, &str) -> bool,
) -> Vec<&'static str> {
    let made = RefCell::new(Vec::with_capacity(64));
    let before = held();
    for at in 0.. {
        made.borrow_mut().clear();
        let pages = map_by(Failing { huge, at, made: &made }, bytes, options);
        let struck = made.borrow().get(at).copied();
        match (&pages, struck) {
            (Ok(_), None) => {}
            (Ok(_), Some(call)) => assert!(forgiven(at, call), "{call} failed, and nobody heard of it"),
            (Err(error), Some(call)) => {
                assert!(!forgiven(at, call));
                assert_eq!(*error, MapError::Refused { call, errno: INJECTED });
            }
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
        let plain = Options::default();
        let calls = fail_each(1 << 20, plain, Huge::Refused, |_, _| false);
        let set_up = ["sysconf", "memfd_create", "ftruncate", "mmap, reserving", "mmap", "mmap"];
        assert_eq!(calls, set_up);

        let options = Options { dont_fork: true, populate: true, ..plain };
        let calls = fail_each(3 << 20, options, Huge::Refused, |_, _| false);
        assert_eq!((&calls[..6], &calls[6..]), (&set_up[..], &["madvise"][..]));
    });
}

#[test]
fn t18_each_call_fails_once_without_huge_pages() {
    alone(module_path!(), "t18_each_call_fails_once_without_huge_pages", LIMIT, || {
        let options = Options { huge_pages: true, dont_fork: true, populate: false };
        let calls = fail_each(1, options, Huge::Refused, |_, call| call.ends_with("a hint"));
        assert_eq!(calls[calls.len() - 2..], ["madvise, a hint", "madvise"]);
        assert!(calls.contains(&"munmap"), "nothing was cut off to align: {calls:?}");
    });
}

/// Whatever fails with huge pages, it is done again with ordinary ones.
#[test]
fn t18_each_call_fails_once_with_huge_pages() {
    alone(module_path!(), "t18_each_call_fails_once_with_huge_pages", LIMIT, || {
        let options = Options { huge_pages: true, dont_fork: true, populate: false };
        let calls = fail_each(1, options, Huge::Given, |at, _| at > 0);
        assert_eq!(calls[..4], ["sysconf", "memfd_create", "ftruncate", "mmap, probing"]);
        assert!(!calls.contains(&"madvise, a hint"), "huge pages were given, and asked for again");
    });
}

#[test]
fn sizes_are_whole_pages() {
    let page = process::page_bytes();
    for (bytes, capacity) in [(1, page), (page, page), (page + 1, 2 * page), (3 * page - 1, 3 * page)] {
        let pages = map_by(Kernel, bytes, Options::default()).unwrap();
        assert_eq!((pages.capacity(), pages.base().addr().get() % page), (capacity, 0));
        check(&pages);
    }
    for bytes in [1, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1] {
        let pages = map_by(Kernel, bytes, Options { huge_pages: true, ..Options::default() }).unwrap();
        assert_eq!(pages.capacity(), bytes.next_multiple_of(HUGE_PAGE_BYTES));
        assert_eq!(pages.base().addr().get() % HUGE_PAGE_BYTES, 0);
        check(&pages);
    }
}
