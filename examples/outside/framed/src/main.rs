//! Answers each frame with the number of its lines.
use std::error::Error;

use bufworks::frames::{LengthDelimited, PoolCodec};
use bufworks::shard::ShardPool;
use futures_util::{SinkExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::bytes::Bytes;
use tokio_util::codec::Framed;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

async fn serve(client: TcpStream, pool: ShardPool) -> Result<()> {
    let codec = PoolCodec::new(pool, LengthDelimited::new(8 << 20));
    let mut frames = Framed::new(client, codec);
    while let Some(frame) = frames.try_next().await? {
        let lines = frame.iter().filter(|&&byte| byte == b'\n').count();
        frames.send(Bytes::from(lines.to_string())).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let pool = ShardPool::builder().max_bytes(64 << 20).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        tokio::spawn(serve(listener.accept().await?.0, pool.clone()));
    }
}
