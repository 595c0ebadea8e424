//! A thousand connections at once through the proxy, with each strategy: every byte arrives, and the idle ones hold no buffer.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bufworks::any::AnyBuilder;
use bufworks_examples::limits;
use bufworks_examples::proxy::{Control, Pools, Report, Settings, Status, serve, serve_rings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 1000;
/// Of a client, of the proxy, which has two, and of the upstream; and some for everything else.
const FILES: u64 = 4 * CONNECTIONS as u64 + 100;
const ROUNDS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// One at a time: each has thousands of files.
static TURN: Mutex<()> = Mutex::new(());

/// What connection `number` sends in `round`: of all lengths, up to some that need many reads.
fn message(number: usize, round: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed((number * ROUNDS + round) as u64);
    let length = 1 << random.u32(4..16);
    let length = length + random.usize(0..length);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// Sends back what comes.
async fn echo(mut socket: TcpStream) {
    let (mut from, mut to) = socket.split();
    tokio::io::copy(&mut from, &mut to).await.unwrap();
    to.shutdown().await.unwrap();
}

/// One client: sends, and compares what comes back. All clients are idle between the rounds.
async fn client(address: SocketAddr, number: usize, barrier: &Barrier) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    for round in 0..ROUNDS {
        barrier.wait().await;
        let sent = message(number, round);
        let mut came = vec![0; sent.len()];
        {
            let (mut from, mut to) = socket.split();
            let (read, written) = tokio::join!(from.read_exact(&mut came), to.write_all(&sent));
            read.unwrap();
            written.unwrap();
        }
        assert!(came == sent, "connection {number}, round {round}");
        barrier.wait().await;
        // Now it is looked at what the proxy holds.
        barrier.wait().await;
    }
    socket.shutdown().await.unwrap();
    assert_eq!(socket.read(&mut [0]).await.unwrap(), 0, "nothing but the echo");
}

fn a_thousand(
    shares_pool: bool,
    run: impl FnOnce(&TcpListener, &Settings, &Control) -> io::Result<Report> + Send,
) -> Option<Report> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if limits::raise_open_files().is_some_and(|files| files < FILES) {
        println!("skipped: this system allows no {FILES} open files");
        return None;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    for listener in [&listener, &upstream] {
        limits::raise_backlog(listener).unwrap();
    }
    let settings = Settings {
        max_connections: Some(CONNECTIONS as u64),
        shares_pool,
        ..Settings::new(upstream.local_addr().unwrap())
    };
    let control = Control::new();
    let address = listener.local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = thread::scope(|scope| {
        let proxy = scope.spawn(|| run(&listener, &settings, &control).unwrap());
        runtime.block_on(async {
            upstream.set_nonblocking(true).unwrap();
            let upstream = tokio::net::TcpListener::from_std(upstream).unwrap();
            tokio::spawn(async move {
                while let Ok((socket, _)) = upstream.accept().await {
                    tokio::spawn(echo(socket));
                }
            });
            let barrier: &'static Barrier = Box::leak(Box::new(Barrier::new(CONNECTIONS + 1)));
            let mut clients = JoinSet::new();
            for number in 0..CONNECTIONS {
                clients.spawn(client(address, number, barrier));
            }
            let watch = async {
                for _ in 0..ROUNDS {
                    barrier.wait().await;
                    barrier.wait().await;
                    // All is echoed, and nobody sends.
                    let status = idle_status(&control);
                    assert_eq!((status.in_use, status.in_use_bytes), (0, 0), "{status}");
                    assert_eq!(status.connections, CONNECTIONS, "{status}");
                    barrier.wait().await;
                }
                while let Some(ended) = clients.join_next().await {
                    ended.unwrap();
                }
            };
            tokio::time::timeout(PATIENCE, watch).await.expect("it takes too long");
        });
        proxy.join().unwrap()
    });
    let sent: usize =
        (0..CONNECTIONS).flat_map(|number| (0..ROUNDS).map(move |round| message(number, round).len())).sum();
    assert_eq!(report.connections, CONNECTIONS as u64, "{report}");
    assert_eq!((report.broken, report.idle, report.stopped, report.failed), (0, 0, 0, 0), "{report}");
    assert_eq!((report.bytes_up, report.bytes_down), (sent as u64, sent as u64), "{report}");
    Some(report)
}

/// What the proxy holds once its last buffer was released: a client may have its bytes before the buffer that they were in is dropped.
fn idle_status(control: &Control) -> Status {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let status = control.status();
        if status.in_use == 0 || Instant::now() > deadline {
            return status;
        }
    }
}

#[test]
fn every_strategy() {
    for name in AnyBuilder::NAMES {
        let text = match *name {
            // Less than a kilobyte for each connection; a worker that finds no buffer waits.
            "ring" => "ring:capacity=128KiB,buffers=32",
            name => name,
        };
        println!("{text}");
        let pools = Pools::new(Pools::parse(text, 1 << 20).unwrap()).unwrap();
        a_thousand(pools.are_shared(), |listener, settings, control| {
            serve(listener, settings, control, |direction| pools.make(direction))
        });
    }
}

#[test]
fn mirrored_rings() {
    let report =
        a_thousand(false, |listener, settings, control| serve_rings(listener, settings, control, 16 << 10));
    assert!(report.is_none_or(|report| report.acquired == 2 * CONNECTIONS as u64));
}
