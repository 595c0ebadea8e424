use bufcore::{Buf, BufferPool, Lease, SplitLease};

fn halves(_: Buf<impl SplitLease>) {}

fn one_of<P: BufferPool>(pool: &mut P) {
    halves(pool.acquire(10).unwrap());
}

fn one<L: Lease>(mut buf: Buf<L>) -> Buf<L> {
    buf.split_off(5)
}

fn main() {}
