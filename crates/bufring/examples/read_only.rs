//! One message, written here, read on many threads at once: views are counted in the ring itself.
//!
//! ```text
//! cargo run -p bufring --example read_only
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::error::Error;
use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;

use bufring::RingPool;

fn main() -> Result<(), Box<dyn Error>> {
    let mut ring = RingPool::new(1024)?; // bytes
    let (sender, receiver) = channel();
    let mut buffer = ring.acquire(64)?;
    buffer.write_all(b"message to another thread")?;

    let reader = thread::spawn(move || {
        let Ok(buffer) = receiver.recv() else { return };
        let buffer: bufcore::Buf<bufring::RingLease> = buffer;
        let view = buffer.freeze();
        let threads: Vec<_> = (0..16)
            .map(|number| {
                let view = view.clone();
                thread::spawn(move || println!("{number}. {}", String::from_utf8_lossy(&view)))
            })
            .collect();
        for thread in threads {
            thread.join().expect("a reader ends well");
        }
        // The only one again, it may be written to.
        let mut buffer = view.try_into_mut().expect("the readers are gone");
        buffer.clear();
    });
    sender.send(buffer)?;
    reader.join().expect("it ends well");

    // The last of them gave the memory back.
    assert!(ring.is_idle());
    Ok(())
}
