use bufring::RingAllocator;

fn main() {
    fn shared<T: Sync>(_: &T) {}
    shared(&RingAllocator::new(100).unwrap());
}
