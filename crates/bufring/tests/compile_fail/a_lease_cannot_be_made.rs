use bufring::RingLease;

fn made() -> RingLease {
    RingLease { handle: None }
}

fn main() {
    made();
}
