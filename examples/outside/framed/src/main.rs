//! Answers each frame with the number of its lines.
use std::error::Error;

use bufworks::{frames, shard::ShardPool};
use futures_util::{SinkExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::bytes::Bytes;
use tokio_util::codec::Framed;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

async fn serve(client: TcpStream, pool: ShardPool) -> Result<()> {
    let codec = frames::PoolCodec::new(pool, frames::LengthDelimited::new(8 << 20));
    let mut stream = Framed::new(client, codec);
    while let Some(frame) = stream.try_next().await? {
        let lines = frame.iter().filter(|&&byte| byte == b'\n').count();
        stream.send(Bytes::from(lines.to_string())).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let pool = ShardPool::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        tokio::spawn(serve(listener.accept().await?.0, pool.clone()));
    }
}
