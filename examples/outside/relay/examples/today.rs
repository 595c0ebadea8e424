//! Passes frames on to a server, and its frames back.
use std::{error::Error, io};

use futures_util::{SinkExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};
use tokio::time::{Duration, timeout};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

const PATIENCE: Duration = Duration::from_secs(60);

async fn pass(from: OwnedReadHalf, to: OwnedWriteHalf) -> io::Result<()> {
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(8 << 20)
        .new_codec();
    let mut frames = FramedRead::new(from, codec.clone());
    let mut to = FramedWrite::new(to, codec);
    while let Some(frame) = timeout(PATIENCE, frames.try_next()).await?? {
        timeout(PATIENCE, to.send(frame.freeze())).await??;
    }
    Ok(())
}

async fn serve(client: TcpStream, server: String) -> io::Result<()> {
    let peer = TcpStream::connect(server).await?.into_split();
    let client = client.into_split();
    tokio::try_join!(pass(client.0, peer.1), pass(peer.0, client.1))?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).ok_or("which server?")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let client = listener.accept().await?.0;
        tokio::spawn(serve(client, server.clone()));
    }
}
