//! Every byte goes through the proxy, in both directions at once, from every pool.

extern crate alloc;

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::net::SocketAddr;
use core::num::NonZero;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::hash_map::RandomState;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use bufcore::{AcquireError, Buf, BufferPool, ConfigError, HeapPool, NoFallback, PoolStats};
use bufring::RingPool;
use bufshard::ShardPool;
use bufslot::SlotPool;
use buftrace::{Meta, Recorder, Recording};
use bufworks::any::AnyBuilder;
use bufworks_examples::proxy::{Control, Direction, Pools, Report, Settings, serve, serve_rings};

const CONNECTIONS: u64 = 6;
const BYTES_EACH_WAY: usize = 3 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that look random, the same for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Sends `out` in pieces of changing size while reading to the end; returns what came.
fn exchange(socket: &TcpStream, seed: u64, out: &[u8]) -> Vec<u8> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(!seed);
            let (mut rest, mut socket) = (out, socket);
            while !rest.is_empty() {
                // Mostly small pieces, some large ones.
                let most = 1 << random.u32(..18);
                let piece = random.usize(1..=most);
                let (now, later) = rest.split_at(piece.min(rest.len()));
                socket.write_all(now).unwrap();
                rest = later;
            }
            socket.shutdown(Shutdown::Write).unwrap();
        });
        let (mut came, mut reader) = (Vec::new(), socket);
        reader.read_to_end(&mut came).unwrap();
        came
    })
}

/// An upstream that reads the number of the connection, then exchanges bytes that follow from it.
fn upstream(listener: &TcpListener, seed: u64) {
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let (mut socket, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let mut number = [0; 8];
                socket.read_exact(&mut number).unwrap();
                let key = seed ^ u64::from_le_bytes(number);
                let came = exchange(&socket, key, &noise(key ^ 0xd0, BYTES_EACH_WAY));
                assert!(came == noise(key ^ 0xff, BYTES_EACH_WAY), "bytes up differ");
            });
        }
    });
}

/// Pushes bytes through a proxy with these pools, of which each worker has one, and compares all of them on both sides.
fn push_through<P: BufferPool + 'static>(make_pool: impl Fn() -> Result<P, ConfigError> + Sync) -> Report {
    push_through_all(false, 0, |listener, settings, control| {
        serve(listener, settings, control, |_| make_pool())
    })
}

/// As `push_through`, with pools that the workers share.
fn push_through_shared<P: BufferPool + Clone + Sync + 'static>(pools: &[P; 2]) -> Report {
    push_through_all(true, 0, |listener, settings, control| {
        serve(listener, settings, control, |direction| Ok(pools[direction as usize].clone()))
    })
}

fn push_through_all(
    shares_pool: bool,
    queue_buffers: usize,
    run: impl FnOnce(&TcpListener, &Settings, &Control) -> io::Result<Report> + Send,
) -> Report {
    let seed = RandomState::new().hash_one(0);
    println!("seed {seed:#x}");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let control = Control::new();
    let settings = Settings {
        max_connections: Some(CONNECTIONS),
        shares_pool,
        queue_buffers,
        ..Settings::new(server.local_addr().unwrap())
    };
    thread::scope(|scope| {
        scope.spawn(|| upstream(&server, seed));
        let proxy = scope.spawn(|| run(&listener, &settings, &control).unwrap());
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.write_all(&number.to_le_bytes()).unwrap();
                let key = seed ^ number;
                let came = exchange(&socket, !key, &noise(key ^ 0xff, BYTES_EACH_WAY));
                assert!(came == noise(key ^ 0xd0, BYTES_EACH_WAY), "bytes down differ");
            });
        }
        proxy.join().unwrap()
    })
}

fn check(report: &Report) {
    check_bytes(report);
    assert!(report.acquired > 2 * CONNECTIONS * (BYTES_EACH_WAY as u64 / (64 * 1024)), "{report}");
}

fn check_bytes(report: &Report) {
    let each_way = CONNECTIONS * BYTES_EACH_WAY as u64;
    assert_eq!(report.connections, CONNECTIONS);
    assert_eq!((report.broken, report.idle, report.stopped, report.failed), (0, 0, 0, 0), "{report}");
    assert_eq!((report.bytes_up, report.bytes_down), (each_way + 8 * CONNECTIONS, each_way));
}

/// By its name, each with its part of a megabyte where it has a limit.
#[test]
fn every_byte_with_every_strategy() {
    for name in AnyBuilder::NAMES {
        let pools = Pools::new(Pools::parse(name, 1 << 20).unwrap()).unwrap();
        let report = push_through_all(pools.are_shared(), 0, |listener, settings, control| {
            serve(listener, settings, control, |direction| pools.make(direction))
        });
        check(&report);
        assert_eq!(report.reused > 0, *name != "heap", "{name}: {report}");
        assert!(*name != "ring" || (report.waits, report.fallbacks) == (0, 0), "{report}");
    }
}

#[test]
fn every_byte_with_a_slot_pool_that_is_too_small() {
    let report = push_through(|| SlotPool::new(8 * 1024, 2));
    check(&report);
    assert!(report.fallbacks > 0, "{report}");
}

/// The next connection, which may fail to come.
fn accept_soon(server: &TcpListener) -> TcpStream {
    server.set_nonblocking(true).unwrap();
    let began = Instant::now();
    loop {
        match server.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false).unwrap();
                return socket;
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        assert!(began.elapsed() < PATIENCE, "nobody connects");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A pool with one buffer, which a connection holds whose receiver does not read: the others wait, and lose nothing.
fn waits_for_its_turn(run: impl FnOnce(&TcpListener, &Settings, &Control) -> io::Result<Report> + Send) {
    const FILL: usize = 8 << 20;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let control = Control::new();
    let settings = Settings {
        workers: NonZero::<usize>::MIN,
        min_buffer_bytes: 1000,
        max_buffer_bytes: 1000,
        max_connections: Some(2),
        shares_pool: true,
        ..Settings::new(server.local_addr().unwrap())
    };
    let report = thread::scope(|scope| {
        let proxy = scope.spawn(|| run(&listener, &settings, &control).unwrap());
        let connect = || {
            let client = TcpStream::connect(address).unwrap();
            let other = accept_soon(&server);
            other.set_read_timeout(Some(PATIENCE)).unwrap();
            (client, other)
        };
        let (mut greedy, mut slow) = connect();
        scope.spawn(move || {
            greedy.set_write_timeout(Some(PATIENCE)).unwrap();
            greedy.write_all(&vec![9; FILL]).unwrap();
        });
        // The buffer stays out once the sockets are full.
        let began = Instant::now();
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(200) {
            if control.status().in_use == 0 {
                since = Instant::now();
            }
            assert!(began.elapsed() < PATIENCE, "the sockets are never full");
            thread::sleep(Duration::from_millis(1));
        }
        let (mut client, mut other) = connect();
        client.write_all(b"after you").unwrap();
        other.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(other.read(&mut [0]).is_err(), "there is no buffer for it");
        other.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut came = vec![0; FILL];
        slow.read_exact(&mut came).unwrap();
        assert!(came.iter().all(|byte| *byte == 9));
        let mut words = [0; 9];
        other.read_exact(&mut words).unwrap();
        assert_eq!(&words, b"after you");
        drop((client, other, slow));
        proxy.join().unwrap()
    });
    assert_eq!((report.connections, report.bytes_up), (2, FILL as u64 + 9), "{report}");
    assert!(report.waits > 0 && report.fallbacks == 0, "{report}");
}

#[test]
fn who_finds_no_buffer_waits() {
    waits_for_its_turn(|listener, settings, control| {
        serve(listener, settings, control, |_| {
            SlotPool::builder().capacity(1500).slots(2).build_with(NoFallback)
        })
    });
    waits_for_its_turn(|listener, settings, control| {
        serve(listener, settings, control, |_| RingPool::new(1500))
    });
    let pools = [(); 2].map(|()| ShardPool::builder().alignment(4096).max_bytes(4096).build().unwrap());
    waits_for_its_turn(|listener, settings, control| {
        serve(listener, settings, control, |direction| Ok(pools[direction as usize].clone()))
    });
}

/// One buffer for all. Who takes it while `keeps` is set keeps it until somebody else was refused twice: when looking, and when about to
/// wait.
#[derive(Clone)]
struct Keeping {
    pool: ShardPool,
    keeps: Arc<AtomicBool>,
    refusals: Arc<AtomicUsize>,
}

impl BufferPool for Keeping {
    type Lease = <ShardPool as BufferPool>::Lease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.acquire(capacity).inspect_err(|_| {
            // ORDER: Relaxed: a number to wait for.
            self.refusals.fetch_add(1, Ordering::Relaxed);
        })?;
        // ORDER: Relaxed: a wish; sockets carry what depends on it.
        if self.keeps.swap(false, Ordering::Relaxed) {
            let began = Instant::now();
            // ORDER: Relaxed, as above.
            while self.refusals.load(Ordering::Relaxed) < 2 {
                assert!(began.elapsed() < PATIENCE, "nobody else wants a buffer");
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(buf)
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

/// A buffer that was taken for the end of a stream goes back empty. Who found none meanwhile, on another worker, is told of that, too.
#[test]
fn an_empty_buffer_is_passed_on() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let control = Control::new();
    let settings = Settings {
        workers: NonZero::new(2).unwrap(),
        min_buffer_bytes: 1000,
        max_buffer_bytes: 1000,
        max_connections: Some(2),
        shares_pool: true,
        ..Settings::new(server.local_addr().unwrap())
    };
    let [up, down] = [(); 2].map(|()| Keeping {
        pool: ShardPool::builder().alignment(4096).max_bytes(4096).build().unwrap(),
        keeps: Arc::default(),
        refusals: Arc::default(),
    });
    let make = |direction| Ok(if direction == Direction::Up { up.clone() } else { down.clone() });
    let report = thread::scope(|scope| {
        let proxy = scope.spawn(|| serve(&listener, &settings, &control, make).unwrap());
        // The workers have one each. New sockets seem readable; after some bytes, and the worker's answer, each waits.
        let [(ending, gone), (mut client, mut other)] = [(); 2].map(|()| {
            let mut client = TcpStream::connect(address).unwrap();
            let mut other = accept_soon(&server);
            other.set_read_timeout(Some(PATIENCE)).unwrap();
            client.write_all(b"!").unwrap();
            other.read_exact(&mut [0]).unwrap();
            (client, other)
        });
        assert_eq!(control.status().connections, 2);
        // ORDER: Relaxed, for both: the end of the stream, which comes later, is what makes the worker look.
        up.refusals.store(0, Ordering::Relaxed);
        up.keeps.store(true, Ordering::Relaxed);
        ending.shutdown(Shutdown::Write).unwrap();
        let began = Instant::now();
        // ORDER: Relaxed: only this flag is looked at.
        while up.keeps.load(Ordering::Relaxed) {
            assert!(began.elapsed() < PATIENCE, "the end takes no buffer");
            thread::sleep(Duration::from_millis(1));
        }
        client.write_all(b"after you").unwrap();
        let mut words = [0; 9];
        other.read_exact(&mut words).unwrap();
        assert_eq!(&words, b"after you");
        drop((ending, gone, client, other));
        proxy.join().unwrap()
    });
    assert_eq!((report.connections, report.bytes_up), (2, 11), "{report}");
    assert!(report.waits > 0, "{report}");
}

#[test]
fn every_byte_with_memory_for_few_buffers() {
    check(&push_through(|| SlotPool::builder().capacity(4096).slots(4).build_with(NoFallback)));
    check(&push_through(|| RingPool::new(4096)));
    check(&push_through_shared(&[(); 2].map(|()| ShardPool::builder().max_bytes(8192).build().unwrap())));
}

#[test]
fn every_byte_through_mirrored_rings() {
    for bytes in [1, 64 * 1024] {
        let report = push_through_all(false, 0, |listener, settings, control| {
            serve_rings(listener, settings, control, bytes)
        });
        assert_eq!(report.acquired, 2 * CONNECTIONS, "a ring for each direction");
        check_bytes(&report);
    }
}

#[test]
fn every_byte_while_recording() {
    let recording = Recording::new();
    let report = push_through(|| Ok(Recorder::new(SlotPool::new(256 * 1024, 64)?, &recording)));
    check(&report);
    let trace = recording.finish(Meta::new("test"));
    let summary = trace.summary();
    assert!(!summary.meta.cut);
    assert_eq!(summary.acquires as u64, report.acquired);
    assert_eq!(summary.releases, summary.acquires, "all buffers are back");
    assert!(summary.total_bytes >= report.bytes_up + report.bytes_down);
    assert_eq!(summary.cross_thread_releases, 0, "what a worker acquires, it releases");
}

#[test]
fn every_byte_with_writers_of_their_own() {
    let recording = Recording::new();
    let report = push_through_all(false, 8, |listener, settings, control| {
        serve(listener, settings, control, |_| Ok(Recorder::new(SlotPool::new(2 << 20, 256)?, &recording)))
    });
    check(&report);
    let trace = recording.finish(Meta::new("test"));
    let summary = trace.summary();
    assert_eq!(summary.acquires as u64, report.acquired);
    assert_eq!(summary.releases, summary.acquires, "all buffers are back");
    // Writers release; only a reader's last buffer and those that it emptied by itself stay on one thread.
    assert!(summary.cross_thread_releases * 2 > summary.releases, "{summary}");
    // How many sizes depends on how much each read finds: on a busy machine most are of full blocks.
    assert!(summary.distinct_sizes > 1 && summary.max_live > 1, "{summary}");
}

/// A proxy that is stopped at the end of `client`.
fn with_proxy(settings: Settings, client: impl FnOnce(SocketAddr, &Control)) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let control = Control::new();
    thread::scope(|scope| {
        let proxy = scope.spawn(|| serve(&listener, &settings, &control, |_| Ok(HeapPool::new())).unwrap());
        client(listener.local_addr().unwrap(), &control);
        control.stop();
        proxy.join().unwrap()
    })
}

#[test]
fn one_direction_ends_before_the_other() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let report = with_proxy(Settings::new(server.local_addr().unwrap()), |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut other, _) = server.accept().unwrap();
        other.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut question = Vec::new();
        other.read_to_end(&mut question).unwrap();
        assert_eq!(question, b"question");
        other.write_all(b"answer").unwrap();
        drop(other);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
    });
    assert_eq!((report.connections, report.broken, report.stopped), (1, 0, 0), "{report}");
}

#[test]
fn idle_connections_end() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings =
        Settings { idle_timeout: Duration::from_millis(200), ..Settings::new(server.local_addr().unwrap()) };
    let report = with_proxy(settings, |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let _other = server.accept().unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the proxy closes");
    });
    assert_eq!((report.connections, report.idle), (1, 1), "{report}");
}

#[test]
fn stopping_ends_what_goes_on_after_the_grace() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings =
        Settings { grace: Duration::from_millis(200), ..Settings::new(server.local_addr().unwrap()) };
    let began = Instant::now();
    let mut clients = Vec::new();
    let report = with_proxy(settings, |address, control| {
        clients.push(TcpStream::connect(address).unwrap());
        clients.push(server.accept().unwrap().0);
        control.stop();
    });
    assert_eq!((report.connections, report.stopped), (1, 1), "{report}");
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_receiver_that_never_reads_is_given_up() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings =
        Settings { idle_timeout: Duration::from_millis(300), ..Settings::new(server.local_addr().unwrap()) };
    let report = with_proxy(settings, |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        let _other = server.accept().unwrap();
        // More than all the buffers on the way can hold.
        assert!(client.write_all(&vec![7; 64 << 20]).is_err(), "the proxy gives up");
    });
    assert_eq!((report.connections, report.idle), (1, 1), "{report}");
}

#[test]
fn no_upstream_ends_the_connection() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = with_proxy(Settings::new(gone), |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(!matches!(client.read(&mut [0]), Ok(1..)), "there is nothing to read");
    });
    assert_eq!((report.connections, report.failed), (0, 1), "{report}");
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let usual = Settings::new(listener.local_addr().unwrap());
    let kind = |result: io::Result<Report>| result.unwrap_err().kind();
    let control = Control::new;
    assert_eq!(kind(serve(&listener, &usual, &control(), |_| Ok(NoFallback))), io::ErrorKind::InvalidInput);
    assert_eq!(
        kind(serve(&listener, &usual, &control(), |_| SlotPool::new(0, 0))),
        io::ErrorKind::InvalidInput
    );
    let small = |_| RingPool::new(usual.min_buffer_bytes / 2);
    assert_eq!(kind(serve(&listener, &usual, &control(), small)), io::ErrorKind::InvalidInput);
    let reversed = Settings { min_buffer_bytes: 2, max_buffer_bytes: 1, ..usual.clone() };
    assert_eq!(
        kind(serve(&listener, &reversed, &control(), |_| Ok(HeapPool::new()))),
        io::ErrorKind::InvalidInput
    );
    assert!(serve_rings(&listener, &usual, &control(), 0).is_err());
    assert!(serve_rings(&listener, &usual, &control(), usize::MAX).is_err());
}

/// What one side has said before it breaks off still reaches the other.
#[test]
fn the_last_words_before_a_reset_arrive() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let report = with_proxy(Settings::new(server.local_addr().unwrap()), |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut other, _) = server.accept().unwrap();
        client.write_all(b"a question that is never read").unwrap();
        thread::sleep(Duration::from_millis(50));
        other.write_all(b"no").unwrap();
        // With bytes unread, this is a reset.
        drop(other);
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"no");
    });
    assert_eq!((report.connections, report.bytes_down), (1, 2), "{report}");
}
