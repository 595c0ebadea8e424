use bufcore::HeapPool;

fn main() {
    let mut buf = HeapPool::new().acquire(1).unwrap();
    let spare = buf.spare_mut();
    drop(buf);
    spare[0] = 1;
}
