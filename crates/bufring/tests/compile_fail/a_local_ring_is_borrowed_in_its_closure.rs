use bufring::{LocalAcquire, LocalRing, Writer};

thread_local! {
    static RING: LocalRing = const { LocalRing::new(1000) };
}

fn main() {
    let growing = RING.with_ring(|ring| Writer::new(ring));
    drop(growing);
}
