use bufring::RingPool;

fn main() {
    fn shared<T: Sync>(_: &T) {}
    shared(&RingPool::new(100).unwrap());
}
