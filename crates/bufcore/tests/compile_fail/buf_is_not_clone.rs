use bufcore::HeapPool;

fn main() {
    let buf = HeapPool::new().acquire(1).unwrap();
    fn owned<T: Clone>(_: T) {}
    owned(buf);
}
