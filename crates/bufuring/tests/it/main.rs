//! The tests of arenas and drivers, in one binary.

#![cfg(all(
    target_os = "linux",
    any(
        target_arch = "aarch64",
        target_arch = "loongarch64",
        target_arch = "powerpc64",
        target_arch = "riscv64",
        target_arch = "x86_64"
    )
))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod arenas;
mod ends;
mod files;
mod in_flight;
mod patterns;
mod polled;
mod random;
mod receive;
mod refused;
mod threads;
mod thresholds;
mod words;

use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use bufcore::{AcquireError, Buf, MapOptions, NoFallback, NoLease};
use bufslot::{SlotLease, SlotPool};
use bufuring::{Arena, Descriptor, Driver, Mode};

const LIMIT: Duration = Duration::from_secs(60);
/// The same for what waits for ever if it is wrong.
const SOON: Duration = Duration::from_secs(15);
const PAGE: usize = 4096;

/// A buffer of a pool without a fallback.
type Page = Buf<SlotLease<NoLease>>;

fn arena() -> Arena {
    Arena::mapped(1 << 20, MapOptions::new()).expect("the system maps")
}

/// A pool of `slots` pages in `arena`, and of nothing else.
fn pool_in(arena: &Arena, slots: usize) -> SlotPool<NoFallback> {
    let region = arena.part(slots * (PAGE + 64) + PAGE, PAGE).expect("the arena has room");
    let builder = SlotPool::builder().slots(slots).capacity(slots * PAGE).alignment(PAGE);
    builder.build_in(region, NoFallback).expect("the region is large enough")
}

fn page(pool: &mut SlotPool<NoFallback>) -> Page {
    pool.acquire(PAGE).expect("a page is free")
}

/// How many pages the pool can give out now.
fn free_pages(pool: &mut SlotPool<NoFallback>) -> usize {
    let mut pages = Vec::new();
    loop {
        match pool.acquire(PAGE) {
            Ok(page) => pages.push(page),
            Err(AcquireError::Exhausted { .. }) => return pages.len(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Drivers of all modes, over `arena`. Where the system has no io_uring, those of blocking calls.
fn drivers(arena: &Arena) -> [Driver; 3] {
    let builder = Driver::builder().arena(arena);
    [builder.clone().build(), builder.clone().register(false).build(), builder.blocking(true).build()]
}

/// A driver of a ring; `None`, with a note, where the system has none.
fn ring(arena: &Arena) -> Option<Driver> {
    let driver = Driver::new(arena);
    if matches!(driver.mode(), Mode::Blocking { .. }) {
        eprintln!("no io_uring here: {}", driver.mode());
        return None;
    }
    Some(driver)
}

/// What most trials begin with: a driver of a ring, a pool of `slots` pages in its arena, and a
/// stream. `None` where the system has no io_uring.
fn started(slots: usize) -> Option<(Driver, SlotPool<NoFallback>, (UnixStream, Descriptor))> {
    let arena = arena();
    let driver = ring(&arena)?;
    Some((driver, pool_in(&arena, slots), stream()))
}

/// Two ends of a stream. A read of the second is in flight until the first is written to.
fn stream() -> (UnixStream, Descriptor) {
    let (near, far) = UnixStream::pair().expect("the system has sockets");
    (near, Descriptor::new(far))
}

/// A new file on a disk, for reading and writing, that has no name by the time it is returned.
fn file(name: &str, flags: i32) -> File {
    use std::os::unix::fs::OpenOptionsExt;

    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let options = |flags| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).custom_flags(flags);
        options
    };
    // Some file systems know no direct reads.
    let file = options(flags).open(&path).or_else(|_| options(0).open(&path)).expect("a file can be made");
    std::fs::remove_file(&path).expect("it is there");
    file
}

/// Whether a pool refused for want of memory, or a group for want of budget.
fn is_exhausted(error: &std::io::Error) -> bool {
    let within = error.get_ref().and_then(|within| within.downcast_ref::<bufcore::AcquireError>());
    matches!(within, Some(bufcore::AcquireError::Exhausted { .. }))
}
