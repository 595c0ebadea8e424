//! A log whose lines are taken out as they come, and whose latest ones are kept: the oldest go when
//! there is no room.
//!
//! ```text
//! cargo run -p bufmirror --example lines
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::io::{BufRead, Write};

use bufmirror::MirrorRing;

/// Appends a line; drops whole lines at the front until it fits.
fn log(ring: &mut MirrorRing, line: &str) -> std::io::Result<usize> {
    let mut dropped = 0;
    while ring.spare_capacity() < line.len() + 1 {
        let oldest = ring.peek().iter().position(|&byte| byte == b'\n').map_or(ring.len(), |end| end + 1);
        ring.consume(oldest);
        dropped += 1;
    }
    writeln!(ring, "{line}")?;
    Ok(dropped)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut ring = MirrorRing::new(4096)?;
    let mut dropped = 0;
    for number in 0..100_000 {
        dropped += log(&mut ring, &format!("{number:6} {}", "=".repeat(number % 50)))?;
    }
    // All that is kept, as one text, without a copy.
    let kept = std::str::from_utf8(ring.peek())?;
    let (first, last) = (kept.lines().next().unwrap_or(""), kept.lines().last().unwrap_or(""));
    println!(
        "{dropped} lines dropped, {} kept, in {} of {} bytes",
        kept.lines().count(),
        ring.len(),
        ring.capacity()
    );
    println!("from {first}\n  to {last}");
    let mut line = String::new();
    ring.read_line(&mut line)?;
    println!("the oldest one taken out: {}", line.trim_end());
    Ok(())
}
