//! A log pipeline: one thread reads, another one looks at each line where it is, with no vector for
//! a line and no copy. It counts the answers of a web server's log by status, and their bytes.
//!
//! ```text
//! cargo run --release -p bufmirror --example pipeline                  # a log that it makes up
//! cargo run --release -p bufmirror --example pipeline -- access.log
//! zcat access.log.gz | cargo run --release -p bufmirror --example pipeline -- -
//! ```
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program with an operating system"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::thread;

use bufmirror::{Consumer, Producer, WaitError, channel};

/// Bytes between the two threads. A longer line ends the program with an error.
const CAPACITY: usize = 256 << 10;

/// Answers and their bytes, by status.
type Totals = BTreeMap<u16, (u64, u64)>;

/// Adds one line of nginx's or Apache's usual form: the status and the bytes follow the request,
/// which is in quotes. Returns `None` for a line of another form.
fn add(totals: &mut Totals, line: &[u8]) -> Option<()> {
    let request = line.iter().position(|&byte| byte == b'"')? + 1;
    let after = request + line[request..].iter().position(|&byte| byte == b'"')? + 1;
    let mut fields = std::str::from_utf8(&line[after..]).ok()?.split_ascii_whitespace();
    let status = fields.next()?.parse().ok()?;
    let bytes = fields.next()?.parse().unwrap_or(0); // `-` where nothing was sent
    let (answers, sum): &mut (u64, u64) = totals.entry(status).or_default();
    *answers += 1;
    *sum += bytes;
    Some(())
}

/// Reads all of the source straight into the ring.
fn read(mut producer: Producer, mut source: impl Read) -> io::Result<()> {
    while producer.read_from(&mut source)? > 0 {}
    Ok(())
}

/// Looks at each line. Returns the totals, and how many lines had another form.
fn look(mut consumer: Consumer) -> Result<(Totals, u64), WaitError> {
    let (mut totals, mut others) = (Totals::new(), 0);
    let mut take = |line: &[u8]| {
        if add(&mut totals, line).is_none() {
            others += 1;
        }
    };
    loop {
        match consumer.wait_piece(b'\n') {
            Ok(()) => {}
            Err(WaitError::Closed { .. }) => break,
            Err(error) => return Err(error),
        }
        // The lines go from the ring when the iteration is over.
        for line in &mut consumer.pieces(b'\n') {
            take(line);
        }
    }
    if !consumer.is_empty() {
        take(consumer.peek()); // a last line without its end
    }
    Ok((totals, others))
}

/// Makes a log of 100 000 lines, two of which are of another form.
fn made_up() -> String {
    let line = |number: u32| {
        let (status, bytes) = if number.is_multiple_of(7) { (404, 153) } else { (200, number) };
        let time = format!("26/Nov/2026:06:{:02}:{:02} +0000", number / 60 % 60, number % 60);
        format!("192.0.2.7 - - [{time}] \"GET /{number} HTTP/1.1\" {status} {bytes} \"-\" \"-\"\n")
    };
    (0..99_998).map(line).chain(["\n".into(), "cut off".into()]).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let source: Box<dyn Read + Send> = match std::env::args_os().nth(1) {
        Some(path) if path == "-" => Box::new(io::stdin()),
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(io::Cursor::new(made_up())),
    };
    let (producer, consumer) = channel(CAPACITY)?;
    let reader = thread::spawn(move || read(producer, source));
    let looked = look(consumer);
    let read = reader.join().map_err(|_panic| "the reader panicked")?;
    // Where a line is too long, the reader finds that nobody takes its bytes.
    let (totals, others) = looked?;
    read?;
    for (status, (answers, bytes)) in &totals {
        println!("{status}: {answers} answers, {bytes} bytes");
    }
    if others > 0 {
        println!("{others} lines of another form");
    }
    Ok(())
}
