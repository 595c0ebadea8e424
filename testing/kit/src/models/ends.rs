//! Pools that end while their buffers are dropped elsewhere. In each model one pool ends, and its
//! memory is given back once, after all uses of it.

use core::alloc::Layout;
use core::ptr::NonNull;

use bufcore::{Buf, BufferPool, Lease, MemoryProvider, Provided, Region, RegionError};
use bufkit::orphan;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};

use super::Shadow;

loom::lazy_static! {
    /// Stands for the memory of the one pool of a model that ends.
    static ref MEMORY: Shadow = Shadow::default();
    static ref FREED: AtomicUsize = AtomicUsize::new(0);
}

/// Provides a region once, and notes that it is given back.
struct Noted(Region);

// SAFETY: the bytes are those of the region, which nobody else uses, and which stays as long as
// this. Only `region` makes one, for one region.
unsafe impl MemoryProvider for Noted {
    fn allocate(&self, _: Layout) -> Result<Provided, RegionError> {
        Ok(Provided { start: self.0.as_ptr(), is_zeroed: true })
    }

    unsafe fn deallocate(&self, _: NonNull<u8>, _: Layout) {
        MEMORY.write();
        // ORDER: Relaxed: counted outside of the model; the shadow of the memory sees the orders.
        FREED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes the region for a pool that ends, of `bytes` bytes.
pub fn region(bytes: usize) -> Region {
    const ALIGNMENT: usize = 64;
    let noted = Noted(Region::heap(bytes, ALIGNMENT).expect("a small region"));
    Region::from_provider(noted, bytes, ALIGNMENT).expect("it is provided")
}

/// Asserts that the memory has gone, once.
pub(super) fn gone() {
    orphan::sweep();
    assert_eq!(orphan::pending(), 0);
    // ORDER: Relaxed: read after all threads were joined.
    assert_eq!(FREED.load(Ordering::Relaxed), 1, "freed once");
}

fn acquire<P: BufferPool>(pool: &mut P) -> Buf<P::Lease> {
    pool.acquire(8).expect("made for as many")
}

/// Uses the memory and drops the buffer, on a thread of its own.
pub(super) fn dropped_elsewhere<L: Lease>(buf: Buf<L>) -> JoinHandle<()> {
    thread::spawn(move || {
        MEMORY.read();
        drop(buf);
    })
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("the order is right"));
}

/// Drops one buffer elsewhere while the pool ends, and another by its own thread afterwards.
/// Whoever is last frees, after both.
pub fn against_a_release<P: BufferPool>(mut pool: P) {
    let (sent, kept) = (acquire(&mut pool), acquire(&mut pool));
    let consumer = dropped_elsewhere(sent);
    thread::yield_now();
    MEMORY.read();
    drop(pool);
    drop(kept);
    join([consumer]);
    gone();
}

/// Drops two buffers elsewhere while the pool ends.
pub fn against_two_releases<P: BufferPool>(mut pool: P) {
    let consumers = [(); 2].map(|()| dropped_elsewhere(acquire(&mut pool)));
    thread::yield_now();
    drop(pool);
    join(consumers);
    gone();
}

/// Ends a pool while its buffer is dropped on one thread, and another sweeps.
pub fn against_a_release_and_a_sweep<P: BufferPool>(mut pool: P) {
    let consumer = dropped_elsewhere(acquire(&mut pool));
    let sweeper = thread::spawn(orphan::sweep);
    thread::yield_now();
    drop(pool);
    join([consumer, sweeper]);
    gone();
}

/// Checks that buffers that see that their pool is gone leave nothing to a later sweep, also when
/// two threads are last together.
pub fn late_releases_free_the_memory_themselves<P: BufferPool>(mut pool: P) {
    let buffers = [acquire(&mut pool), acquire(&mut pool)];
    drop(pool);
    assert_eq!(orphan::pending(), 1);
    join(buffers.map(dropped_elsewhere));
    assert_eq!(orphan::pending(), 0);
    gone();
}

/// Leaves two pools behind at once, each swept by whoever comes.
pub fn two_pools_left_behind<P: BufferPool + 'static>(make: fn(usize) -> P) {
    join([(), ()].map(|()| {
        thread::spawn(move || {
            let mut pool = make(1);
            let buf = acquire(&mut pool);
            drop(pool);
            drop(buf);
        })
    }));
    assert_eq!(orphan::pending(), 0);
}
