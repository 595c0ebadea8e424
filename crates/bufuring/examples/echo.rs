//! Answers many connections as their bytes arrive, with one group of buffers for all of them.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::task::Poll;

    use bufuring::bufcore::{MapOptions, NoFallback};
    use bufuring::{Arena, Descriptor, Driver, Mode};

    const CONNECTIONS: usize = 100;

    let arena = Arena::mapped(1 << 20, MapOptions::new())?;
    let pool = bufslot::Builder::new().build_in(arena.part(256 << 10, 64)?, NoFallback)?;
    let driver = Driver::new(&arena);
    println!("{}", driver.mode());
    if matches!(driver.mode(), Mode::Blocking { .. }) {
        println!("without io_uring each read waits for its own connection");
        return Ok(());
    }
    // 8 buffers serve all connections.
    let mut group = driver.group(pool, 8, 4096);

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut clients = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(TcpStream::connect(listener.local_addr()?)?);
        let stream = Descriptor::new(listener.accept()?.0);
        connections.push((driver.receive(&stream, &group), stream));
    }
    // The last one says something first. Connection 50 stays silent.
    for (number, client) in clients.iter_mut().enumerate().rev().filter(|(number, _)| *number != 50) {
        write!(client, "hello from {number}")?;
    }
    for answered in 0..CONNECTIONS - 1 {
        let (at, bytes) = driver.block_on(poll_fn(|context| {
            for (at, (receiver, _)) in connections.iter_mut().enumerate() {
                if let Poll::Ready(found) = receiver.poll_next(context, &driver, &mut group) {
                    return Poll::Ready((at, found));
                }
            }
            Poll::Pending
        }));
        let bytes = bytes.ok_or("a client has gone")??;
        if answered == 0 {
            println!("connection {at} is answered first");
        }
        // The buffer that the kernel filled is the one that is sent.
        driver.wait(&mut driver.write(&connections[at].1, bytes))?.result?;
    }
    drop(connections);
    driver.reap();
    let mut answer = [0; 64];
    for (number, client) in clients.iter_mut().enumerate().filter(|(number, _)| *number != 50) {
        let count = client.read(&mut answer)?;
        assert_eq!(answer[..count], *format!("hello from {number}").as_bytes());
    }
    println!("{} connections were answered with {} buffers lent", CONNECTIONS - 1, group.provided());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("io_uring is Linux' own");
}
