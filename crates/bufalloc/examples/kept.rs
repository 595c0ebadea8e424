//! What a program keeps, whatever its allocator: `cargo run --release --example kept`.

#![allow(clippy::std_instead_of_core, reason = "it has an operating system")]

use std::time::Duration;

use bytes::BytesMut;

#[global_allocator]
static ALLOC: bufalloc::Large = bufalloc::Large::new();

const CONNECTIONS: usize = 300;
const MESSAGE_BYTES: usize = 1 << 20;
/// Idle pages are given back before.
const SILENCE: Duration = Duration::from_secs(2);

/// Has the buffer of each connection receive a message, which is dropped. Prints what remains after `then`.
fn print(what: &str, then: fn(&mut BytesMut)) {
    let mut buffers: Vec<BytesMut> = (0..CONNECTIONS).map(|_| BytesMut::new()).collect();
    for buffer in &mut buffers {
        buffer.resize(MESSAGE_BYTES, 1);
        drop(buffer.split().freeze());
        then(buffer);
    }
    std::thread::sleep(SILENCE);
    let capacity: usize = buffers.iter().map(BytesMut::capacity).sum();
    let [capacity, resident] =
        [capacity, bufalloc::stats().resident_bytes].map(|bytes| bytes as f64 / 1048576.0);
    println!("{what:32} capacity {capacity:5.1} MiB, resident {resident:5.1} MiB");
}

fn main() {
    println!("{CONNECTIONS} connections, a message of 1 MiB each");
    print("kept", |_| {});
    print("cleared", BytesMut::clear);
    print("a small message later", |buffer| {
        buffer.extend_from_slice(&[1; 100]);
        drop(buffer.split().freeze());
    });
    print("replaced where it is empty", |buffer| {
        if buffer.is_empty() {
            *buffer = BytesMut::new();
        }
    });
}
