//! A program without the standard library: a slot pool, a ring allocator and a ring of bytes over static memory and, with `alloc`, the
//! same on a heap that only grows.
//!
//! That it links says more than what it does: with `std` anywhere below, the panic handler would be there twice, and with
//! `alloc` and no allocator the linker would miss one. Exit codes: 0 when all is well, the line of the check that failed modulo 200
//! plus 1 otherwise, and 255 for a panic.
#![no_std]
#![no_main]

#[cfg(feature = "alloc")]
mod bump;
mod system;

use core::cell::UnsafeCell;

use bufslot::bufcore::{AcquireError, BufferPool, FrameBuffer, Region, Reject};
use bufslot::{Builder, Mode};

use system::exit;

/// Ends the program unless `condition` holds.
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            exit((line!() % 200 + 1) as i32);
        }
    };
}

/// As [`check`], for something that has to be `Ok`.
macro_rules! ok {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(_) => exit((line!() % 200 + 1) as i32),
        }
    };
}

#[repr(align(64))]
struct Memory(UnsafeCell<[u8; 8192]>);

// SAFETY: each is used by one function alone, which runs once.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; 8192]));
static RING: Memory = Memory(UnsafeCell::new([0; 8192]));
static STREAM: Memory = Memory(UnsafeCell::new([0; 8192]));

/// Called by the entry point, once.
#[unsafe(no_mangle)]
extern "C" fn run() -> ! {
    pool_over_static_memory();
    ring_over_static_memory();
    stream_over_static_memory();
    #[cfg(feature = "alloc")]
    {
        pool_on_the_heap();
        ring_on_the_heap();
        stream(ok!(bufmirror::MirrorRing::new(1000)));
    }
    system::print(b"nostd-check: pools without the standard library work\n");
    exit(0)
}

fn pool_over_static_memory() {
    // SAFETY: the only borrow there ever is: this function runs once.
    let memory = unsafe { &mut *MEMORY.0.get() };
    let region = Region::from_static(memory);
    let mut pool = ok!(Builder::new().slots(4).alignment(16).build_in(region, Reject));

    // Whole buffers, to the last slot and past it.
    let mut first = ok!(pool.acquire(1000));
    ok!(first.extend_from_slice(b"first"));
    check!(first.as_ptr().addr() % 16 == 0);
    let others = [ok!(pool.acquire(1000)), ok!(pool.acquire(1000)), ok!(pool.acquire(1000))];
    check!(matches!(pool.acquire(1), Err(AcquireError::Exhausted { requested: 1, .. })));
    check!(matches!(pool.acquire(1 << 30), Err(AcquireError::TooLarge { .. })));
    check!(pool.mode() == Mode::Fallback);
    drop(others);
    check!(pool.acquire_zeroed(2000).is_ok_and(|buf| buf.iter().all(|&byte| byte == 0)));

    // A frame that is filled in steps.
    ok!(pool.writable(4)).copy_from_slice(b"head");
    ok!(pool.writable(4)).copy_from_slice(b"body");
    pool.discard_front(4);
    let frame = ok!(pool.detach());
    check!(&frame[..] == b"body");

    // Views, and back.
    let mut view = frame.freeze();
    let half = view.split_to(2);
    check!((&half[..], &view[..]) == (b"bo", b"dy"));
    let view = match view.try_thaw() {
        Ok(_) => exit(254),
        Err(view) => view,
    };
    drop(half);
    let mut thawed = ok!(view.try_thaw());
    check!(thawed.push(b'!').is_err() && thawed.capacity() == 2);
    thawed.copy_from_slice(b"YD");
    check!(&thawed[..] == b"YD");
    drop(thawed);

    // The memory comes back when nothing is out, and not before.
    let pool = match pool.into_region() {
        Ok(_) => exit(253),
        Err(pool) => pool,
    };
    check!(&first[..] == b"first");
    drop(first);
    check!(pool.is_idle());
    let region = ok!(pool.into_region());
    check!(region.is_static() && region.len() == 8192);
}

fn stream_over_static_memory() {
    // SAFETY: the only borrow there ever is: this function runs once.
    let memory = unsafe { &mut *STREAM.0.get() };
    stream(ok!(bufmirror::Builder::new().build_static(memory)));
}

/// Five times around.
fn stream(mut ring: bufmirror::MirrorRing) {
    let capacity = ring.capacity();
    check!(ring.put(&[0; 8193]).is_err() && ring.is_empty() && !ring.is_mapped());
    let mut moved = 0;
    while moved < 5 * capacity {
        ok!(ring.reserve(100)).fill(moved as u8);
        ring.commit(100);
        check!(ring.peek().ends_with(&[moved as u8; 100]));
        // The last byte stays until the next turn.
        ring.consume(ring.len() - 1);
        moved += 100;
    }
}

fn ring_over_static_memory() {
    // SAFETY: the only borrow there ever is: this function runs once.
    let memory = unsafe { &mut *RING.0.get() };
    let mut ring = ok!(bufring::Builder::new().alignment(32).build_static(memory));
    let capacity = ring.capacity();
    check!(matches!(ring.acquire(capacity + 1), Err(AcquireError::TooLarge { .. })));

    // Fixed, growing and typed, until it is full.
    let mut first = ok!(ring.acquire(1000));
    ok!(first.extend_from_slice(b"first"));
    check!(first.as_ptr().addr() % 32 == 0);
    let mut growing = ok!(ring.extendable(4));
    for _ in 0..100 {
        ok!(growing.extend_from_slice(b"growing "));
    }
    let grown = growing.finish();
    check!(grown.len() == 800 && &grown[792..] == b"growing ");
    let mut words = ok!(ring.acquire_vec::<u64>(3));
    check!(words.push(7).is_ok() && words.insert(0, 6).is_ok() && words.remove(1) == 7);
    check!(matches!(ring.acquire(capacity), Err(AcquireError::Exhausted { .. })));

    // Views, and back.
    let view = grown.freeze();
    let part = view.slice(..7);
    drop(view);
    check!(&part[..] == b"growing" && part.try_thaw().is_ok());
    drop(words);
    check!(&first[..] == b"first");
    drop(first);
    check!(ring.acquire_zeroed(capacity).is_ok_and(|buf| buf.iter().all(|&byte| byte == 0)));
    let region = ok!(ring.into_region());
    check!(region.is_static() && region.len() == 8192);
}

#[cfg(feature = "alloc")]
fn ring_on_the_heap() {
    use bufring::RingAllocator;
    use bufslot::bufcore::strategy::orphans;

    let mut ring = ok!(RingAllocator::new(4096));
    let mut small = ok!(ring.acquire(100));
    ok!(small.extend_from_slice(b"outlives its ring"));
    drop(ring);
    check!(orphans::pending() == 1);
    check!(&small[..] == b"outlives its ring");
    drop(small);
    check!(orphans::pending() == 0);
    check!(bump::outstanding() == 0);
}

#[cfg(feature = "alloc")]
fn pool_on_the_heap() {
    use bufslot::SlotPool;
    use bufslot::bufcore::strategy::orphans;

    let mut pool = ok!(SlotPool::new(4096, 2));
    let mut small = ok!(pool.acquire(100));
    ok!(small.extend_from_slice(b"outlives its pool"));
    let large = ok!(pool.acquire(100_000));
    check!(large.lease().is_fallback() && !small.lease().is_fallback());
    drop(large);
    drop(pool);
    check!(orphans::pending() == 1);
    check!(&small[..] == b"outlives its pool");
    drop(small);
    check!(orphans::pending() == 0);
    check!(bump::outstanding() == 0);
}
