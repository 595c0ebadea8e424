//! A fixed buffer: as large as it was asked for, filled by writing.
//!
//! ```text
//! cargo run -p bufring --example fixed
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::error::Error;
use std::io::Write;

use bufring::RingPool;

fn main() -> Result<(), Box<dyn Error>> {
    let mut ring = RingPool::new(1024)?; // bytes
    let mut buffer = ring.acquire(256)?;
    let size = buffer.write(b"hello world, this message is relatively short")?;
    println!("{size} bytes: {:?}", String::from_utf8_lossy(&buffer));
    assert_eq!(buffer.len(), size);
    assert_eq!(buffer.spare_capacity(), 256 - size);

    // A ring that is full says so, and continues when something comes back.
    let refused = ring.acquire(1000);
    println!("a second one:  {}", refused.as_ref().expect_err("256 bytes are out"));
    drop(buffer);
    assert!(ring.acquire(1000).is_ok());
    Ok(())
}
