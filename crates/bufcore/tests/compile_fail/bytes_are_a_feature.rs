use bufcore::HeapPool;

fn main() {
    let buf = HeapPool::new().acquire(1).unwrap();
    buf.into_bytes();
    let view = HeapPool::new().acquire(1).unwrap().freeze();
    view.into_bytes();
}
