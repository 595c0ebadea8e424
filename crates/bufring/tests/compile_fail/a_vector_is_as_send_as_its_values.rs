use std::cell::Cell;
use std::rc::Rc;

use bufring::{RingPool, RingVec};

fn main() {
    fn sent<T: Send>(_: T) {}
    fn shared<T: Sync>(_: &T) {}
    let mut ring = RingPool::new(1000).unwrap();
    let cells: RingVec<Cell<u8>> = ring.acquire_vec(1).unwrap();
    shared(&cells);
    sent(cells);
    let counted: RingVec<Rc<u8>> = ring.acquire_vec(1).unwrap();
    sent(counted);
}
