use bufslot::SlotPool;

fn main() {
    let buf = SlotPool::new(100, 1).unwrap().acquire(1).unwrap();
    let _taken = *buf.lease();
}
