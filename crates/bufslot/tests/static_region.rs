//! A pool over static memory, with no feature at all: no allocator, no operating system.
//!
//! ```text
//! cargo test -p bufslot --no-default-features --test static_region
//! ```

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use bufcore::{AcquireError, NoFallback, Region};
use bufslot::{Builder, Mode, SlotPool, Writer};

const BYTES: usize = 4096;

/// Memory that is lent once, as a `static_cell` or a linker section is.
struct Memory {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the bytes are lent to one caller only.
unsafe impl Sync for Memory {}

impl Memory {
    const fn new() -> Self {
        Self { taken: AtomicBool::new(false), bytes: UnsafeCell::new([0xEE; BYTES]) }
    }

    #[allow(clippy::mut_from_ref, reason = "the flag lets one caller through")]
    fn take(&'static self) -> &'static mut [u8] {
        // ORDER: Relaxed: the bytes are as the program started with.
        assert!(!self.taken.swap(true, Ordering::Relaxed), "lent once");
        // SAFETY: the swap lets one caller through, so this is the only reference.
        unsafe { &mut *self.bytes.get() }
    }
}

fn pool(memory: &'static Memory) -> SlotPool<NoFallback> {
    Builder::new().slots(8).build_in(Region::from_static(memory.take()), NoFallback).expect("room enough")
}

#[test]
fn buffers_and_frames() {
    static MEMORY: Memory = Memory::new();
    let mut pool = pool(&MEMORY);
    let capacity = pool.capacity();
    assert!(capacity > BYTES - 1024 && capacity < BYTES);
    let mut buf = pool.acquire(100).expect("room");
    buf.extend_from_slice(b"static").expect("room");
    let mut writer = Writer::new(&mut pool);
    writer.extend_from_slice(b"header").expect("room");
    writer.extend_from_slice(b"body").expect("room");
    let frame = writer.finish();
    assert_eq!((&buf[..], &frame[..], pool.mode()), (&b"static"[..], &b"headerbody"[..], Mode::Back));
    let view = frame.freeze();
    let body = view.slice(6..);
    drop(view);
    assert_eq!(&body[..], b"body");
    // Full is an error, and so is more than there is.
    assert!(matches!(pool.acquire(capacity), Err(AcquireError::Exhausted { .. })));
    assert_eq!(pool.mode(), Mode::Fallback);
    assert_eq!(
        pool.acquire(capacity + 1).err(),
        Some(AcquireError::TooLarge { requested: capacity + 1, limit: capacity })
    );
    drop((buf, body));
    assert_eq!(pool.acquire(capacity).expect("all was released").capacity(), capacity);
}

/// A buffer of static memory outlives its pool, on another thread too; the memory is lost with such
/// a pool, not freed.
#[test]
fn outliving_the_pool() {
    static MEMORY: Memory = Memory::new();
    let mut pool = pool(&MEMORY);
    let mut buf = pool.acquire(1000).expect("room");
    buf.resize(1000, 7).expect("asked for");
    drop(pool);
    std::thread::spawn(move || assert!(buf.iter().all(|&byte| byte == 7)))
        .join()
        .expect("the bytes are right");
}

#[test]
fn the_memory_can_be_used_again() {
    static MEMORY: Memory = Memory::new();
    let mut first = pool(&MEMORY);
    drop(first.acquire(10).expect("room"));
    let region = first.into_region().expect("all was released");
    assert_eq!(region.len(), BYTES);
    let mut second = Builder::new().slots(1).alignment(64).build_in(region, NoFallback).expect("room enough");
    let buf = second.acquire(64).expect("room");
    assert_eq!(buf.as_ptr().addr() % 64, 0);
}
