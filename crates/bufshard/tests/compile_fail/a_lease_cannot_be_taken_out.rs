use bufshard::ShardPool;

fn main() {
    let buf = ShardPool::new().unwrap().acquire(1).unwrap();
    let _taken = *buf.lease();
}
