//! A ring for each thread, without handing it around.
//!
//! ```text
//! cargo run -p bufring --example thread_local
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::error::Error;
use std::io::Write;
use std::thread;

use bufring::{LocalAcquire, LocalRing, RingBuf, Writer};

thread_local! {
    /// Built in each thread at its first request.
    static RING: LocalRing = const { LocalRing::new(1024) };
}

/// Somewhere deep in the program.
fn greeting(name: &str) -> Result<RingBuf, Box<dyn Error + Send + Sync>> {
    // A borrow of the ring is used in a closure; the finished buffer may leave it.
    let greeting = RING.with_ring(|ring| -> Result<_, Box<dyn Error + Send + Sync>> {
        let mut writer = Writer::new(ring);
        write!(writer, "hello {name}!")?;
        Ok(writer.finish())
    })??;
    Ok(greeting)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut fixed = RING.acquire(64)?;
    fixed.write_all(b"hello world!")?;
    println!("here:  {}", String::from_utf8_lossy(&fixed));

    // The buffer outlives the thread that made it, and its ring.
    let there = thread::spawn(|| greeting("from another thread")).join().expect("the thread ends well")?;
    println!("there: {}", String::from_utf8_lossy(&there));
    assert_eq!((&fixed[..], &there[..]), (&b"hello world!"[..], &b"hello from another thread!"[..]));
    Ok(())
}
