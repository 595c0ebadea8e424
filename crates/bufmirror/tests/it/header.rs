//! Programs that write arbitrary bytes into the header of a shared ring, before it is opened and while
//! it is in use: nothing but the bytes suffers.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use bufmirror::{ShareError, SharedRing, WaitError};
use testkit::bytes::Bytes;

/// Bytes in front of what both ends share, and with it.
const PREAMBLE: u64 = 128;
const SHARED: u64 = 1024;
/// What the file begins with.
const NAME: [u8; 16] = *b"bufmirror ring\x01\x08";
/// The longest piece that is written or read at once.
const PIECE: usize = 20_000;

/// Runs one program. Returns how often an end saw that the header makes no sense.
pub(crate) fn run(data: &[u8]) -> usize {
    let mut corrupt = 0;
    let mut bytes = Bytes::new(data);
    let made = SharedRing::create(4096 * (1 + bytes.below(4))).expect("the system has memory");
    let file = File::from(made.as_fd().try_clone_to_owned().expect("a descriptor is left"));
    let capacity = made.capacity();
    // Some of what stands there before anybody opens it.
    for _ in 0..bytes.below(8) {
        scribble(&file, &mut bytes);
    }
    if bytes.below(16) == 0 {
        rename(&file, &mut bytes);
    }
    let opened = SharedRing::open(made.as_fd().try_clone_to_owned().expect("a descriptor is left"));
    let is_named = name(&file) == NAME;
    let ring = match opened {
        Ok(ring) => ring,
        Err(error) => {
            assert_eq!(error, ShareError::NotARing);
            assert!(!is_named, "a ring of this version is refused");
            return corrupt;
        }
    };
    assert!(is_named, "a file that does not begin with the name is opened");
    assert_eq!(ring.capacity(), capacity);
    let mut producer = ring.producer().expect("the locks are the system's");
    let mut consumer = ring.consumer().expect("the locks are the system's");
    let mut piece = vec![0x5A; PIECE];
    for _ in 0..60 {
        if bytes.is_empty() {
            break;
        }
        let n = bytes.size().min(PIECE);
        match bytes.below(12) {
            0..=3 => scribble(&file, &mut bytes),
            4 => assert!(producer.put_some(&piece[..n]) <= n.min(capacity)),
            5 => assert!(consumer.get_some(&mut piece[..n]) <= n.min(capacity)),
            6 => assert!(producer.put(&piece[..n]).is_err() || n <= capacity),
            7 => assert!(consumer.get(&mut piece[..n]).is_err() || n <= capacity),
            8 => {
                let ended =
                    [producer.wait_timeout(n, Duration::ZERO), consumer.wait_timeout(n, Duration::ZERO)];
                corrupt += ended.iter().filter(|ended| **ended == Err(WaitError::Corrupt)).count();
            }
            9 => assert!(producer.is_closed() || ring.consumer().is_err()),
            10 => {
                drop(producer);
                producer = ring.producer().expect("the end is free");
            }
            _ => {
                drop(consumer);
                consumer = ring.consumer().expect("the end is free");
            }
        }
        assert!(producer.spare_capacity() <= capacity && consumer.len() <= capacity);
    }
    corrupt
}

/// What the file begins with now.
fn name(file: &File) -> [u8; 16] {
    let mut found = [0; NAME.len()];
    file.read_exact_at(&mut found, 0).expect("within the file");
    found
}

/// Writes a name: any bytes, or the true one with a change in one byte, which may be none.
fn rename(file: &File, bytes: &mut Bytes<'_>) {
    let mut name = NAME;
    if bytes.below(2) == 0 {
        name = name.map(|_| bytes.byte());
    } else {
        name[bytes.below(NAME.len())] ^= bytes.byte();
    }
    file.write_all_at(&name, 0).expect("within the file");
}

/// Writes a word, mostly one that might stand there.
fn scribble(file: &File, bytes: &mut Bytes<'_>) {
    let word = u64::from(bytes.byte()) * 8 % (SHARED - PREAMBLE);
    let at = PREAMBLE + if bytes.below(2) == 0 { word } else { word / 256 % 2 * 256 };
    let value = match bytes.below(5) {
        0 => bytes.word(),
        1 => u64::from(bytes.number()),
        2 => u64::MAX - u64::from(bytes.number()),
        3 => u64::from(bytes.byte()),
        _ => 1 << bytes.below(64),
    };
    file.write_all_at(&value.to_ne_bytes(), at).expect("within the file");
}
