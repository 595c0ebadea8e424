use bufring::RingPool;

fn main() {
    let mut ring = RingPool::new(100).unwrap();
    let growing = ring.extendable(10).unwrap();
    let _other = ring.acquire(1);
    drop(growing);
}
