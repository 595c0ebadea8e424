//! What a reader of frames leaves in the process's memory of a pool that wipes (T35).

use core::time::Duration;
use std::io::{self, Read};

use buftest::secret;
use bufworks::HeapPool;
use bufworks::frames::{FrameError, FrameReader, Framing, LengthDelimited};

const HEADER: [u8; 4] = 3000_u32.to_be_bytes();
const TOTAL: usize = HEADER.len() + 3000;

/// Gives frames of 3000 secret bytes, without memory of its own. `at` is how many it has given.
struct Secrets {
    at: usize,
}

impl Read for Secrets {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len();
        let mut into = into;
        while !into.is_empty() {
            let at = self.at % TOTAL;
            let (here, rest) = match HEADER.get(at..).filter(|left| !left.is_empty()) {
                Some(left) => {
                    let (here, rest) = into.split_at_mut(left.len().min(into.len()));
                    here.copy_from_slice(&left[..here.len()]);
                    (here, rest)
                }
                None => {
                    let (here, rest) = into.split_at_mut((TOTAL - at).min(into.len()));
                    secret::write(here);
                    (here, rest)
                }
            };
            self.at += here.len();
            into = rest;
        }
        Ok(n)
    }
}

/// Reads twenty frames, drops each of them, and drops the reader amid the next one.
fn read_all(framing: impl Framing, stream: Secrets, chunk: usize) {
    let mut pool = HeapPool::new().with_wipe(true);
    let mut reader = FrameReader::new(stream, framing).chunks_of(chunk);
    for turn in 0..20 {
        let frame = reader.next_frame(|bytes| pool.acquire(bytes)).unwrap().unwrap();
        assert_eq!(frame.len(), 3000);
        assert!(turn > 0 || secret::bytes_in_memory() > 0, "it is there while it is in use");
    }
    let refused = reader.next_frame(|bytes| Err(bufworks::AcquireError::OutOfMemory { requested: bytes }));
    assert!(matches!(refused, Ok(_) | Err(FrameError::Acquire(_))));
}

#[test]
fn t35_a_reader_leaves_no_secret_in_memory() {
    buftest::process::alone(
        module_path!(),
        "t35_a_reader_leaves_no_secret_in_memory",
        Duration::from_secs(120),
        || {
            for chunk in [1000, 4096, 8192] {
                read_all(LengthDelimited::new(4000), Secrets { at: 0 }, chunk);
                assert_eq!(secret::bytes_in_memory(), 0, "secret bytes are left, chunks of {chunk}");
            }
        },
    );
}
