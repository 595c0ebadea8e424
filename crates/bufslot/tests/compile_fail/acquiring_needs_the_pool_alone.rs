use bufslot::SlotPool;

fn main() {
    let pool = SlotPool::new(100, 1).unwrap();
    let shared = &pool;
    let _ = shared.acquire(1);
}
