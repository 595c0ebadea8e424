//! Answers each frame with the number of its lines.
use std::error::Error;

use futures_util::{SinkExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

async fn serve(client: TcpStream) -> Result<()> {
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(8 << 20)
        .new_codec();
    let mut stream = Framed::new(client, codec);
    while let Some(frame) = stream.try_next().await? {
        let lines = frame.iter().filter(|&&byte| byte == b'\n').count();
        stream.send(Bytes::from(lines.to_string())).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        tokio::spawn(serve(listener.accept().await?.0));
    }
}
