use bufshard::ShardPool;

fn main() {
    let mut buf = ShardPool::new().unwrap().acquire(10).unwrap();
    let spare = buf.spare_mut();
    let back = buf.split_off(5);
    spare[0] = back.len() as u8;
}
