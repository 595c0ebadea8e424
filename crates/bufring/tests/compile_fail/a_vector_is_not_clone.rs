use bufring::RingPool;

fn main() {
    fn owned<T: Clone>(_: T) {}
    let mut ring = RingPool::new(1000).unwrap();
    owned(ring.acquire_vec::<u64>(2).unwrap());
}
