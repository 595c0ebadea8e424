//! Passes frames on to a server, and its frames back. All frames on the way together have 64 MiB.
use std::{error::Error, io};

use bufworks::frames::{FrameReader, LengthDelimited, write_frames_async};
use bufworks::shard::ShardPool;
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};
use tokio::time::{Duration, timeout};

/// A peer that stops in the midst of a frame has a part of the budget for as long.
const PATIENCE: Duration = Duration::from_secs(60);

async fn pass(from: OwnedReadHalf, mut to: OwnedWriteHalf, pool: &ShardPool) -> io::Result<()> {
    let framing = LengthDelimited::new(8 << 20);
    let mut frames = FrameReader::new(from, framing);
    let acquire = |bytes| pool.acquire_async(bytes);
    while let Some(frame) = timeout(PATIENCE, frames.next_frame_async(acquire)).await?? {
        timeout(PATIENCE, write_frames_async(&mut to, &framing, &[frame])).await??;
    }
    Ok(())
}

async fn serve(client: TcpStream, server: String, pool: ShardPool) -> io::Result<()> {
    let peer = TcpStream::connect(server).await?.into_split();
    let client = client.into_split();
    tokio::try_join!(pass(client.0, peer.1, &pool), pass(peer.0, client.1, &pool))?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).ok_or("which server?")?;
    let pool = ShardPool::builder().max_bytes(64 << 20).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let client = listener.accept().await?.0;
        tokio::spawn(serve(client, server.clone(), pool.clone()));
    }
}
