#![allow(unreachable_code)]
use bufbump::BumpLease;

fn main() {
    // Of no type, so that nothing but the field is wrong here.
    let _made = BumpLease { tagged: unreachable!() };
}
