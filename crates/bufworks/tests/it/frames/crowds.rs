//! Peers that send little, and then nothing, under a budget (T38).

use core::time::Duration;
use std::io::{self, ErrorKind, Read};

use bufworks::frames::{Delimited, FrameReader, Framing, LengthDelimited, write_frames_async};
use bufworks::shard::ShardPool;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::asynchronous::pair;

/// Lets readers have what each of twenty clients has sent, and then serves another client under a
/// budget of two chunks.
async fn a_crowd_keeps_nobody_waiting<F>(framing: F, sent: &[u8], by_chunks: fn(Reader<F>) -> Reader<F>)
where
    F: Framing + Copy + Send + Sync + 'static,
{
    let pool = ShardPool::builder().max_bytes(20 << 10).build().unwrap();
    let mut clients = Vec::new();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (mut client, socket) = pair().await;
        client.write_all(sent).await.unwrap();
        clients.push(client);
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut frames = by_chunks(FrameReader::new(socket, framing));
            drop(frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await);
        });
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (mut client, socket) = pair().await;
    write_frames_async(&mut client, &framing, &["served"]).await.unwrap();
    let mut frames = by_chunks(FrameReader::new(socket, framing));
    let next = frames.next_frame_async(|bytes| pool.acquire_async(bytes));
    let served = tokio::time::timeout(Duration::from_secs(5), next).await;
    let served = served.expect("clients that send nothing more keep another one from being read");
    assert_eq!(served.unwrap().unwrap(), *b"served");
    tasks.shutdown().await;
}

type Reader<F> = FrameReader<TcpStream, F, bufworks::shard::ShardLease>;

#[tokio::test]
async fn t38_clients_that_send_one_byte_hold_no_buffer() {
    let lengths = LengthDelimited::new(18 << 10);
    a_crowd_keeps_nobody_waiting(lengths, b"\0", |reader| reader).await;
    a_crowd_keeps_nobody_waiting(lengths, b"\0", FrameReader::by_frame).await;
    a_crowd_keeps_nobody_waiting(Delimited::byte(b'\n', 1000), b"a", |reader| reader).await;
}

/// The length of a frame alone is not charged, whether it fits in a chunk or not.
#[tokio::test]
async fn t38_clients_that_announce_and_send_nothing_hold_no_buffer() {
    let lengths = LengthDelimited::new(18 << 10);
    for announced in [100_u32, 17 << 10] {
        let sent = announced.to_be_bytes();
        a_crowd_keeps_nobody_waiting(lengths, &sent, |reader| reader).await;
        a_crowd_keeps_nobody_waiting(lengths, &sent, FrameReader::by_frame).await;
    }
    // Nor are the first bytes of a frame that fits in a chunk.
    a_crowd_keeps_nobody_waiting(lengths, b"\0\0\x01\0first bytes", |reader| reader).await;
}

/// A deadline that ends a call amid a frame loses nothing of it.
#[tokio::test]
async fn t38_a_deadline_amid_a_frame_loses_nothing() {
    const FRAME: usize = 20_000;
    let pool = ShardPool::builder().max_bytes(64 << 10).build().unwrap();
    let (mut client, socket) = pair().await;
    let mut frames = FrameReader::new(socket, LengthDelimited::new(FRAME));
    let mut wire = (FRAME as u32).to_be_bytes().to_vec();
    wire.extend((0..FRAME).map(|at| at as u8));
    let mut sent = 0;
    for part in [1, 3, 1, 60, 1000, 10_000] {
        client.write_all(&wire[sent..sent + part]).await.unwrap();
        sent += part;
        let next = frames.next_frame_async(|bytes| pool.acquire_async(bytes));
        let ended = tokio::time::timeout(Duration::from_millis(10), next).await;
        assert!(ended.is_err() && frames.is_inside_frame(), "{sent} bytes");
    }
    client.write_all(&wire[sent..]).await.unwrap();
    let frame = frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await.unwrap().unwrap();
    assert!(frame == wire[4..]);
}

/// A blocking stream with a time-out keeps no buffer when that is over, and loses nothing.
#[test]
fn t38_a_reader_whose_stream_times_out_holds_no_buffer() {
    struct Late<'a>(&'a [&'a [u8]]);
    impl Read for Late<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some((now, rest)) = self.0.split_first() else { return Ok(0) };
            self.0 = rest;
            if now.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            into[..now.len()].copy_from_slice(now);
            Ok(now.len())
        }
    }
    let pool = ShardPool::builder().max_bytes(12 << 10).build().unwrap();
    let parts: [&[u8]; 7] = [b"", b"\0", b"", b"\0\0\x06se", b"", b"rved", b""];
    let mut frames = FrameReader::new(Late(&parts), LengthDelimited::new(100));
    for _ in 0..3 {
        let ended = frames.next_frame(|bytes| pool.acquire(bytes));
        assert!(ended.is_err());
        drop(pool.acquire(8 << 10).expect("the reader holds no chunk"));
    }
    assert_eq!(frames.next_frame(|bytes| pool.acquire(bytes)).unwrap().unwrap(), *b"served");
}

/// What the guide says of blocking readers: a thread that waits in `peek` holds no buffer.
#[test]
fn t38_readers_that_peek_first_hold_no_buffer() {
    let pool = ShardPool::builder().max_bytes(12 << 10).build().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || {
        let client = std::net::TcpStream::connect(address).unwrap();
        let pool = pool.clone();
        let (socket, _) = listener.accept().unwrap();
        let thread = std::thread::spawn(move || {
            let mut lines = FrameReader::new(socket, Delimited::byte(b'\n', 100).must_end());
            let mut all = Vec::new();
            loop {
                if !lines.is_inside_frame() {
                    lines.get_ref().peek(&mut [0]).unwrap();
                }
                match lines.next_frame(|bytes| pool.acquire_timeout(bytes, Duration::from_secs(60))).unwrap()
                {
                    Some(line) => all.extend_from_slice(&line),
                    None => return all,
                }
            }
        });
        (client, thread)
    };
    let silent: Vec<_> = (0..20).map(|_| connect()).collect();
    let (mut client, thread) = connect();
    io::Write::write_all(&mut client, b"one\ntwo\nth").unwrap();
    io::Write::write_all(&mut client, b"ree\n").unwrap();
    drop(client);
    assert_eq!(thread.join().unwrap(), b"onetwothree");
    for (client, thread) in silent {
        drop(client);
        assert_eq!(thread.join().unwrap(), b"");
    }
}
