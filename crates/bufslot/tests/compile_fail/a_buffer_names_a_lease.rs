use bufslot::{Buf, Frozen, SlotPool};

struct Connection {
    incoming: Buf<SlotPool>,
    outgoing: Frozen<SlotPool>,
}

fn main() {}
