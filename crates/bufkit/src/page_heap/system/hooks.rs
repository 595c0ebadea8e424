//! Calls to the system that a test refuses, and counts of them, of a thread.

use core::cell::RefCell;
use core::ptr::NonNull;
use std::thread_local;

pub(crate) use super::imp::has;
use super::{Outcome, imp};

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Reserve,
    Commit,
    Discard,
    GiveBack,
    Renew,
    Move,
}

/// The calls.
#[allow(dead_code, reason = "for the tests")]
pub(crate) const CALLS: [Call; 6] =
    [Call::Reserve, Call::Commit, Call::Discard, Call::GiveBack, Call::Renew, Call::Move];

/// What a test makes of the calls of its thread.
pub(crate) struct Hooks {
    /// How many there were of each.
    pub(crate) calls: [usize; 6],
    /// How many extents of lists were looked at.
    pub(crate) steps: usize,
    /// Which are refused, and of which the addresses are lost as well.
    pub(crate) is_refused: [bool; 6],
    pub(crate) is_lost: [bool; 6],
    /// So many calls are let through before.
    pub(crate) skip: usize,
    /// Reservations of more bytes are refused.
    pub(crate) most_reserved: usize,
    /// Moves of more bytes are refused.
    pub(crate) most_moved: usize,
    /// Bytes of a page, if not 0.
    pub(crate) page_bytes: usize,
    /// Addresses that were lost, with their bytes. They are another's.
    pub(crate) lost: alloc::vec::Vec<(NonNull<u8>, usize)>,
}

thread_local! {
    static HOOKS: RefCell<Hooks> = const {
        RefCell::new(Hooks {
            calls: [0; 6],
            steps: 0,
            is_refused: [false; 6],
            is_lost: [false; 6],
            skip: 0,
            most_reserved: usize::MAX,
            most_moved: usize::MAX,
            page_bytes: 0,
            lost: alloc::vec::Vec::new(),
        })
    };
}

/// Changes what is made of the calls of this thread.
pub(crate) fn with<R>(change: impl FnOnce(&mut Hooks) -> R) -> R {
    HOOKS.with_borrow_mut(change)
}

/// Counts a call. Returns what it is to return, if it is not to be made.
fn is_stopped(call: Call) -> Option<Outcome> {
    with(|hooks| {
        let call = call as usize;
        hooks.calls[call] += 1;
        if !hooks.is_refused[call] {
            return None;
        }
        if hooks.skip > 0 {
            hooks.skip -= 1;
            return None;
        }
        Some(if hooks.is_lost[call] { Outcome::Lost } else { Outcome::Refused })
    })
}

/// What another thread maps where the addresses are lost.
pub(crate) const ANOTHERS: u8 = 0xa5;

/// Lets another mapping come where pages were.
fn lose(start: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: addresses of a reservation, which the heap does not use from now on.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = libc::mmap(start.as_ptr().cast(), bytes, access, flags, -1, 0);
        assert_eq!(mapped, start.as_ptr().cast());
        start.write_bytes(ANOTHERS, bytes);
    }
    with(|hooks| hooks.lost.push((start, bytes)));
}

pub(crate) fn page_bytes() -> usize {
    match imp::page_bytes() {
        0 => 0,
        bytes => bytes.max(with(|hooks| hooks.page_bytes)),
    }
}

pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    if is_stopped(Call::Reserve).is_some() || bytes > with(|hooks| hooks.most_reserved) {
        return None;
    }
    // A heap with larger pages finds its tables aligned to them.
    let page_bytes = page_bytes();
    let start = imp::reserve(bytes + page_bytes)?;
    let skip = start.addr().get().next_multiple_of(page_bytes) - start.addr().get();
    // SAFETY: within the reservation.
    Some(unsafe { start.add(skip) })
}

pub(crate) unsafe fn release(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise. The page behind stays.
    unsafe { imp::release(start, bytes) };
}

pub(crate) unsafe fn commit(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    is_stopped(Call::Commit).is_none() && unsafe { imp::commit(start, bytes) }
}

pub(crate) unsafe fn discard(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    is_stopped(Call::Discard).is_none() && unsafe { imp::discard(start, bytes) }
}

pub(crate) unsafe fn give_back(start: NonNull<u8>, bytes: usize) -> Outcome {
    let stopped = is_stopped(Call::GiveBack);
    if stopped == Some(Outcome::Lost) {
        lose(start, bytes);
    }
    // SAFETY: the caller's promise.
    stopped.unwrap_or_else(|| unsafe { imp::give_back(start, bytes) })
}

pub(crate) unsafe fn renew(start: NonNull<u8>, bytes: usize) -> Outcome {
    let stopped = is_stopped(Call::Renew);
    if stopped == Some(Outcome::Lost) {
        lose(start, bytes);
    }
    // SAFETY: the caller's promise.
    stopped.unwrap_or_else(|| unsafe { imp::renew(start, bytes) })
}

pub(crate) unsafe fn move_pages(from: NonNull<u8>, to: NonNull<u8>, bytes: usize, are_used: bool) -> Outcome {
    if bytes > with(|hooks| hooks.most_moved) {
        return Outcome::Refused;
    }
    let stopped = is_stopped(Call::Move);
    if stopped == Some(Outcome::Lost) {
        lose(to, bytes);
    }
    // SAFETY: the caller's promise.
    stopped.unwrap_or_else(|| unsafe { imp::move_pages(from, to, bytes, are_used) })
}
