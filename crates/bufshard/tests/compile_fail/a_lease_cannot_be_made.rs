#![allow(unreachable_code)]
use bufshard::ShardLease;

fn main() {
    // Of no type, so that nothing but the field is wrong here.
    let _made = ShardLease { tagged: unreachable!() };
}
