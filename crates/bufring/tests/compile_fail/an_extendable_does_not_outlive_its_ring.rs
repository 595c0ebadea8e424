use bufring::RingAllocator;

fn main() {
    let mut ring = RingAllocator::new(100).unwrap();
    let growing = ring.extendable(10).unwrap();
    drop(ring);
    drop(growing);
}
