//! Every heap buffer is one allocation, and goes back once, with its layout.
//!
//! Without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufcore::{HeapPool, Region, SharedBytes};
use testkit::alloc::Ledger;
use testkit::trials::books::drop_elsewhere;

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

fn heap_pool(alignment: usize) {
    let mut pool = HeapPool::new().with_alignment(alignment).expect("a power of two");
    for bytes in [0, 1, 15, 16, 17, 4095, 4096, 100_000] {
        let calls = LEDGER.calls();
        let (blocks, out) = LEDGER.outstanding();
        let buf = pool.acquire_zeroed(bytes).expect("the heap has room");
        if cfg!(not(feature = "track")) {
            // No bytes are no allocation.
            assert_eq!(LEDGER.calls(), calls + usize::from(bytes > 0), "calls for {bytes} bytes");
        }
        let view = buf.freeze();
        let clone = view.clone();
        drop(view);
        let (_, held) = LEDGER.outstanding();
        assert!(held >= out + bytes, "{bytes} bytes are out");
        drop(clone);
        if cfg!(not(feature = "track")) {
            assert_eq!(LEDGER.outstanding(), (blocks, out));
        }
    }
}

/// A handle of a view costs no call of the allocator, nor do its clones and parts; one of a vector
/// costs one.
fn shared_handles() {
    let buf = HeapPool::new().acquire_zeroed(100).expect("the heap has room");
    let calls = LEDGER.calls();
    let mut shared = SharedBytes::from(buf.freeze());
    let parts = [shared.split_to(10), shared.clone(), shared.slice(20..), SharedBytes::from_static(b"abc")];
    assert_eq!(LEDGER.calls(), calls, "a handle was allocated");
    drop((shared, parts));
    let vector = vec![1; 100];
    let calls = LEDGER.calls();
    let shared = SharedBytes::from(vector);
    let parts = [shared.slice(..50), shared.clone(), SharedBytes::from(Vec::new())];
    assert_eq!(LEDGER.calls(), calls + 1, "one allocation for a vector");
    drop((shared, parts));
    #[cfg(feature = "bytes")]
    {
        let calls = LEDGER.calls();
        assert!(SharedBytes::from(bytes::Bytes::new()).is_empty());
        assert_eq!(LEDGER.calls(), calls, "a handle of no bytes was allocated");
    }
}

fn other_threads() {
    let bufs: Vec<_> = {
        let mut pool = HeapPool::new();
        (0..20).map(|n| pool.acquire(n * 100).expect("the heap has room")).collect()
    };
    let ending: Vec<_> = bufs.into_iter().map(drop_elsewhere).collect();
    ending.into_iter().for_each(|handle| handle.join().expect("dropping does not panic"));
}

fn regions() {
    for (bytes, alignment) in [(1, 1), (100, 64), (5000, 4096), (1 << 20, 1 << 20)] {
        for make in [Region::heap, Region::heap_aligned] {
            let region = make(bytes, alignment).expect("the heap has room");
            assert_eq!(region.as_ptr().addr().get() % alignment, 0);
        }
        let region = Region::heap_aligned(bytes, alignment).expect("the heap has room");
        let (start, len) = (region.as_ptr(), region.len());
        std::mem::forget(region);
        // SAFETY: of a region of `heap_aligned` that is forgotten and rebuilt once.
        drop(unsafe { Region::from_leaked(start, len, alignment) });
    }
}

fn balanced(what: &str, body: impl Fn()) {
    LEDGER.balanced(what, || {}, body);
}

fn main() {
    for alignment in [1, 16, 64, 4096] {
        balanced("heap buffers", || heap_pool(alignment));
    }
    balanced("heap buffers on other threads", other_threads);
    balanced("heap regions", regions);
    balanced("shared handles", shared_handles);
    LEDGER.keep(true);
    balanced("heap buffers, blocks kept", || heap_pool(64));
}
