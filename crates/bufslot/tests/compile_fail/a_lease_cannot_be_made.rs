use bufcore::HeapLease;
use bufslot::SlotLease;

fn made() -> SlotLease<HeapLease> {
    SlotLease { place: unreachable!() }
}

fn main() {
    made();
}
