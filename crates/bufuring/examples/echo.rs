//! Answers many connections, with one group of buffers for what arrives at any of them.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use bufuring::bufcore::{MapOptions, Reject};
    use bufuring::{Arena, Descriptor, Driver};

    const CONNECTIONS: usize = 100;

    let arena = Arena::mapped(1 << 20, MapOptions::new())?;
    let pool = bufslot::Builder::new().build_in(arena.part(256 << 10, 64)?, Reject)?;
    let driver = Driver::new(&arena);
    // 8 buffers serve all connections.
    let mut group = driver.group(pool, 8, 4096);
    println!("{}", driver.mode());

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut clients = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(TcpStream::connect(listener.local_addr()?)?);
        let stream = Descriptor::new(listener.accept()?.0);
        connections.push((driver.receive(&stream, &group), stream));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        write!(client, "hello from {number}")?;
    }
    for (receiver, stream) in &mut connections {
        let Some(bytes) = receiver.next(&driver, &mut group) else { continue };
        // The buffer that the kernel filled is the one that is sent.
        driver.wait(driver.write(stream, bytes?))?.result?;
    }
    drop(connections);
    driver.reap();
    let mut answer = [0; 64];
    for (number, client) in clients.iter_mut().enumerate() {
        let count = client.read(&mut answer)?;
        assert_eq!(answer[..count], *format!("hello from {number}").as_bytes());
    }
    println!("{CONNECTIONS} connections were answered with {} buffers lent", group.provided());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("io_uring is Linux' own");
}
