use bufring::RingPool;

fn main() {
    let mut ring = RingPool::new(1000).unwrap();
    let mut numbers = ring.acquire_vec::<usize>(2).unwrap();
    // As it was called in `ringal`: the value, then the index.
    let _ = numbers.insert(7, 0);
}
