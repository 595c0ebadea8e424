//! Typed values in a ring, side by side with bytes.
//!
//! ```text
//! cargo run -p bufring --example typed
//! ```
#![allow(clippy::std_instead_of_alloc, reason = "a program with an operating system")]
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::error::Error;

use bufring::{PushError, RingPool};

#[derive(Debug, PartialEq)]
struct Order {
    amount: usize,
    id: u128,
    buyer: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ring = RingPool::new(1024)?; // bytes
    let bytes = ring.acquire(64)?;

    let mut orders = ring.acquire_vec(2)?;
    orders.push(Order { amount: 42, id: 43, buyer: "Ada".to_owned() })?;
    orders.try_insert(0, Order { amount: 1, id: 2, buyer: "Grace".to_owned() })?;
    println!("{orders:#?}");

    // It cannot reallocate: what there is no room for comes back.
    let third = Order { amount: 7, id: 8, buyer: "Barbara".to_owned() };
    let Err(PushError(third)) = orders.push(third) else { unreachable!("two is all") };
    println!("no room for {}", third.buyer);

    let last = orders.pop().expect("two orders");
    assert_eq!((last.amount, last.id, orders.len(), bytes.capacity()), (42, 43, 1, 64));
    // The vector drops its values, and gives its memory back.
    drop(orders);
    drop(bytes);
    assert!(ring.is_idle());
    Ok(())
}
