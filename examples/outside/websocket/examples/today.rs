//! Sends each frame of a feed to all websockets.
use std::error::Error;

use futures_util::{SinkExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::{Receiver, channel};
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError, Message};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

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
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let sender = channel(256).0;
    let feed = TcpStream::connect(feed).await?;
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(8 << 20)
        .new_codec();
    let mut feed = Framed::new(feed, codec);
    loop {
        tokio::select! {
            client = listener.accept() => {
                tokio::spawn(serve(client?.0, sender.subscribe()));
            }
            frame = feed.try_next() => {
                let frame = frame?.ok_or("the feed has ended")?;
                let _ = sender.send(frame.freeze()); // an error says that no client is there
            }
        }
    }
}
