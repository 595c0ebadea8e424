use bufring::RingLease;

fn made() -> RingLease {
    RingLease { handle: todo!() }
}

fn main() {
    made();
}
