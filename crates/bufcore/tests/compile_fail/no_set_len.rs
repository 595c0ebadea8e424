use bufcore::HeapPool;

fn main() {
    let mut buf = HeapPool::new().acquire(1).unwrap();
    buf.set_len(1);
}
