use bufring::RingLease;

fn made() -> RingLease {
    RingLease { handle: unreachable!() }
}

fn main() {
    made();
}
