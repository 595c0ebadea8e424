//! How the programs are checked: each gets work, and what it answers is compared. The same is asked of what people write today.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::shell;

/// Much longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Lengths of frames and uploads, some larger than what a socket keeps.
const LENGTHS: [usize; 6] = [1, 0, 125, 126, 70_000, 3 << 20];
/// The programs accept no more.
const TOO_LONG: usize = (8 << 20) + 1;

type Check = fn(&Path) -> Result<()>;

/// The check of a program.
pub(super) fn of(name: &str) -> Option<Check> {
    Some(match name {
        "framed" => framed,
        "loader" => loader,
        "relay" => relay,
        "shipper" => shipper,
        "upload" => upload,
        "websocket" => websocket,
        _ => return None,
    })
}

/// A program that is running; it is ended when this is dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        eprintln!("$ {}", shell::show(&command));
        Ok(Self(command.spawn()?))
    }

    /// Starts a program, and returns the address that it prints first.
    fn server(program: &Path, arguments: &[&str]) -> Result<(Self, SocketAddr)> {
        let mut running = Self::start(program, arguments)?;
        let mut line = String::new();
        BufReader::new(running.0.stdout.as_mut().context("it was piped")?).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("it says `{line}`"))?;
        Ok((running, address))
    }

    /// Waits for its end, which has to be a good one; returns what it printed.
    fn output(mut self) -> Result<String> {
        let end = Instant::now() + LIMIT;
        let status = loop {
            match self.0.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > end => bail!("it has not ended"),
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        ensure!(status.success(), "it ended with {status}");
        let mut text = String::new();
        self.0.stdout.as_mut().context("it was piped")?.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    limited(TcpStream::connect(address)?)
}

fn limited(socket: TcpStream) -> Result<TcpStream> {
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_write_timeout(Some(LIMIT))?;
    Ok(socket)
}

/// Where a program is to connect to.
struct Peer(TcpListener);

impl Peer {
    fn new() -> Result<(Self, String)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        Ok((Self(listener), address))
    }

    fn accept(&self) -> Result<TcpStream> {
        self.0.set_nonblocking(true)?;
        let end = Instant::now() + LIMIT;
        loop {
            match self.0.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(false)?;
                    return limited(socket);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            ensure!(Instant::now() < end, "it does not connect");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Some bytes, a few lines among them.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
}

/// Bytes with their length in front.
fn frame(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_be_bytes(), payload].concat()
}

/// Sends bytes through a program, and compares what arrives.
fn passes(mut from: &TcpStream, mut to: &TcpStream, sent: &[u8]) -> Result<()> {
    thread::scope(|scope| {
        let sending = scope.spawn(move || from.write_all(sent));
        let mut arrived = vec![0; sent.len()];
        to.read_exact(&mut arrived)?;
        ensure!(arrived == sent, "other bytes arrive");
        Ok(sending.join().expect("it does not panic")?)
    })
}

/// The other end closes, in whichever way.
fn is_closed(mut socket: &TcpStream) -> Result<()> {
    match socket.read(&mut [0]) {
        Ok(0) => Ok(()),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        other => bail!("a frame that is too long does not end the connection: {other:?}"),
    }
}

fn framed(program: &Path) -> Result<()> {
    let (_running, address) = Running::server(program, &[])?;
    let mut client = connect(address)?;
    for bytes in LENGTHS {
        let payload = payload(bytes);
        client.write_all(&frame(&payload))?;
        let lines = payload.iter().filter(|&&byte| byte == b'\n').count().to_string();
        let mut answer = vec![0; 4 + lines.len()];
        client.read_exact(&mut answer)?;
        ensure!(answer == frame(lines.as_bytes()), "a frame of {bytes} bytes has other lines");
    }
    client.write_all(&(TOO_LONG as u32).to_be_bytes())?;
    is_closed(&client)
}

fn relay(program: &Path) -> Result<()> {
    let (peer, address) = Peer::new()?;
    let (_running, address) = Running::server(program, &[&address])?;
    let mut client = connect(address)?;
    let server = peer.accept()?;
    for bytes in LENGTHS {
        let sent = frame(&payload(bytes));
        passes(&client, &server, &sent)?;
        passes(&server, &client, &sent)?;
    }
    client.write_all(&(TOO_LONG as u32).to_be_bytes())?;
    is_closed(&client)
}

fn websocket(program: &Path) -> Result<()> {
    let (peer, address) = Peer::new()?;
    let (_running, address) = Running::server(program, &[&address])?;
    let mut feed = peer.accept()?;
    let mut clients = [connect(address)?, connect(address)?];
    for client in &mut clients {
        let asks = "GET / HTTP/1.1\r\nHost: it\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        client.write_all(asks.as_bytes())?;
        let head = head(client)?;
        ensure!(head.starts_with("HTTP/1.1 101 "), "a client is answered with {head}");
    }
    for bytes in LENGTHS {
        let payload = payload(bytes);
        let length = match bytes {
            0..126 => vec![bytes as u8],
            126..0x1_0000 => [&[126][..], &(bytes as u16).to_be_bytes()].concat(),
            _ => [&[127][..], &(bytes as u64).to_be_bytes()].concat(),
        };
        // A whole message of bytes.
        let message = [&[0x82][..], &length, &payload].concat();
        let sent = frame(&payload);
        thread::scope(|scope| {
            let sending = scope.spawn(|| feed.write_all(&sent));
            for client in &mut clients {
                let mut arrived = vec![0; message.len()];
                client.read_exact(&mut arrived)?;
                ensure!(arrived == message, "a client receives another message of {bytes} bytes");
            }
            Ok(sending.join().expect("it does not panic")?)
        })?;
    }
    Ok(())
}

/// Reads the head of an answer.
fn head(socket: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8(head)?)
}

fn upload(program: &Path) -> Result<()> {
    let (_running, address) = Running::server(program, &[])?;
    let mut client = connect(address)?;
    let mut post = |bytes: usize, body: &[u8]| {
        client.write_all(
            format!("POST / HTTP/1.1\r\nHost: it\r\nContent-Length: {bytes}\r\n\r\n").as_bytes(),
        )?;
        client.write_all(body)?;
        let head = head(&mut client)?;
        let mut answer = vec![0; if head.starts_with("HTTP/1.1 200 ") { bytes } else { 0 }];
        client.read_exact(&mut answer)?;
        Ok::<_, anyhow::Error>((head, answer))
    };
    for bytes in LENGTHS {
        let body = payload(bytes);
        let (head, answer) = post(bytes, &body)?;
        ensure!(answer == body, "an upload of {bytes} bytes is answered with others, and {head}");
    }
    let (head, _) = post(TOO_LONG, &[])?;
    ensure!(head.starts_with("HTTP/1.1 413 "), "an upload that is too large is answered with {head}");
    Ok(())
}

fn shipper(program: &Path) -> Result<()> {
    const LINES: usize = 20_000;
    let (peer, address) = Peer::new()?;
    let line = |log: usize, number: usize| format!("{log} {number} {}", "=".repeat(number % 100));
    let mut arguments = vec![address];
    for log in 0..3 {
        let path = program.with_file_name(format!("{log}.log"));
        let lines: String = (0..LINES).map(|number| line(log, number) + "\n").collect();
        std::fs::write(&path, lines)?;
        arguments.push(path.to_str().context("a path is text")?.to_owned());
    }
    let running = Running::start(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut next = [0; 3];
    for received in BufReader::new(peer.accept()?).lines() {
        let received = received?;
        let log = received.split(' ').next().and_then(|log| log.parse::<usize>().ok());
        let log = log.filter(|log| *log < 3).with_context(|| format!("it ships `{received}`"))?;
        ensure!(received == line(log, next[log]), "after {} lines of a log it ships `{received}`", next[log]);
        next[log] += 1;
    }
    ensure!(next == [LINES; 3], "of {LINES} lines of each log it has shipped {next:?}");
    running.output().map(drop)
}

fn loader(program: &Path) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    // Not a multiple of what is read at once.
    let bytes = payload((20 << 20) + 12_345);
    let path = program.with_file_name("loaded");
    std::fs::write(&path, &bytes)?;
    let sum: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
    let output = Running::start(program, &[path.to_str().context("a path is text")?])?.output()?;
    ensure!(output.trim() == sum.to_string(), "the bytes sum up to {sum}, and not to {output}");
    Ok(())
}
