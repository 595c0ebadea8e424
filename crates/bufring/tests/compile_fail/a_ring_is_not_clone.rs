use bufring::RingAllocator;

fn main() {
    fn owned<T: Clone>(_: T) {}
    owned(RingAllocator::new(100).unwrap());
}
