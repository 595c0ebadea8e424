//! Every byte goes through the proxy, in both directions at once, from every pool.

use core::hash::BuildHasher;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::hash_map::RandomState;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use bufcore::{BufferPool, ConfigError, HeapPool, Reject};
use bufslot::SlotPool;
use buftrace::{Meta, Recorder, Recording};
use bufworks_examples::proxy::{Report, Settings, Stop, serve};

const CONNECTIONS: u64 = 6;
const BYTES_EACH_WAY: usize = 3 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that look random (xorshift), the same for the same seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut noise = Self(seed | 1);
        let words = (0..len.div_ceil(8)).flat_map(|_| noise.next().to_le_bytes());
        words.take(len).collect()
    }
}

/// Sends `out` in pieces of changing size while reading to the end; returns what came.
fn exchange(socket: &TcpStream, seed: u64, out: &[u8]) -> Vec<u8> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut noise = Noise(seed | 1);
            let (mut rest, mut socket) = (out, socket);
            while !rest.is_empty() {
                // Mostly small pieces, some large ones.
                let piece = (noise.next() as usize % (1 << (noise.next() % 18))) + 1;
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
                let came = exchange(&socket, key, &Noise::bytes(key ^ 0xd0, BYTES_EACH_WAY));
                assert!(came == Noise::bytes(key ^ 0xff, BYTES_EACH_WAY), "bytes up differ");
            });
        }
    });
}

/// Pushes bytes through a proxy with these pools and compares all of them on both sides.
fn push_through<P: BufferPool>(make_pool: impl Fn() -> Result<P, ConfigError> + Sync) -> Report {
    let seed = RandomState::new().hash_one(0);
    println!("seed {seed:#x}");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop::new(&listener).unwrap();
    let settings =
        Settings { max_connections: Some(CONNECTIONS), ..Settings::new(server.local_addr().unwrap()) };
    thread::scope(|scope| {
        scope.spawn(|| upstream(&server, seed));
        let proxy = scope.spawn(|| serve(&listener, &settings, &stop, &make_pool).unwrap());
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.write_all(&number.to_le_bytes()).unwrap();
                let key = seed ^ number;
                let came = exchange(&socket, !key, &Noise::bytes(key ^ 0xff, BYTES_EACH_WAY));
                assert!(came == Noise::bytes(key ^ 0xd0, BYTES_EACH_WAY), "bytes down differ");
            });
        }
        proxy.join().unwrap()
    })
}

fn check(report: &Report) {
    let each_way = CONNECTIONS * BYTES_EACH_WAY as u64;
    assert_eq!(report.connections, CONNECTIONS);
    assert_eq!((report.broken, report.idle, report.stopped, report.failed), (0, 0, 0, 0), "{report}");
    assert_eq!((report.bytes_up, report.bytes_down), (each_way + 8 * CONNECTIONS, each_way));
    assert!(report.acquired > 2 * CONNECTIONS * (BYTES_EACH_WAY as u64 / (64 * 1024)), "{report}");
}

#[test]
fn every_byte_with_the_slot_pool() {
    let report = push_through(|| SlotPool::new(256 * 1024, 11));
    check(&report);
    assert!(report.reused > 0, "{report}");
}

#[test]
fn every_byte_with_a_slot_pool_that_is_too_small() {
    let report = push_through(|| SlotPool::new(8 * 1024, 2));
    check(&report);
    assert!(report.fallbacks > 0, "{report}");
}

#[test]
fn every_byte_with_the_heap() {
    let report = push_through(|| Ok(HeapPool::new()));
    check(&report);
    assert_eq!(report.reused, 0);
}

#[test]
fn every_byte_while_recording() {
    let recording = Recording::new();
    let report = push_through(|| Ok(Recorder::new(SlotPool::new(256 * 1024, 11)?, &recording)));
    check(&report);
    let trace = recording.finish(Meta::new("test"));
    let summary = trace.summary();
    assert!(!summary.cut);
    assert_eq!(summary.acquires as u64, report.acquired);
    assert_eq!(summary.releases, summary.acquires, "all buffers are back");
    assert!(summary.total_bytes >= report.bytes_up + report.bytes_down);
    // Writers release, readers acquire; only a reader's last buffer and those that it emptied by itself stay on one thread.
    assert!(summary.cross_thread_releases * 2 > summary.releases, "{summary}");
    // How many sizes depends on how much each read finds: on a busy machine most are of full blocks.
    assert!(summary.distinct_sizes > 1 && summary.overlapping > 0, "{summary}");
}

/// A proxy that is stopped at the end of `client`.
fn with_proxy(settings: Settings, client: impl FnOnce(SocketAddr, &Stop)) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stop = Stop::new(&listener).unwrap();
    thread::scope(|scope| {
        let proxy = scope.spawn(|| serve(&listener, &settings, &stop, || Ok(HeapPool::new())).unwrap());
        client(listener.local_addr().unwrap(), &stop);
        stop.stop();
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
    let report = with_proxy(settings, |address, stop| {
        clients.push(TcpStream::connect(address).unwrap());
        clients.push(server.accept().unwrap().0);
        stop.stop();
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
fn no_upstream_and_no_memory_end_the_connection() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = with_proxy(Settings::new(gone), |address, _| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(!matches!(client.read(&mut [0]), Ok(1..)), "there is nothing to read");
    });
    assert_eq!((report.connections, report.failed), (0, 1), "{report}");

    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stop = Stop::new(&listener).unwrap();
    let settings = Settings { max_connections: Some(1), ..Settings::new(server.local_addr().unwrap()) };
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let report = serve(&listener, &settings, &stop, || Ok(Reject)).unwrap();
    assert_eq!((report.connections, report.broken), (1, 1), "{report}");
}
