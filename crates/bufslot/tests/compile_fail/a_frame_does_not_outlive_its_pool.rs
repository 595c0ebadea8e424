use bufslot::SlotPool;

fn main() {
    let mut pool = SlotPool::new(100, 1).unwrap();
    let room = pool.writable(10).unwrap();
    drop(pool);
    room[0] = 1;
}
