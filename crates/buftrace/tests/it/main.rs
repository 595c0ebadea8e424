//! The contract of recordings, traces and their files.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests run with the standard library"
)]

mod format;
mod hostile;
mod profile;
mod recording;
mod shared;
mod summary;
mod trace;

use buftrace::{Event, EventKind};

fn acquire(at_ns: u64, thread: u32, id: u32, bytes: u64) -> Event {
    Event { at_ns, thread, kind: EventKind::Acquire { id, bytes } }
}

fn release(at_ns: u64, thread: u32, id: u32) -> Event {
    Event { at_ns, thread, kind: EventKind::Release { id } }
}
