use bufcore::BufferPool;

fn served(_: impl BufferPool) {}

fn whole<P>(pool: P) {
    served(pool);
}

fn main() {}
