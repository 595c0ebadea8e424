//! A ring between two processes: the parent writes 256 MiB, the child adds it up; then the child is
//! killed, and the parent notices.
//!
//! The child gets the ring as its standard input.
//!
//! ```text
//! cargo run --release -p bufmirror --example two_processes
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") { linux::child() } else { linux::parent() }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    println!("rings between processes are for Linux on 64-bit processors");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod linux {
    use std::error::Error;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use bufmirror::SharedRing;

    /// What the parent sends.
    const BYTES: u64 = 256 << 20;
    /// In pieces of this number of bytes.
    const PIECE_BYTES: usize = 16 << 10;

    fn sum(bytes: &[u8]) -> u64 {
        bytes.iter().map(|&byte| u64::from(byte)).sum()
    }

    fn start(ring: &SharedRing) -> Result<Child, Box<dyn Error>> {
        let file = ring.as_fd().try_clone_to_owned()?;
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command.arg("child").stdin(Stdio::from(file)).stdout(Stdio::piped()).spawn()?)
    }

    /// Reads to the end of the ring, and says what the sum was.
    pub(super) fn child() -> Result<(), Box<dyn Error>> {
        let ring = SharedRing::open(std::io::stdin().as_fd().try_clone_to_owned()?)?;
        let mut consumer = ring.consumer()?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut total = 0;
        loop {
            match consumer.read(&mut piece)? {
                0 => break,
                n => total += sum(&piece[..n]),
            }
        }
        println!("{total}");
        Ok(())
    }

    pub(super) fn parent() -> Result<(), Box<dyn Error>> {
        let ring = SharedRing::create(256 << 10)?;
        let mut producer = ring.producer()?;
        let child = start(&ring)?;
        let piece: Vec<u8> = (0..PIECE_BYTES).map(|at| (at * 7) as u8).collect();
        let started = Instant::now();
        for _ in 0..BYTES / PIECE_BYTES as u64 {
            producer.write_all(&piece)?;
        }
        drop(producer); // the child reads what is left, and then an end
        let said = child.wait_with_output()?.stdout;
        let took = started.elapsed();
        let expected = sum(&piece) * (BYTES / PIECE_BYTES as u64);
        assert_eq!(String::from_utf8(said)?.trim(), expected.to_string());
        println!(
            "256 MiB to another process in {took:.1?}: {:.2} GB/s",
            BYTES as f64 / 1e9 / took.as_secs_f64()
        );

        // A child that is killed reads no more. A writer gets an error, rather than waiting for
        // ever.
        let ring = SharedRing::create(256 << 10)?;
        let mut producer = ring.producer()?;
        let mut child = start(&ring)?;
        for _ in 0..1000 {
            producer.write_all(&piece)?;
        }
        child.kill()?;
        let killed = Instant::now();
        let error = loop {
            if let Err(error) = producer.write_all(&piece) {
                break error;
            }
        };
        println!("{:.0?} after the child was killed: {error}", killed.elapsed());
        child.wait()?;
        Ok(())
    }
}
