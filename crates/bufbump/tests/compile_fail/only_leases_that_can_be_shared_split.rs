use bufbump::bufcore::HeapPool;

fn main() {
    let mut buf = HeapPool::new().acquire(10).unwrap();
    let _part = buf.split_off(5);
}
