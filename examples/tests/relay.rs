//! The relay: all frames get to all others, and who is silent holds nothing.

use core::time::Duration;
use std::time::Instant;

use bufcore::HeapPool;
use bufshard::ShardPool;
use bufworks_examples::frames::FrameCodec;
use bufworks_examples::relay::{Report, Settings, serve};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_util::codec::Framed;
use tokio_util::sync::CancellationToken;

const CLIENTS: usize = 20;
const FRAMES: usize = 15;
const PATIENCE: Duration = Duration::from_secs(30);

type Client = Framed<TcpStream, FrameCodec<HeapPool>>;

fn frame(client: usize, number: usize) -> Vec<u8> {
    let mut frame = vec![client as u8, number as u8];
    frame.resize(2 + (number * number * 150), client as u8 ^ number as u8);
    frame
}

/// The relay while `clients` runs, and a pool that has to be idle whenever `clients` asks.
fn with_relay(
    threads: usize,
    settings: Settings,
    clients: impl AsyncFnOnce(&dyn Fn() -> std::io::Result<std::net::TcpStream>, &ShardPool),
) -> Report {
    let pool = ShardPool::builder().max_bytes(8 << 20).build().unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let relay = tokio::spawn(serve(listener, pool.clone(), settings, stop.clone()));
        let connect = || {
            let socket = std::net::TcpStream::connect(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        timeout(PATIENCE, clients(&connect, &pool)).await.expect("it takes too long");
        stop.cancel();
        relay.await.unwrap().unwrap()
    })
}

async fn is_idle(pool: &ShardPool) {
    let began = Instant::now();
    while pool.stats().in_use != 0 {
        assert!(began.elapsed() < PATIENCE, "{:?}", pool.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Clients that the relay knows: each has been heard by all that came before it.
async fn introduced(
    connect: &dyn Fn() -> std::io::Result<std::net::TcpStream>,
    count: usize,
    max_frame: usize,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..count {
        let socket = TcpStream::from_std(connect().unwrap()).unwrap();
        let mut client = Framed::new(socket, FrameCodec::new(HeapPool::new(), max_frame));
        if !clients.is_empty() {
            client.send(b"hello").await.unwrap();
        }
        for other in &mut clients {
            assert_eq!(&other.next().await.unwrap().unwrap()[..], b"hello");
        }
        clients.push(client);
    }
    clients
}

#[test]
fn everybody_gets_everything_of_the_others_in_order() {
    let report = with_relay(2, Settings::default(), async |connect, pool| {
        let clients = introduced(connect, CLIENTS, 1 << 20).await;
        is_idle(pool).await;
        let mut tasks = Vec::new();
        for (number, client) in clients.into_iter().enumerate() {
            tasks.push(tokio::spawn(async move {
                let (mut to, mut from) = client.split();
                let speak = async {
                    for at in 0..FRAMES {
                        to.send(frame(number, at)).await.unwrap();
                    }
                };
                let listen = async {
                    let mut next = [0; CLIENTS];
                    for _ in 0..(CLIENTS - 1) * FRAMES {
                        let came = from.next().await.unwrap().unwrap();
                        let sender = usize::from(came[0]);
                        assert_ne!(sender, number, "not one's own");
                        assert!(came[..] == frame(sender, next[sender]), "from {sender}");
                        next[sender] += 1;
                    }
                };
                tokio::join!(speak, listen);
                to.reunite(from).unwrap()
            }));
        }
        let mut still_connected = Vec::new();
        for task in tasks {
            still_connected.push(task.await.unwrap());
        }
        is_idle(pool).await;
    });
    let frames = (CLIENTS * FRAMES + CLIENTS - 1) as u64;
    assert_eq!(report, Report { clients: CLIENTS as u64, failed: 0, frames });
}

#[test]
fn who_sends_nonsense_is_let_go_and_the_others_stay() {
    let report = with_relay(1, Settings { max_frame: 100, ..Settings::default() }, async |connect, pool| {
        let raw = || TcpStream::from_std(connect().unwrap()).unwrap();
        let mut good = introduced(connect, 2, 100).await;
        let mut too_long = raw();
        too_long.write_all(&[0, 0, 0, 101, 7]).await.unwrap();
        let mut truncated = raw();
        truncated.write_all(&[0, 0, 0, 9, 7]).await.unwrap();
        truncated.shutdown().await.unwrap();
        for bad in [&mut too_long, &mut truncated] {
            // An end or a reset; frames it gets none.
            assert!(!matches!(bad.read(&mut [0]).await, Ok(1..)));
        }
        good[0].send(b"still here").await.unwrap();
        assert_eq!(&good[1].next().await.unwrap().unwrap()[..], b"still here");
        is_idle(pool).await;
    });
    assert_eq!((report.clients, report.failed, report.frames), (4, 2, 2));
}
