use core::sync::atomic::Ordering;

use bufcore::{HeapPool, Lease};

fn main() {
    let buf = HeapPool::new().acquire(1).unwrap();
    buf.lease().views().unwrap().store(1, Ordering::Relaxed);
}
