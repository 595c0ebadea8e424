use bufring::RingPool;

fn main() {
    let mut ring = RingPool::new(100).unwrap();
    let growing = ring.extendable(10).unwrap();
    drop(ring);
    drop(growing);
}
