use bufcore::ByteSink;
use bufring::RingPool;

fn main() {
    let mut ring = RingPool::new(100).unwrap();
    let mut growing = ring.extendable(10).unwrap();
    let room = growing.reserve(5).unwrap();
    let fixed = growing.finish();
    room[0] = 1;
    drop(fixed);
}
