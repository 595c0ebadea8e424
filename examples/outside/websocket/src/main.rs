//! Sends each frame of a feed to all websockets.
use std::error::Error;

use bufworks::frames::{FrameReader, LengthDelimited};
use bufworks::shard::ShardPool;
use futures_util::SinkExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::{Receiver, channel};
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError, Message};

async fn serve(client: TcpStream, mut frames: Receiver<Bytes>) -> Result<(), SocketError> {
    let mut socket = tokio_tungstenite::accept_async(client).await?;
    while let Ok(frame) = frames.recv().await {
        socket.send(Message::Binary(frame)).await?;
    }
    socket.close(None).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let feed = std::env::args().nth(1).ok_or("which feed?")?;
    let pool = ShardPool::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let sender = channel(256).0;
    let feed = TcpStream::connect(feed).await?;
    let mut feed = FrameReader::new(feed, LengthDelimited::new(8 << 20));
    loop {
        tokio::select! {
            client = listener.accept() => {
                tokio::spawn(serve(client?.0, sender.subscribe()));
            }
            frame = feed.next_frame_async(|bytes| pool.acquire_async(bytes)) => {
                let frame = frame?.ok_or("the feed has ended")?;
                let _ = sender.send(frame.into_bytes()); // an error says that no client is there
            }
        }
    }
}
