//! What the heap pool takes beside its buffers.

#[cfg(target_os = "linux")]
use std::time::Duration;

use bufcore::HeapPool;
#[cfg(target_os = "linux")]
use testkit::process;

/// An alignment costs no memory that is written: a small buffer is small at an alignment of 1 MiB
/// as well.
#[cfg(target_os = "linux")]
#[test]
fn alignment_is_not_filled() {
    process::alone(module_path!(), "alignment_is_not_filled", Duration::from_secs(60), || {
        process::steady_allocator();
        let mut pool = HeapPool::new().with_alignment(1 << 20).expect("a power of two");
        let before = process::resident_bytes();
        let bufs: Vec<_> = (0..100).map(|_| pool.acquire(100).expect("the heap has room")).collect();
        let taken = process::resident_bytes().saturating_sub(before);
        assert!(bufs.iter().all(|buf| buf.as_ptr().addr().is_multiple_of(1 << 20)));
        assert!(taken < 20 << 20, "{taken} bytes are resident for 100 buffers of 100 bytes");
    });
}

/// Buffers of every small size at every alignment: aligned, zeroed, disjoint from what stands
/// behind them.
#[test]
fn what_stands_behind_the_bytes() {
    for shift in 0..14 {
        let mut pool = HeapPool::new().with_alignment(1 << shift).expect("a power of two");
        let bufs: Vec<_> = (0..100)
            .map(|bytes| {
                let mut buf = pool.acquire_zeroed(bytes).expect("the heap has room");
                assert!(buf.as_ptr().addr().is_multiple_of(1 << shift));
                assert!(buf.iter().all(|&byte| byte == 0));
                buf.fill(0xFF);
                buf
            })
            .collect();
        // The count of views is in the header, which the bytes did not reach.
        for (bytes, buf) in bufs.into_iter().enumerate() {
            let view = buf.freeze();
            let other = view.clone();
            assert!(other.iter().all(|&byte| byte == 0xFF) && other.len() == bytes);
            drop(view);
            assert!(other.is_unique());
        }
    }
}
