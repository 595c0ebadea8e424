use bufcore::HeapPool;

fn main() {
    let mut buf = HeapPool::new().acquire(1).unwrap();
    let _view = buf.freeze();
    buf.push(1).unwrap();
}
