use bufshard::ShardPool;

fn main() {
    let mut buf = ShardPool::new().unwrap().acquire(10).unwrap();
    let part = buf.split_off(5);
    let _two = (part.clone(), part);
}
