//! `read_ready`: no buffer while nothing has come, and no byte lost.

use core::cell::{Cell, RefCell};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use bufworks::net::{ReadError, ReadReady, read_ready};
use bufworks::ring::RingPool;
use bufworks::slot::SlotPool;
use bufworks::{AcquireError, BufferPool, NoFallback};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, yield_now};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Lets everybody go on until nobody can; the runtime looks at its sockets meanwhile.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[test]
fn idle_connections_hold_nothing() {
    const CONNECTIONS: usize = 50;
    let pool = Rc::new(RefCell::new(SlotPool::new(64 * 1024, CONNECTIONS).unwrap()));
    let calls = Rc::new(Cell::new(0));
    LocalSet::new().block_on(&one_thread(), async {
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, mut server) = pair().await;
            clients.push(client);
            let (pool, calls) = (Rc::clone(&pool), Rc::clone(&calls));
            servers.push(tokio::task::spawn_local(async move {
                let mut came = Vec::new();
                let mut acquire = || {
                    calls.set(calls.get() + 1);
                    pool.borrow_mut().acquire(1000)
                };
                while let Some(buf) = read_ready(&mut server, &mut acquire).await.unwrap() {
                    came.extend_from_slice(&buf);
                }
                came
            }));
        }
        for round in 0..3 {
            settle().await;
            assert!(pool.borrow().is_idle(), "idle, round {round}");
            // Some runtimes take a socket that was just accepted for readable, and look once.
            let reads = round * CONNECTIONS..=(round + 1) * CONNECTIONS;
            assert!(reads.contains(&calls.get()), "{} calls in round {round}", calls.get());
            for client in &mut clients {
                client.write_all(b"request ").await.unwrap();
            }
        }
        drop(clients);
        for server in servers {
            assert_eq!(server.await.unwrap(), b"request request request ");
        }
    });
    assert!(pool.borrow().is_idle());
}

#[test]
fn on_several_threads() {
    const CONNECTIONS: u32 = 40;
    let pool = Arc::new(Mutex::new(RingPool::new(1 << 20).unwrap()));
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut readers = Vec::new();
        for number in 0..CONNECTIONS {
            let (mut client, server) = pair().await;
            let sent: Vec<u8> = (0..20_000 * (number % 7 + 1)).map(|at| (at * 31 + number) as u8).collect();
            let pool = Arc::clone(&pool);
            readers.push(tokio::spawn(async move {
                let send = async {
                    for piece in sent.chunks(777) {
                        client.write_all(piece).await.unwrap();
                    }
                    client.shutdown().await.unwrap();
                };
                let receive = async {
                    let (mut half, _other) = server.into_split();
                    let mut came = Vec::new();
                    while let Some(buf) =
                        read_ready(&mut half, || pool.lock().unwrap().acquire(4096)).await.unwrap()
                    {
                        came.extend_from_slice(&buf);
                    }
                    came
                };
                let ((), came) = tokio::join!(send, receive);
                assert!(came == sent, "connection {number}");
            }));
        }
        for reader in readers {
            timeout(PATIENCE, reader).await.unwrap().unwrap();
        }
    });
    assert!(pool.lock().unwrap().is_idle());
}

#[test]
fn a_read_that_is_dropped_loses_nothing() {
    const BYTES: usize = 300_000;
    let mut pool = SlotPool::new(8 * 1024, 4).unwrap();
    let (came, dropped) = one_thread().block_on(async {
        let (mut client, mut server) = pair().await;
        let send = async {
            for at in 0..BYTES / 100 {
                client.write_all(&[at as u8; 100]).await.unwrap();
                if at % 3 == 0 {
                    yield_now().await;
                }
            }
            client.shutdown().await.unwrap();
        };
        let receive = async {
            let (mut came, mut dropped) = (Vec::new(), 0);
            loop {
                let read = {
                    let mut read = pin!(read_ready(&mut server, || pool.acquire(1500)));
                    core::future::poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await
                };
                let Poll::Ready(read) = read else {
                    dropped += 1;
                    yield_now().await;
                    continue;
                };
                match read.unwrap() {
                    Some(buf) => came.extend_from_slice(&buf),
                    None => return (came, dropped),
                }
            }
        };
        tokio::join!(send, receive).1
    });
    assert!(dropped > 10, "only {dropped} reads were dropped");
    let sent: Vec<u8> = (0..BYTES / 100).flat_map(|at| [at as u8; 100]).collect();
    assert!(came == sent);
    assert!(pool.is_idle());
}

/// Says that it can be read when it cannot, this number of times.
struct Mistaken {
    mistakes: usize,
    asked: Rc<Cell<usize>>,
}

impl AsyncRead for Mistaken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.asked.set(self.asked.get() + 1);
        if self.mistakes > 0 {
            self.mistakes -= 1;
            cx.waker().wake_by_ref(); // as a task's that has had its turn
            return Poll::Pending;
        }
        into.put_slice(b"at last");
        Poll::Ready(Ok(()))
    }
}

impl ReadReady for Mistaken {
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send {
        core::future::ready(Ok(()))
    }
}

#[test]
fn a_buffer_goes_back_when_there_is_nothing_to_read_after_all() {
    let asked = Rc::new(Cell::new(0));
    let mut stream = Mistaken { mistakes: 3, asked: Rc::clone(&asked) };
    let pool = RefCell::new(RingPool::new(4096).unwrap());
    let mut read = pin!(read_ready(&mut stream, || pool.borrow_mut().acquire(100)));
    let mut cx = Context::from_waker(Waker::noop());
    for round in 1..=3 {
        assert!(read.as_mut().poll(&mut cx).is_pending());
        assert_eq!(asked.get(), round, "others have their turn in between");
        assert!(pool.borrow().is_idle(), "waiting without a buffer");
    }
    let Poll::Ready(Ok(Some(buf))) = read.as_mut().poll(&mut cx) else { panic!("there are bytes") };
    assert_eq!((&buf[..], pool.borrow().is_idle()), (&b"at last"[..], false));
}

/// A stream that puts a buffer of its own in the place of the one that it is lent.
struct Exchanging {
    bytes: usize,
}

impl AsyncRead for Exchanging {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        *into = ReadBuf::new(vec![7; self.bytes].leak());
        into.set_filled(self.bytes);
        Poll::Ready(Ok(()))
    }
}

impl ReadReady for Exchanging {
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send {
        core::future::ready(Ok(()))
    }
}

/// What such a stream claims to have read is not in the buffer: recycled bytes would pass for it.
#[test]
fn t21_a_stream_that_reads_elsewhere_is_refused() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    pool.acquire(100).unwrap().resize(100, 9).unwrap();
    for bytes in [1, 100, 101, 4096] {
        let mut stream = Exchanging { bytes };
        let read = core::panic::AssertUnwindSafe(|| {
            let mut read = pin!(read_ready(&mut stream, || pool.acquire(100)));
            match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(ReadError::Io(error))) => error.kind(),
                other => panic!("read {other:?}"),
            }
        });
        let refused = std::panic::catch_unwind(read).expect("an error");
        assert_eq!(refused, ErrorKind::InvalidData, "{bytes} bytes");
    }
    assert!(pool.is_idle());
}

#[test]
fn a_refused_buffer_loses_nothing() {
    let mut ring = RingPool::new(1024).unwrap();
    one_thread().block_on(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"patience").await.unwrap();
        let all = ring.acquire(1024).unwrap();
        let refused = read_ready(&mut server, || ring.acquire(600)).await.unwrap_err();
        assert!(
            matches!(refused, ReadError::Acquire(AcquireError::Exhausted { requested: 600, .. })),
            "{refused}"
        );
        assert_eq!(io::Error::from(refused).kind(), ErrorKind::StorageFull);
        let never = read_ready(&mut server, || NoFallback.acquire(1)).await.unwrap_err();
        assert!(matches!(never, ReadError::Acquire(AcquireError::TooLarge { .. })), "{never}");
        drop(all);
        let buf = read_ready(&mut server, || ring.acquire(600)).await.unwrap().unwrap();
        assert_eq!(&buf[..], b"patience");
    });
}

#[test]
fn bytes_are_appended_and_a_full_buffer_is_no_end() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    one_thread().block_on(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"world").await.unwrap();
        let mut acquire = |room: usize| {
            let mut buf = pool.acquire(6 + room)?;
            buf.extend_from_slice(b"hello ").unwrap();
            let spare = buf.spare_capacity();
            // A pool may give more than was asked for.
            buf.extend_from_slice(&b"................"[..spare - room]).unwrap();
            Ok(buf)
        };
        let full = read_ready(&mut server, || acquire(0)).await.unwrap_err();
        assert!(matches!(full, ReadError::NoRoom), "{full}");
        assert_eq!(io::Error::from(full).kind(), ErrorKind::StorageFull);
        let buf = read_ready(&mut server, || acquire(3)).await.unwrap().unwrap();
        assert!(buf.starts_with(b"hello ") && buf.ends_with(b"wor"));
        let buf = read_ready(&mut server, || acquire(100)).await.unwrap().unwrap();
        assert!(buf.ends_with(b"ld"));
        drop(buf);
        drop(client);
        assert!(read_ready(&mut server, || acquire(1)).await.unwrap().is_none());
        assert!(read_ready(&mut server, || acquire(1)).await.unwrap().is_none(), "an end stays one");
    });
    assert!(pool.is_idle());
}

#[test]
fn a_reset_is_an_error() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    one_thread().block_on(async {
        let (client, mut server) = pair().await;
        client.set_zero_linger().unwrap();
        drop(client);
        let error = read_ready(&mut server, || pool.acquire(100)).await.unwrap_err();
        assert!(
            matches!(&error, ReadError::Io(error) if error.kind() == ErrorKind::ConnectionReset),
            "{error}"
        );
    });
    assert!(pool.is_idle());
}

#[cfg(unix)]
#[test]
fn all_kinds_of_sockets_and_halves() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    one_thread().block_on(async {
        let (mut near, mut far) = tokio::net::UnixStream::pair().unwrap();
        near.write_all(b"a").await.unwrap();
        assert_eq!(&read_ready(&mut far, || pool.acquire(10)).await.unwrap().unwrap()[..], b"a");
        near.write_all(b"b").await.unwrap();
        assert_eq!(&read_ready(&mut far.split().0, || pool.acquire(10)).await.unwrap().unwrap()[..], b"b");
        near.write_all(b"c").await.unwrap();
        let (mut half, _other) = far.into_split();
        assert_eq!(&read_ready(&mut half, || pool.acquire(10)).await.unwrap().unwrap()[..], b"c");
        let (mut near, mut far) = pair().await;
        near.write_all(b"d").await.unwrap();
        assert_eq!(&read_ready(&mut far.split().0, || pool.acquire(10)).await.unwrap().unwrap()[..], b"d");
    });
}

/// The straightforward server under a budget: each of its clients sends a frame of 1 MiB at once,
/// and the pool has room for a few. Each frame is answered, no connection is lost, the budget is
/// kept, and nothing is held while a task waits.
#[cfg(feature = "shard")]
#[test]
fn a_budget_for_some_of_the_clients() {
    use bufworks::net::read_exact_waiting;
    use bufworks::shard::ShardPool;
    use tokio::io::AsyncReadExt;

    const CLIENTS: u32 = 50;
    const FRAME: usize = 1 << 20;
    const BUDGET: usize = 8 << 20;
    let pool = ShardPool::builder().max_bytes(BUDGET).build().unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for number in 0..CLIENTS {
            let (mut client, mut server) = pair().await;
            let pool = pool.clone();
            tasks.push(tokio::spawn(async move {
                let len = usize::try_from(server.read_u32().await.unwrap()).unwrap();
                let frame = read_exact_waiting(&mut server, len, || pool.acquire_async(len)).await.unwrap();
                assert!(pool.stats().reserved_bytes <= BUDGET);
                let sum = frame.iter().map(|&byte| u32::from(byte)).sum::<u32>();
                drop(frame);
                server.write_u32(sum).await.unwrap();
            }));
            tasks.push(tokio::spawn(async move {
                client.write_u32(FRAME as u32).await.unwrap();
                client.write_all(&vec![number as u8; FRAME]).await.unwrap();
                assert_eq!(client.read_u32().await.unwrap(), number * FRAME as u32);
            }));
        }
        for task in tasks {
            timeout(PATIENCE, task).await.expect("a task waits for ever").unwrap();
        }
    });
    assert!(pool.stats().reserved_bytes <= BUDGET);
}

/// Tasks that need a small and a large buffer of one budget, which has room for two tasks. By each
/// of the rules of `read_ready_waiting` all of them end. Without a rule they wait for each other.
#[cfg(feature = "shard")]
#[test]
fn t24_a_small_and_a_large_buffer_of_one_task() {
    use bufworks::shard::ShardPool;

    const TASKS: usize = 8;
    const TURNS: usize = 50;
    const SMALL: usize = 16 << 10;
    const LARGE: usize = 256 << 10;
    type Turn = fn(ShardPool) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    let rules: [(&str, Turn); 3] = [
        ("nothing is held", |pool| {
            Box::pin(async move {
                drop(pool.acquire_async(SMALL).await.unwrap());
                yield_now().await;
                drop(pool.acquire_async(LARGE).await.unwrap());
            })
        }),
        ("one buffer, split", |pool| {
            Box::pin(async move {
                let mut both = pool.acquire_async(SMALL + LARGE).await.unwrap();
                both.resize(SMALL + LARGE, 1).unwrap();
                yield_now().await;
                let small = both.split_to(SMALL);
                assert_eq!((small.len(), both.len()), (SMALL, LARGE));
            })
        }),
        ("the largest first", |pool| {
            Box::pin(async move {
                let large = pool.acquire_async(LARGE).await.unwrap();
                yield_now().await;
                // Refused, perhaps, and then it does without.
                let small = pool.acquire(SMALL);
                yield_now().await;
                drop((small, large));
            })
        }),
    ];
    let pool = || ShardPool::builder().max_bytes(2 * (SMALL + LARGE) + (64 << 10)).build().unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    for (rule, turn) in rules {
        let pool = pool();
        runtime.block_on(async {
            let tasks = (0..TASKS).map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    for _ in 0..TURNS {
                        turn(pool.clone()).await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                timeout(PATIENCE, task)
                    .await
                    .unwrap_or_else(|_| panic!("{rule}: a task waits for ever"))
                    .unwrap();
            }
        });
    }
    // Each has its small one, and nobody gets a large one.
    let pool = pool();
    runtime.block_on(async {
        let barrier = Arc::new(tokio::sync::Barrier::new(TASKS));
        let tasks = (0..TASKS).map(|_| {
            let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                let small = pool.acquire_async(SMALL + LARGE / 8).await.unwrap();
                barrier.wait().await;
                let large = timeout(Duration::from_millis(200), pool.acquire_async(LARGE)).await;
                drop(small);
                large.is_err()
            })
        });
        let mut waited = 0;
        for task in tasks.collect::<Vec<_>>() {
            waited += usize::from(timeout(PATIENCE, task).await.expect("a task waits for ever").unwrap());
        }
        assert!(waited > 0, "there was room for all at once, so the trial shows nothing");
    });
}

/// A stream that ends in a frame, a buffer without room, a frame of no bytes, and a request that is
/// given up: no byte is lost.
#[test]
fn exact_reads_that_fail() {
    use bufworks::net::read_exact_waiting;

    let pool = SlotPool::builder().capacity(1000).slots(4).build_with(NoFallback).unwrap();
    let pool = Mutex::new(pool);
    let acquire = async |bytes: usize| {
        loop {
            match pool.lock().unwrap().acquire(bytes) {
                Err(AcquireError::Exhausted { .. }) => {}
                served => return served,
            }
            yield_now().await;
        }
    };
    one_thread().block_on(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"abcdefgh").await.unwrap();
        let none = read_exact_waiting(&mut server, 0, || acquire(0)).await.unwrap();
        assert!(none.is_empty());
        let small = read_exact_waiting(&mut server, 4, || acquire(3)).await;
        assert!(matches!(small, Err(ReadError::NoRoom)));
        let large = read_exact_waiting(&mut server, 4, || acquire(1001)).await;
        assert!(matches!(large, Err(ReadError::Acquire(AcquireError::TooLarge { .. }))));
        let held = pool.lock().unwrap().acquire(1000).unwrap();
        let given_up = timeout(Duration::from_millis(20), read_exact_waiting(&mut server, 4, || acquire(4)));
        assert!(given_up.await.is_err(), "there is no room");
        drop(held);
        // With room for more than what is asked for, no more is read.
        let four = read_exact_waiting(&mut server, 4, || acquire(100)).await.unwrap();
        assert_eq!(four, *b"abcd");
        client.shutdown().await.unwrap();
        let short = read_exact_waiting(&mut server, 5, || acquire(5)).await;
        let Err(ReadError::Io(error)) = short else { panic!("the stream has ended") };
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    });
}
