use bufring::{LocalAcquire, LocalRing};

thread_local! {
    static RING: LocalRing = const { LocalRing::new(1000) };
}

fn main() {
    let growing = RING.with_ring(|ring| ring.extendable(10).unwrap());
    drop(growing);
}
