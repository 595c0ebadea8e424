//! Rings between two processes: this test binary, started once more for one test of its own.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use bufmirror::{GetError, RegionError, ShareError, SharedRing, WaitError};
use testkit::process::{self as system, alone};
use testkit::trials::scaled;

const LONG: Duration = Duration::from_secs(60);
/// In which the end of a process is to be noticed: a tenth of a second is promised, on a machine
/// with nothing else to do.
const SOON: Duration = Duration::from_secs(5);
/// What the other process is to do.
const ROLE: &str = "BUFMIRROR_TEST_ROLE";

fn word(at: u64) -> [u8; 8] {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).to_ne_bytes()
}

fn words() -> u64 {
    scaled(20_000_000) as u64
}

/// Starts the other process, with the ring as its standard input.
fn start(ring: &SharedRing, role: &str) -> Child {
    let file = ring.as_fd().try_clone_to_owned().expect("a descriptor is left");
    let mut command = Command::new(env::current_exe().expect("this binary"));
    command.args(["--exact", "shared::the_other_process", "--nocapture"]).env(ROLE, role);
    command.stdin(Stdio::from(file)).stdout(Stdio::null()).spawn().expect("a process is left")
}

fn read_all(ring: &SharedRing) {
    let mut consumer = ring.consumer().expect("the end is free");
    let mut piece = [0; 8 * 37];
    let mut at = 0;
    while at < words() {
        let count = (words() - at).min(37) as usize;
        let piece = &mut piece[..8 * count];
        consumer.read_exact(piece).expect("more is to come");
        for (at, found) in (at..).zip(piece.chunks_exact(8)) {
            assert_eq!(found, word(at), "word {at}");
        }
        at += count as u64;
    }
    assert_eq!(consumer.read(&mut [0]).expect("an end is no error"), 0);
}

fn write_all(ring: &SharedRing) {
    let mut producer = ring.producer().expect("the end is free");
    for at in 0..words() {
        while producer.put(&word(at)).is_err() {
            producer.wait(8).expect("the consumer lives, or has yet to come");
        }
    }
}

/// Not a test of its own: what a process does that a test has started.
#[test]
fn the_other_process() {
    let Ok(role) = env::var(ROLE) else { return };
    let file = std::io::stdin().as_fd().try_clone_to_owned().expect("the ring");
    let ring = SharedRing::open(file).expect("a ring");
    match &*role {
        "write" => write_all(&ring),
        "read" => read_all(&ring),
        "write and die" => {
            let mut producer = ring.producer().expect("the end is free");
            producer.write_all(b"last words.").expect("there is room");
            process::abort();
        }
        "read and die" => {
            let mut consumer = ring.consumer().expect("the end is free");
            consumer.read_exact(&mut [0; 100]).expect("more is to come");
            process::abort();
        }
        "stay" => {
            let mut producer = ring.producer().expect("the end is free");
            producer.put(b"!").expect("there is room");
            thread::sleep(LONG);
        }
        other => panic!("{other}"),
    }
}

fn succeeds(mut child: Child) {
    assert!(child.wait().expect("it was started").success());
}

#[test]
fn t01_written_there_and_read_here() {
    let ring = SharedRing::create(64 << 10).unwrap();
    let child = start(&ring, "write");
    read_all(&ring);
    succeeds(child);
}

#[test]
fn t01_written_here_and_read_there() {
    let ring = SharedRing::create(1).unwrap();
    let child = start(&ring, "read");
    write_all(&ring);
    succeeds(child);
}

/// What was written before is read, then there is an end.
#[test]
fn t06_a_producer_that_dies() {
    let ring = SharedRing::create(4096).unwrap();
    let mut consumer = ring.consumer().unwrap();
    let mut child = start(&ring, "write and die");
    let started = Instant::now();
    let ended = consumer.wait_timeout(12, LONG);
    assert_eq!(ended, Err(WaitError::Closed { requested: 12, available: 11 }));
    child.wait().unwrap();
    let took = started.elapsed();
    assert!(took < SOON, "{took:?}");
    assert!(consumer.is_closed());
    let mut text = String::new();
    consumer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "last words.");
    // Somebody else continues where it was.
    let mut next = ring.producer().unwrap();
    next.put(b"more").unwrap();
    let mut four = [0; 4];
    consumer.get(&mut four).unwrap();
    assert_eq!(&four, b"more");
    let timed_out = WaitError::TimedOut { requested: 1, available: 0 };
    assert_eq!(consumer.wait_timeout(1, Duration::ZERO), Err(timed_out), "there is a producer again");
}

#[test]
fn t06_a_consumer_that_dies() {
    let ring = SharedRing::create(4096).unwrap();
    let mut producer = ring.producer().unwrap();
    let mut child = start(&ring, "read and die");
    let started = Instant::now();
    let error = loop {
        if let Err(error) = producer.write(&[7; 1000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    child.wait().unwrap();
    let took = started.elapsed();
    assert!(took < SOON, "{took:?}");
    assert!(producer.is_closed());
}

#[test]
fn t06_a_sleeper_sees_a_process_that_is_killed() {
    let ring = SharedRing::create(4096).unwrap();
    let mut consumer = ring.consumer().unwrap();
    let mut child = start(&ring, "stay");
    // Not by trying to take that end: it would be taken when the other process wants it.
    consumer.wait_timeout(1, LONG).expect("the other process says when it is there");
    consumer.get(&mut [0]).expect("waited for");
    assert_eq!(ring.producer().unwrap_err(), ShareError::Taken);
    assert!(!consumer.is_closed());
    let timed_out = consumer.wait_timeout(1, Duration::from_millis(300));
    assert_eq!(timed_out, Err(WaitError::TimedOut { requested: 1, available: 0 }));
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let started = Instant::now();
    assert_eq!(consumer.read(&mut [0; 8]).unwrap(), 0);
    assert!(started.elapsed() < SOON);
    killer.join().unwrap();
}

/// One that has not come yet is not gone, and a forgotten end is taken.
#[test]
fn who_is_there() {
    // A child of another test has, for a moment, all that this process has open.
    alone(module_path!(), "who_is_there", LONG, || {
        let ring = SharedRing::create(4096).unwrap();
        let mut producer = ring.producer().unwrap();
        assert!(!producer.is_closed());
        producer.put(&[1; 4096]).unwrap();
        assert!(matches!(
            producer.wait_timeout(1, Duration::from_millis(10)),
            Err(WaitError::TimedOut { .. })
        ));
        assert_eq!(ring.producer().unwrap_err(), ShareError::Taken);
        let mut consumer = ring.consumer().unwrap();
        assert_eq!(ring.consumer().unwrap_err(), ShareError::Taken);
        assert_eq!(consumer.get(&mut [0; 5000]), Err(GetError { requested: 5000, available: 4096 }));
        assert_eq!(consumer.get_some(&mut [0; 5000]), 4096);
        assert!(matches!(consumer.wait(4097), Err(WaitError::TooLong { .. })));
        drop(consumer);
        assert!(producer.is_closed());
        assert_eq!(producer.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(producer);
        // SAFETY: nobody else has the ring.
        let mut producer = unsafe { ring.trusted_producer() }.unwrap();
        // SAFETY: as above.
        let mut consumer = unsafe { ring.trusted_consumer() }.unwrap();
        producer.reserve(4).unwrap().copy_from_slice(b"lent");
        producer.commit(4);
        assert_eq!(consumer.peek(), b"lent");
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(consumer.poll_wait(&cx, 4).is_ready());
        assert_eq!(consumer.poll_wait(&cx, 5), std::task::Poll::Ready(Err(WaitError::NoTasks)));
    });
}

/// Where the positions and the states are, whatever is written there, nothing but the bytes
/// suffers.
#[test]
fn nonsense_in_the_header() {
    // A child of another test has, for a moment, all that this process has open.
    alone(module_path!(), "nonsense_in_the_header", LONG, || {
        let mut random = fastrand::Rng::with_seed(3);
        let mut program = [0; 300];
        let corrupt = (0..scaled(100_000)).map(|_| {
            random.fill(&mut program);
            crate::header::run(&program)
        });
        assert!(corrupt.sum::<usize>() > 0, "some of it was noticed");
    });
}

/// A header that makes no sense is an error of the blocking traits as well, and stays one.
#[test]
fn nonsense_ends_reads_and_writes() {
    alone(module_path!(), "nonsense_ends_reads_and_writes", LONG, || {
        let ring = SharedRing::create(8192).expect("the system has memory");
        let (mut producer, mut consumer) = (ring.producer().expect("free"), ring.consumer().expect("free"));
        assert_eq!(
            format!("{producer:?} {consumer:?}"),
            "Producer { capacity: 8192, is_closed: false, .. } Consumer { capacity: 8192, is_closed: false, .. }"
        );
        assert_eq!((producer.capacity(), consumer.capacity(), consumer.is_empty()), (8192, 8192, true));
        producer.write_all(&[7; 8192]).expect("room");
        producer.flush().expect("it is on its way");
        assert_eq!(consumer.read(&mut []).expect("nothing is always read"), 0);
        assert_eq!((consumer.len(), consumer.is_empty()), (8192, false));
        // The positions are at these two.
        let file = File::from(ring.as_fd().try_clone_to_owned().expect("a descriptor"));
        for at in [128, 384] {
            file.write_all_at(&(u64::MAX / 3).to_ne_bytes(), at).expect("within the file");
        }
        assert_eq!((consumer.len(), producer.spare_capacity()), (0, 0), "nothing can be told");
        for _ in 0..2 {
            assert_eq!(consumer.read(&mut [0; 8]).expect_err("nonsense").kind(), ErrorKind::InvalidData);
            assert_eq!(producer.write(b"x").expect_err("nonsense").kind(), ErrorKind::InvalidData);
        }
    });
}

#[test]
fn what_is_no_ring() {
    assert_eq!(SharedRing::create(0).unwrap_err(), ShareError::Region(RegionError::Empty));
    for bytes in [usize::MAX / 2, usize::MAX] {
        let too_large = ShareError::Region(RegionError::TooLarge { requested: bytes });
        assert_eq!(SharedRing::create(bytes).unwrap_err(), too_large);
    }
    let open = |file: OwnedFd| SharedRing::open(file).unwrap_err();
    assert_eq!(open(File::open("/dev/null").unwrap().into()), ShareError::NotARing);
    assert_eq!(open(File::open(env::current_exe().unwrap()).unwrap().into()), ShareError::NotARing);
    assert_eq!(open(std::io::pipe().unwrap().0.into()), ShareError::NotARing);
    let memory = |seals: libc::c_int| {
        // SAFETY: the name ends with a zero byte.
        let file = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
        assert!(file >= 0);
        // SAFETY: just opened.
        let file = File::from(unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(file) });
        file.set_len(128 << 10).unwrap();
        // SAFETY: no memory is passed.
        let sealed = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_ADD_SEALS, seals) };
        assert_eq!(sealed, 0);
        file
    };
    assert_eq!(open(memory(libc::F_SEAL_SHRINK).into()), ShareError::NotARing, "without the name");
    let unsealed = memory(0);
    unsealed.write_all_at(b"bufmirror ring\x01\x08", 0).unwrap();
    assert_eq!(open(unsealed.into()), ShareError::NotARing, "it could shrink");
    let odd = memory(0);
    odd.write_all_at(b"bufmirror ring\x01\x08", 0).unwrap();
    odd.set_len((64 << 10) + 5000).unwrap();
    // SAFETY: no memory is passed.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&odd), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    assert_eq!(open(odd.into()), ShareError::NotARing, "no whole pages");
    // The size of a real one stays.
    let ring = SharedRing::create(4096).unwrap();
    let file = File::from(OwnedFd::from(ring));
    assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
}

#[test]
fn t12_shared_rings_give_all_back() {
    alone(module_path!(), "t12_shared_rings_give_all_back", LONG, || {
        let held = || [system::open_files(), system::mappings(), system::address_space_bytes()];
        let both = || {
            let ring = SharedRing::create(8192).unwrap();
            let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
            drop(ring);
            producer.put(b"touched").unwrap();
            assert_eq!(consumer.get_some(&mut [0; 100]), 7);
        };
        both();
        let before = held();
        (0..2000).for_each(|_| both());
        let ring = SharedRing::create(8192).unwrap();
        let held_end = ring.producer().unwrap();
        for _ in 0..1000 {
            assert_eq!(ring.producer().unwrap_err(), ShareError::Taken);
        }
        drop((ring, held_end));
        assert_eq!(held(), before, "descriptors, mappings, address space");
    });
}

/// Each step that the system may refuse: the error names the call, nothing stays open, mapped or
/// locked.
#[test]
fn t18_what_the_system_refuses() {
    alone(module_path!(), "t18_what_the_system_refuses", LONG, || {
        const MIB: usize = 1 << 20;
        let held = || [system::open_files(), system::mappings(), system::address_space_bytes()];
        let refused = |error: ShareError, call: &str| match error {
            ShareError::Region(RegionError::Refused { call: failed, errno }) => {
                assert!(failed == call && errno != 0, "{error}")
            }
            _ => panic!("{error}"),
        };
        let ring = SharedRing::create(8 * MIB).unwrap();
        let before = held();
        // No addresses for the ring; for the header there are. A lock that stayed would have the
        // next one find the end taken.
        system::limit(libc::RLIMIT_AS, (system::address_space_bytes() + 4 * MIB) as u64);
        for _ in 0..100 {
            refused(ring.producer().unwrap_err(), "mmap");
        }
        assert_eq!(held(), before, "descriptors, mappings, address space");
        // No descriptors.
        let mut taken = vec![File::open("/dev/null").unwrap()];
        system::limit(libc::RLIMIT_NOFILE, 64);
        while let Ok(file) = File::open("/dev/null") {
            taken.push(file);
        }
        refused(SharedRing::create(1).unwrap_err(), "memfd_create");
        refused(ring.consumer().unwrap_err(), "open");
        // One, for the file: it has no second opening then.
        taken.pop();
        let other = SharedRing::create(1).unwrap();
        refused(other.consumer().unwrap_err(), "open");
        drop((other, taken));
        // No large files.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        system::limit(libc::RLIMIT_FSIZE, MIB as u64);
        refused(SharedRing::create(2 * MIB).unwrap_err(), "ftruncate");
        assert_eq!(held(), before, "descriptors, mappings, address space");
    });
}
