use bufcore::HeapPool;

fn main() {
    let mut buf = HeapPool::new().acquire(1).unwrap();
    buf.len = 1;
    buf.capacity = 2;
    let _ = buf.ptr;
}
