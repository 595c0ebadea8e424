use std::sync::Arc;

use bufslot::{BufferPool, SlotPool};

fn served(_: impl BufferPool) {}

fn main() {
    let pool = SlotPool::new(1024, 4).unwrap();
    served(&pool);
    served(Arc::new(pool));
}
