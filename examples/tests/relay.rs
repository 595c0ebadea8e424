//! The relay: all frames get to all others, and who is silent holds nothing.

use core::time::Duration;
use std::time::Instant;

use bufshard::ShardPool;
use bufworks_examples::relay::{Report, Settings, serve};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use tokio_util::sync::CancellationToken;

const CLIENTS: usize = 20;
const FRAMES: usize = 15;
const PATIENCE: Duration = Duration::from_secs(30);

/// A codec of others, which has the same frames.
type Client = Framed<TcpStream, LengthDelimitedCodec>;

fn frame(client: usize, number: usize) -> Vec<u8> {
    let mut frame = vec![client as u8, number as u8];
    frame.resize(2 + (number * number * 150), client as u8 ^ number as u8);
    frame
}

/// Memory for all frames.
const BUDGET: usize = 8 << 20;

/// The relay while `clients` runs, and a pool that has to be idle whenever `clients` asks.
fn with_relay(
    threads: usize,
    budget: usize,
    settings: Settings,
    clients: impl AsyncFnOnce(&dyn Fn() -> std::io::Result<std::net::TcpStream>, &ShardPool),
) -> Report {
    let pool = ShardPool::builder().max_bytes(budget).build().unwrap();
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
        let mut client = LengthDelimitedCodec::builder().max_frame_length(max_frame).new_framed(socket);
        if !clients.is_empty() {
            client.send(Bytes::from_static(b"hello")).await.unwrap();
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
    let report = with_relay(2, BUDGET, Settings::default(), async |connect, pool| {
        let clients = introduced(connect, CLIENTS, 1 << 20).await;
        is_idle(pool).await;
        let mut tasks = Vec::new();
        for (number, client) in clients.into_iter().enumerate() {
            tasks.push(tokio::spawn(async move {
                let (mut to, mut from) = StreamExt::split::<Bytes>(client);
                let speak = async {
                    for at in 0..FRAMES {
                        to.send(Bytes::from(frame(number, at))).await.unwrap();
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
    let report =
        with_relay(1, BUDGET, Settings { max_frame: 100, ..Settings::default() }, async |connect, pool| {
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
            good[0].send(Bytes::from_static(b"still here")).await.unwrap();
            assert_eq!(&good[1].next().await.unwrap().unwrap()[..], b"still here");
            is_idle(pool).await;
        });
    assert_eq!((report.clients, report.failed, report.frames), (4, 2, 2));
}

/// All send at once, and the relay has room for two of their frames: the others wait, and nobody is let go.
#[test]
fn a_budget_of_two_frames_serves_ten_clients() {
    const CLIENTS: usize = 10;
    const FRAMES: usize = 5;
    const BYTES: usize = 64 << 10;
    // A frame's buffer takes some KiB more.
    let budget = 5 * BYTES / 2;
    let report = with_relay(2, budget, Settings::default(), async |connect, pool| {
        let clients = introduced(connect, CLIENTS, BYTES).await;
        is_idle(pool).await;
        let mut tasks = Vec::new();
        for (number, client) in clients.into_iter().enumerate() {
            tasks.push(tokio::spawn(async move {
                let (mut to, mut from) = StreamExt::split::<Bytes>(client);
                let speak = async {
                    for _ in 0..FRAMES {
                        to.send(vec![number as u8; BYTES].into()).await.unwrap();
                    }
                };
                let listen = async {
                    let mut came = [0; CLIENTS];
                    for _ in 0..(CLIENTS - 1) * FRAMES {
                        let frame = from.next().await.expect("the connection is there").unwrap();
                        assert!(frame.len() == BYTES && frame.iter().all(|byte| *byte == frame[0]));
                        came[usize::from(frame[0])] += 1;
                    }
                    assert!(came.iter().enumerate().all(|(from, came)| *came == FRAMES || from == number));
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

/// A client that reads nothing holds the budget for a while, and the others get their frames after that.
#[test]
fn a_client_that_does_not_read_is_let_go() {
    const BYTES: usize = 64 << 10;
    let settings = Settings { patience: Duration::from_secs(3), ..Settings::default() };
    let report = with_relay(1, 5 * BYTES / 2, settings, async |connect, pool| {
        let mut clients = introduced(connect, 3, BYTES).await;
        // More than what sockets keep.
        let (mut to, mut from) = (clients.remove(0), clients.remove(0));
        let frames = 256;
        let speak = async {
            for _ in 0..frames {
                to.send(Bytes::from(vec![7; BYTES])).await.unwrap();
            }
        };
        let listen = async {
            for _ in 0..frames {
                assert_eq!(from.next().await.unwrap().unwrap().len(), BYTES);
            }
        };
        tokio::join!(speak, listen);
        is_idle(pool).await;
    });
    assert_eq!((report.clients, report.failed), (3, 1));
}
