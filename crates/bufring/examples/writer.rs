//! A buffer that grows while it is written, and becomes a fixed one.
//!
//! ```text
//! cargo run -p bufring --example writer
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::error::Error;
use std::io::Write;

use bufring::{RingPool, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut ring = RingPool::new(1024)?; // bytes
    let mut writer = Writer::with_capacity(&mut ring, 64);
    let message = b"hello world, this message is longer than the allocated capacity but will grow as needed.";
    for word in message.split_inclusive(|&byte| byte == b' ') {
        writer.write_all(word)?;
    }
    println!("{writer:?}");

    // The memory that it could have grown into goes back to the ring; the bytes stay where they
    // are.
    let fixed = writer.finish();
    println!("{} bytes: {:?}", fixed.len(), String::from_utf8_lossy(&fixed));
    assert_eq!(&fixed[..], message);
    Ok(())
}
