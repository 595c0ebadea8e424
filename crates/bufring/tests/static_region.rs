//! A ring over static memory, with no feature at all: no allocator, no operating system.
//!
//! ```text
//! cargo test -p bufring --no-default-features --test static_region
//! ```

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use bufcore::AcquireError;
use bufring::{Builder, RingPool, Writer};

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

fn ring(memory: &'static Memory) -> RingPool {
    Builder::new().build_static(memory.take()).expect("room enough")
}

#[test]
fn buffers_frames_and_vectors() {
    static MEMORY: Memory = Memory::new();
    let mut ring = ring(&MEMORY);
    let capacity = ring.capacity();
    assert!(capacity > BYTES - 256 && capacity < BYTES);
    let mut buf = ring.acquire(100).expect("room");
    buf.extend_from_slice(b"static").expect("room");
    let mut writer = Writer::new(&mut ring);
    writer.extend_from_slice(b"header").expect("room");
    writer.extend_from_slice(b"body").expect("room");
    let frame = writer.finish();
    assert_eq!((&buf[..], &frame[..]), (&b"static"[..], &b"headerbody"[..]));
    let view = frame.freeze();
    let body = view.slice(6..);
    drop(view);
    assert_eq!(&body[..], b"body");
    let mut grown = ring.acquire(1).expect("room");
    ring.grow(&mut grown, 5).expect("room");
    grown.extend_from_slice(b"grown").expect("room");
    ring.shrink(&mut grown);
    let mut words = ring.acquire_vec::<u64>(3).expect("room");
    words.push(7).expect("room");
    assert_eq!((&grown[..], &words[..]), (&b"grown"[..], &[7][..]));
    // Full is an error, and so is more than there is.
    assert!(matches!(ring.acquire(capacity), Err(AcquireError::Exhausted { .. })));
    assert_eq!(
        ring.acquire(capacity + 1).err(),
        Some(AcquireError::TooLarge { requested: capacity + 1, limit: capacity })
    );
    drop((buf, body, grown, words));
    assert_eq!(ring.acquire(capacity).expect("all was released").capacity(), capacity);
}

/// A buffer of static memory outlives its ring, on another thread too; the memory is lost with such
/// a ring, not freed.
#[test]
fn outliving_the_ring() {
    static MEMORY: Memory = Memory::new();
    let mut ring = ring(&MEMORY);
    let mut buf = ring.acquire(1000).expect("room");
    buf.resize(1000, 7).expect("asked for");
    drop(ring);
    std::thread::spawn(move || assert!(buf.iter().all(|&byte| byte == 7)))
        .join()
        .expect("the bytes are right");
}

#[test]
fn the_memory_can_be_used_again() {
    static MEMORY: Memory = Memory::new();
    let mut first = ring(&MEMORY);
    drop(first.acquire(10).expect("room"));
    let region = first.into_region().expect("all was released");
    assert_eq!(region.len(), BYTES);
    let mut second = Builder::new().alignment(64).build_in(region).expect("room enough");
    let buf = second.acquire(64).expect("room");
    assert_eq!(buf.as_ptr().addr() % 64, 0);
}
