//! Records of different sizes out of a stream: each is parsed in place, also where it lies across
//! the end of the ring.
//!
//! ```text
//! cargo run -p bufmirror --example records
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::io::Read;

use bufmirror::MirrorRing;

/// A stream in pieces of sizes that have nothing to do with its records, as a socket gives them.
struct Socket {
    stream: Vec<u8>,
    at: usize,
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = &self.stream[self.at..];
        let n = (self.at % 1371 + 100).min(left.len()).min(into.len());
        into[..n].copy_from_slice(&left[..n]);
        self.at += n;
        Ok(n)
    }
}

/// A record is its length in two bytes, and then its bytes.
fn record(number: usize) -> Vec<u8> {
    let body = vec![number as u8; number * 37 % 900];
    let mut record = (body.len() as u16).to_be_bytes().to_vec();
    record.extend(body);
    record
}

/// The first record of `bytes`, if all of it is there.
fn first(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(..u16::from_be_bytes(*length).into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut socket = Socket { stream: (0..10_000).flat_map(record).collect(), at: 0 };
    let mut ring = MirrorRing::new(4096)?;
    let (mut records, mut bytes, mut largest) = (0, 0, 0);
    while ring.read_from(&mut socket)? > 0 {
        while let Some(body) = first(ring.peek()) {
            assert!(body.iter().all(|&byte| byte == records as u8));
            let used = 2 + body.len();
            (records, bytes, largest) = (records + 1, bytes + used, largest.max(body.len()));
            ring.consume(used);
        }
    }
    assert!(ring.is_empty());
    println!("{records} records of up to {largest} bytes, {bytes} bytes in all, parsed in place");
    println!(
        "through a ring of {} bytes, {:.0} times around",
        ring.capacity(),
        bytes as f64 / ring.capacity() as f64
    );
    Ok(())
}
