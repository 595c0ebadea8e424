use bufslot::SlotPool;

fn main() {
    let mut pool = SlotPool::new(100, 1).unwrap();
    let room = pool.writable(10).unwrap();
    let frame = pool.detach().unwrap();
    room[0] = 1;
    drop(frame);
}
