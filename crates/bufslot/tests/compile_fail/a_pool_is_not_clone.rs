use bufslot::SlotPool;

fn main() {
    fn owned<T: Clone>(_: T) {}
    owned(SlotPool::new(100, 1).unwrap());
}
