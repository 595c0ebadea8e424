use bufcore::{Buf, NoLease};

fn made(lease: NoLease) -> Buf<NoLease> {
    Buf::from_raw_parts(core::ptr::NonNull::dangling(), 8, lease)
}

fn main() {
    let _ = made;
}
