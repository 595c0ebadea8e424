use bufring::RingLease;

fn made() -> RingLease {
    RingLease { handle: panic!() }
}

fn main() {
    made();
}
