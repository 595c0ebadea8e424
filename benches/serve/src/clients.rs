//! Clients that know what each answer has to be.

use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use bufworks_web::uploads;
use futures_util::future::try_join;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::pattern;
use crate::server::CHECKSUM;
use crate::service::Framework;
use crate::stock::{Client, Stock};

/// The sizes of uploads and downloads of the service.
pub(crate) const SIZES: Range<f64> = 64.0..(8 << 20) as f64;
/// What a client reads at once, and the least that it writes.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// A client of the relay begins to read after that long: by then its queue is full, in each run.
const STALL: Duration = Duration::from_millis(300);
/// All of the traffic takes less.
const PATIENCE: Duration = Duration::from_secs(300);

/// The sizes of as many messages, logarithmically uniform: the same each time.
#[must_use]
pub fn sizes(count: usize, range: Range<f64>) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(38);
    (0..count).map(|_| (range.start * (range.end / range.start).powf(random.f64())) as usize).collect()
}

/// Makes as many connections. With `receive_buffer` the system keeps this number of bytes for one that does not read.
///
/// # Errors
///
/// When one is refused.
pub async fn connect(to: SocketAddr, count: usize, receive_buffer: Option<u32>) -> Result<Vec<TcpStream>> {
    let mut connected = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(to).await.with_context(|| format!("cannot connect to {to}"))?;
        stream.set_nodelay(true)?;
        connected.push(stream);
    }
    Ok(connected)
}

/// Runs one of these for each connection, to the end of all, and returns their results.
pub(crate) async fn each<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
    streams: Vec<TcpStream>,
    client: impl Fn(usize, TcpStream) -> F,
) -> Result<Vec<T>> {
    let mut tasks = JoinSet::new();
    for (place, stream) in streams.into_iter().enumerate() {
        tasks.spawn(tokio::time::timeout(PATIENCE, client(place, stream)));
    }
    let mut results = Vec::with_capacity(tasks.len());
    while let Some(ended) = tasks.join_next().await {
        results.push(ended?.context("no answer")??);
    }
    Ok(results)
}

/// Uploads and downloads in turn, or sends messages, each by the next connection that is free, and checks the answers.
///
/// # Errors
///
/// When an answer is wrong, or a connection fails.
pub async fn ask(of: Framework, streams: Vec<TcpStream>, sizes: Vec<usize>) -> Result<()> {
    let (sizes, next) = (Arc::new(sizes), Arc::new(AtomicUsize::new(0)));
    let protocol = if of == Framework::Tonic { Stock::Messages } else { Stock::Upload };
    each(streams, |_, stream| {
        let (sizes, next) = (Arc::clone(&sizes), Arc::clone(&next));
        async move {
            let mut client = Client::new(protocol, stream).await?;
            loop {
                // ORDER: Relaxed: a counter, which orders nothing.
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&length) = sizes.get(at) else { return Ok(()) };
                let asked = async {
                    match &mut client {
                        Client::Http(stream) if at.is_multiple_of(2) => echo(stream, at, length).await,
                        Client::Http(stream) => download(stream, length).await,
                        other => other.send(at, length).await,
                    }
                };
                asked.await.with_context(|| format!("request {at}, of {length} bytes"))?;
            }
        }
    })
    .await
    .map(drop)
}

/// Uploads the bytes of a place, and checks their checksum.
pub(crate) async fn upload(stream: &mut BufReader<TcpStream>, place: usize, length: usize) -> Result<()> {
    let head = post(stream, place, length).await?;
    let mut sum = crc32fast::Hasher::new();
    pattern::pieces(place, length).for_each(|piece| sum.update(piece));
    let checksum = format!("\r\n{CHECKSUM}: {}\r\n", sum.finalize());
    ensure!(head.contains(&checksum), "a wrong answer: {head}");
    Ok(())
}

/// Uploads the bytes of a place, and checks that they come back.
async fn echo(stream: &mut BufReader<TcpStream>, place: usize, length: usize) -> Result<()> {
    let head = post(stream, place, length).await?;
    ensure!(head.contains(&format!("\r\ncontent-length: {length}\r\n")), "a wrong answer: {head}");
    for piece in pattern::pieces(place, length) {
        expect(stream, piece).await?;
    }
    Ok(())
}

/// Uploads the bytes of a place, and returns the head of the answer.
async fn post(stream: &mut BufReader<TcpStream>, place: usize, length: usize) -> Result<String> {
    let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    for piece in pattern::pieces(place, length) {
        stream.write_all(piece).await?;
    }
    read_head(stream).await
}

async fn download(stream: &mut BufReader<TcpStream>, length: usize) -> Result<()> {
    let head = format!("GET /{length} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    read_head(stream).await?;
    let mut received = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let bytes = usize::from_str_radix(line.trim_end(), 16).context("not the length of a chunk")?;
        ensure!(bytes <= uploads::CHUNK_BYTES, "a chunk of {bytes} bytes");
        expect(stream, uploads::pattern(received, bytes)).await?;
        expect(stream, b"\r\n").await?;
        received += bytes;
        if bytes == 0 {
            break;
        }
    }
    ensure!(received == length, "{received} bytes came");
    Ok(())
}

/// Reads the head of an answer without an error.
async fn read_head(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head).await? > 0, "the server has ended");
    }
    ensure!(head.starts_with("HTTP/1.1 200 "), "a wrong answer: {head}");
    Ok(head)
}

/// Reads these bytes.
async fn expect(stream: &mut BufReader<TcpStream>, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let read = stream.fill_buf().await?;
        let count = read.len().min(bytes.len());
        ensure!(count > 0 && read[..count] == bytes[..count], "other bytes came");
        bytes = &bytes[count..];
        stream.consume(count);
    }
    Ok(())
}

/// Sends as many frames on each connection, and checks that the same frames come back.
///
/// # Errors
///
/// When another frame comes back, or a connection fails.
pub async fn relay(streams: Vec<TcpStream>, bytes: usize, frames: usize) -> Result<()> {
    each(streams, |place, stream| {
        let mut batch = (bytes as u32).to_be_bytes().to_vec();
        pattern::pieces(place, bytes).for_each(|piece| batch.extend_from_slice(piece));
        let together = CHUNK_BYTES.div_ceil(batch.len()).min(frames);
        let batch = batch.repeat(together);
        async move {
            let (mut from, mut to) = stream.into_split();
            let rounds = frames / together;
            let send = async {
                for _ in 0..rounds {
                    to.write_all(&batch).await?;
                }
                Ok(())
            };
            let receive = async {
                tokio::time::sleep(STALL).await;
                let mut received = vec![0; batch.len()];
                for _ in 0..rounds {
                    from.read_exact(&mut received).await?;
                    ensure!(received == batch, "client {place}: other frames came back");
                }
                Ok(())
            };
            try_join(send, receive).await.map(drop)
        }
    })
    .await
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_logarithmically_uniform() {
        let sizes = sizes(8000, SIZES);
        assert!(sizes.iter().all(|&size| (64..=8 << 20).contains(&size)));
        let share = |limit| sizes.iter().filter(|&&size| size < limit).count() as f64 / 8000.0;
        // Seventeen powers of two.
        assert!((share(64 << 4) - 4.0 / 17.0).abs() < 0.03 && (share(64 << 12) - 12.0 / 17.0).abs() < 0.03);
        let total = sizes.iter().sum::<usize>();
        assert!((5 << 30..6 << 30).contains(&total), "{total}");
    }
}
