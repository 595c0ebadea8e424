use bufcore::{BufferPool, FrameBuffer};

fn served(_: impl BufferPool) {}
fn framed(_: impl FrameBuffer) {}

fn whole<P>(pool: P) {
    served(pool);
}

fn frames<P>(pool: P) {
    framed(pool);
}

fn main() {}
