use bufslot::{Buf, BufferPool, Frozen};

struct Connection<P: BufferPool> {
    pool: P,
    incoming: Buf<P>,
    outgoing: Frozen<P>,
}

fn main() {}
