//! Clients that know what each answer has to be.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::server::CHECKSUM;

/// The sizes of uploads.
const SMALLEST: f64 = 64.0;
const LARGEST: f64 = (8 << 20) as f64;
/// What a client reads at once, and the least that it writes.
const CHUNK_BYTES: usize = 64 << 10;
/// From the bytes of one upload or connection to those of another.
const STRIDE: usize = 1 << 10;
const PLACES: usize = 1024;
/// All of the traffic takes less.
const PATIENCE: Duration = Duration::from_secs(300);

/// The sizes of as many uploads, logarithmically uniform: the same each time.
#[must_use]
pub fn sizes(count: usize) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(38);
    (0..count).map(|_| (SMALLEST * (LARGEST / SMALLEST).powf(random.f64())) as usize).collect()
}

/// The bytes that all uploads and frames are cut from.
fn payload() -> Arc<[u8]> {
    let mut bytes = vec![0; PLACES * STRIDE + LARGEST as usize];
    fastrand::Rng::with_seed(38).fill(&mut bytes);
    bytes.into()
}

fn cut(payload: &[u8], place: usize, length: usize) -> &[u8] {
    &payload[place % PLACES * STRIDE..][..length]
}

/// Makes as many connections.
///
/// # Errors
///
/// When one is refused.
pub async fn connect(to: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let mut connected = Vec::with_capacity(count);
    for _ in 0..count {
        let stream = TcpStream::connect(to).await.with_context(|| format!("cannot connect to {to}"))?;
        stream.set_nodelay(true)?;
        connected.push(stream);
    }
    Ok(connected)
}

/// Runs one of these for each connection, to the end of all.
async fn each<F: Future<Output = Result<()>> + Send + 'static>(
    streams: Vec<TcpStream>,
    client: impl Fn(usize, TcpStream) -> F,
) -> Result<()> {
    let mut tasks = JoinSet::new();
    for (place, stream) in streams.into_iter().enumerate() {
        tasks.spawn(tokio::time::timeout(PATIENCE, client(place, stream)));
    }
    while let Some(ended) = tasks.join_next().await {
        ended?.context("no answer")??;
    }
    Ok(())
}

/// Uploads as many bodies, each by the next connection that is free, and checks that the same bytes come back with their checksum.
///
/// # Errors
///
/// When an answer is wrong, or a connection fails.
pub async fn upload(streams: Vec<TcpStream>, sizes: Vec<usize>) -> Result<()> {
    let (payload, sizes, next) = (payload(), Arc::new(sizes), Arc::new(AtomicUsize::new(0)));
    each(streams, |_, stream| {
        let (payload, sizes, next) = (Arc::clone(&payload), Arc::clone(&sizes), Arc::clone(&next));
        async move {
            let mut stream = BufReader::with_capacity(CHUNK_BYTES, stream);
            // ORDER: Relaxed: a counter, which orders nothing.
            while let Some((at, &length)) = Some(next.fetch_add(1, Ordering::Relaxed))
                .and_then(|at| sizes.get(at).map(|length| (at, length)))
            {
                let body = cut(&payload, at, length);
                ask(&mut stream, body).await.with_context(|| format!("upload {at}, of {length} bytes"))?;
            }
            Ok(())
        }
    })
    .await
}

async fn ask(stream: &mut BufReader<TcpStream>, body: &[u8]) -> Result<()> {
    let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head).await? > 0, "the server has ended");
    }
    let checksum = format!("\r\n{CHECKSUM}: {}\r\n", crc32fast::hash(body));
    ensure!(head.starts_with("HTTP/1.1 200 ") && head.contains(&checksum), "a wrong answer: {head}");
    let mut left = body;
    while !left.is_empty() {
        let read = stream.fill_buf().await?;
        let read = &read[..read.len().min(left.len())];
        ensure!(!read.is_empty() && left.starts_with(read), "other bytes came back");
        let bytes = read.len();
        left = &left[bytes..];
        stream.consume(bytes);
    }
    Ok(())
}

/// Sends as many frames on each connection, and checks that the same frames come back.
///
/// # Errors
///
/// When another frame comes back, or a connection fails.
pub async fn relay(streams: Vec<TcpStream>, bytes: usize, frames: usize) -> Result<()> {
    let payload = payload();
    each(streams, |place, stream| {
        let mut batch = (bytes as u32).to_be_bytes().to_vec();
        batch.extend_from_slice(cut(&payload, place, bytes));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_logarithmically_uniform() {
        let sizes = sizes(4000);
        assert!(sizes.iter().all(|&size| (64..=8 << 20).contains(&size)));
        let share = |limit| sizes.iter().filter(|&&size| size < limit).count() as f64 / 4000.0;
        // Seventeen powers of two.
        assert!((share(64 << 4) - 4.0 / 17.0).abs() < 0.03 && (share(64 << 12) - 12.0 / 17.0).abs() < 0.03);
        // Both ways about 5.3 GiB.
        let total = 2 * sizes.iter().sum::<usize>();
        assert!((5 << 30..6 << 30).contains(&total), "{total}");
    }
}
