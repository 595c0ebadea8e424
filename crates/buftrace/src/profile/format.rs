//! The file of a heap recording: version 2 of the [format](mod@crate::format).
//!
//! ```text
//! offset  bytes  what
//! 0       8      magic: the letters `BUFTRACE`
//! 8       1      version: 2
//! 9       1      flags: all 0
//! 10             the blocks, one behind the other
//! ```
//!
//! A program writes blocks while it runs. Each is self-contained, so a truncated file is read up to
//! its last complete block:
//!
//! ```text
//! offset  bytes  what
//! 0       4      length of the payload, least significant byte first: 1 to MAX_BLOCK_BYTES
//! 4       4      CRC-32 (ISO-HDLC, that of gzip) of the payload, least significant byte first
//! 8              the payload: records, the last of which ends with it
//! ```
//!
//! *Numbers* and *texts* are as in version 1. A record begins with a number, its tag:
//!
//! ```text
//! head     bits 0 to 2: the kind
//!          bit 3: 1 when the thread is another than that of the event before (at first: thread 0)
//!          bits 4 and 5: flags of the kind
//!          from bit 6: nanoseconds since the event before (at first: since the recording began)
//! thread   only when bit 3 of the head is set
//! ```
//!
//! Acquire, release, resize and state are events. All bits above the kind are 0 in the tag of a
//! record that is not an event. The tag is followed by these fields:
//!
//! | kind | name | numbers and texts | flags |
//! | --- | --- | --- | --- |
//! | 0 | start | text: the recorder; text: the program; its process id; the start in seconds since 1970; the size of the smallest recorded request | |
//! | 1 | rate | the mean number of requested bytes between two samples; 0: all requests | |
//! | 2 | module | address of its code in the process; length; offset in its file; address in its file; text: build id in hexadecimal digits; text: path | |
//! | 3 | stack | the number of addresses, at most [`MAX_FRAMES`]; the addresses, innermost first | |
//! | 4 | acquire | stack; bytes; if bit 5 is set: the previous size of a grown object | bit 4: zeroed; bit 5: grown |
//! | 5 | release | distance to the object | |
//! | 6 | resize | distance to the object; bytes | |
//! | 7 | state | events that were lost so far; the ending: 0 it continues, 1 it was stopped, 2 the file reached its limit; of the process so far: processor time in nanoseconds, page faults, the most resident bytes, forks, processor time of its children in nanoseconds | |
//!
//! The first record is a start; there is only one. A rate precedes the first acquire and applies
//! until the next rate. Stacks are numbered from 1 in the order of their records; stack 0 is
//! *unknown*. An acquire introduces an object. A distance of 1 is the newest object, 2 the one
//! before it. After its release an object has no more events. A state that ends the recording is
//! the last record.
//!
//! An address in a stack is a return address: the call is one byte before it. An address `a` in the
//! memory of a module corresponds to `a - address in the process + address in the file` in its
//! file, as symbolisers expect it. No event is later than [`MAX_TIME_NS`](crate::MAX_TIME_NS).

pub use crate::format::{MAGIC, MAX_TEXT_BYTES};

/// The version of a heap recording.
pub const VERSION: u8 = 2;

/// The longest payload of a block, in bytes.
pub const MAX_BLOCK_BYTES: usize = 1 << 20;

/// The most addresses of one stack.
pub const MAX_FRAMES: usize = 128;

/// In front of the payload of a block.
pub(crate) const BLOCK_HEAD_BYTES: usize = 8;

pub(crate) const KIND_START: u8 = 0;
pub(crate) const KIND_RATE: u8 = 1;
pub(crate) const KIND_MODULE: u8 = 2;
pub(crate) const KIND_STACK: u8 = 3;
pub(crate) const KIND_ACQUIRE: u8 = 4;
pub(crate) const KIND_RELEASE: u8 = 5;
pub(crate) const KIND_RESIZE: u8 = 6;
pub(crate) const KIND_STATE: u8 = 7;

/// The kind is in these bits of a head.
pub(crate) const KIND_MASK: u64 = 7;
pub(crate) const HEAD_OTHER_THREAD: u64 = 1 << 3;
pub(crate) const HEAD_ZEROED: u64 = 1 << 4;
pub(crate) const HEAD_GROWN: u64 = 1 << 5;
pub(crate) const HEAD_BITS: u32 = 6;

pub(crate) const GOES_ON: u64 = 0;
pub(crate) const STOPPED: u64 = 1;
pub(crate) const LIMIT: u64 = 2;

/// Returns the CRC-32 of `bytes`, as gzip computes it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc32;

    /// The check value that every catalogue of checksums lists.
    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
