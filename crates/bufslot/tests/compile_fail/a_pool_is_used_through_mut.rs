use std::sync::Arc;

use bufslot::{BufferPool, FrameBuffer, SlotPool};

fn served(_: impl BufferPool) {}
fn framed(_: impl FrameBuffer) {}

fn main() {
    let pool = SlotPool::new(1024, 4).unwrap();
    served(&pool);
    framed(&pool);
    served(Arc::new(pool));
}
