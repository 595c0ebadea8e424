//! A server that answers `GET /metrics` with the numbers of its pools, and is scraped by itself
//! once.
//!
//! `cargo run -p bufworks --example scrape --features prometheus,stats`. It needs the standard
//! library alone. A line in Prometheus's configuration makes it a target for a real one.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program with an operating system"
)]

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bufworks::monitor::{Monitor, PROMETHEUS_CONTENT_TYPE};
use bufworks::shard::ShardPool;
use bufworks::slot::SlotPool;
use bufworks::{Keeper, NoFallback};

/// The longest line of a request that is read.
const LINE_BYTES: u64 = 8 << 10;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    // The pools of a program: one that threads share, and one behind a lock that refuses at its
    // end.
    let requests = ShardPool::builder().max_bytes(64 << 20).build()?;
    let frames =
        Arc::new(Mutex::new(SlotPool::builder().capacity(64 << 10).slots(8).build_with(NoFallback)?));
    let _keeper = Keeper::new().watch(&requests).watch(&frames).spawn()?;

    // All that is to be done for the numbers.
    let monitor = Monitor::new();
    monitor.watch("requests", &requests);
    monitor.watch("frames", &frames);

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = {
        let (monitor, requests) = (monitor.clone(), requests.clone());
        // This one ends after two connections; a real one continues.
        thread::spawn(move || {
            for stream in listener.incoming().take(2) {
                if let Err(error) = stream.and_then(|stream| answer(stream, &requests, &monitor)) {
                    eprintln!("a connection failed: {error}");
                }
            }
        })
    };

    // Some traffic: two frames are out, and a third is too much.
    let frame = || frames.lock().unwrap_or_else(PoisonError::into_inner).acquire(30_000);
    let held = (frame()?, frame()?);
    if let Err(refused) = frame() {
        println!("a frame was refused: {refused}\n");
    }
    get(&address.to_string(), "/")?;

    let scraped = get(&address.to_string(), "/metrics")?;
    println!("{scraped}");
    server.join().map_err(|_| "the server panicked")?;
    drop(held);
    let expected = "memory_pool_exhausted_requests_total{pool=\"frames\"} 1\n";
    if cfg!(feature = "stats") && !scraped.contains(expected) {
        return Err("the refusal is missing".into());
    }
    Ok(())
}

/// Answers one request, whose head is read into a buffer of the pool.
fn answer(mut stream: TcpStream, pool: &ShardPool, monitor: &Monitor) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = pool.acquire(LINE_BYTES as usize).map_err(io::Error::other)?;
    let mut reader = BufReader::new(&stream);
    let mut line = Vec::new();
    reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)?;
    head.extend_from_slice(&line).map_err(io::Error::other)?;
    // The fields of the head, up to the empty line: they do not matter here.
    while line.len() > 2 {
        line.clear();
        reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)?;
    }
    let (status, kind, body) = if head.starts_with(b"GET /metrics ") {
        ("200 OK", PROMETHEUS_CONTENT_TYPE, monitor.prometheus())
    } else {
        ("404 Not Found", "text/plain; charset=utf-8", String::from("try /metrics\n"))
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Sends a request, and returns the body of the answer.
fn get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::Error::other("the answer has no body"))
}
