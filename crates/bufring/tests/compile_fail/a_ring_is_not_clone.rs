use bufring::RingPool;

fn main() {
    fn owned<T: Clone>(_: T) {}
    owned(RingPool::new(100).unwrap());
}
