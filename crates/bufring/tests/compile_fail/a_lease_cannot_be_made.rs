use bufring::RingLease;

fn made() -> RingLease {
    RingLease { tagged: panic!() }
}

fn main() {
    made();
}
