use bufcore::HeapPool;

fn main() {
    let mut view = HeapPool::new().acquire(1).unwrap().freeze();
    view[0] = 1;
}
