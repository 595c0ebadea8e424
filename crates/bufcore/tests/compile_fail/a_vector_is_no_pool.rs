use bufcore::{BufferPool, FrameBuffer};

fn served(_: impl BufferPool) {}
fn framed(_: impl FrameBuffer) {}

fn main() {
    served(Vec::<u8>::new());
    framed(Vec::<u8>::new());
}
