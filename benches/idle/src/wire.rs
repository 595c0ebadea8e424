//! The protocol: frames with their length in front, each answered with its length and a checksum.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Bytes in front of a frame: its length, the most significant byte first.
pub const HEADER_BYTES: usize = 4;
/// Bytes of an answer: the frame's length, and its checksum.
pub const ANSWER_BYTES: usize = 8;
/// A longer frame is an error.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// The header of a frame of `length` bytes.
///
/// # Errors
///
/// `InvalidInput` when frames may not be that long.
pub fn header(length: usize) -> io::Result<[u8; HEADER_BYTES]> {
    let short = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME_BYTES);
    short.map(u32::to_be_bytes).ok_or_else(|| too_long(length, io::ErrorKind::InvalidInput))
}

/// The length that a header says.
///
/// # Errors
///
/// `InvalidData` when frames may not be that long.
pub fn length(header: [u8; HEADER_BYTES]) -> io::Result<usize> {
    let length = u32::from_be_bytes(header) as usize;
    if length <= MAX_FRAME_BYTES { Ok(length) } else { Err(too_long(length, io::ErrorKind::InvalidData)) }
}

fn too_long(length: usize, kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, format!("a frame of {length} bytes; the most is {MAX_FRAME_BYTES}"))
}

/// Whether the sender of a frame wants it back behind the answer: the first byte is odd.
#[must_use]
pub fn is_wanted_back(frame: &[u8]) -> bool {
    frame.first().is_some_and(|first| first & 1 == 1)
}

/// What a frame is answered with.
#[must_use]
pub fn answer(frame: &[u8]) -> [u8; ANSWER_BYTES] {
    let mut answer = [0; ANSWER_BYTES];
    let (length, sum) = answer.split_at_mut(HEADER_BYTES);
    // Frames are at most `MAX_FRAME_BYTES` long.
    length.copy_from_slice(&(frame.len() as u32).to_be_bytes());
    sum.copy_from_slice(&crc32fast::hash(frame).to_be_bytes());
    answer
}

/// Writes the answer to a frame, and the frame behind it where it is wanted back.
///
/// # Errors
///
/// When the stream fails.
pub async fn write_answer(to: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> io::Result<()> {
    to.write_all(&answer(frame)).await?;
    if is_wanted_back(frame) { to.write_all(frame).await } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_on_both_sides() {
        assert_eq!(length(header(MAX_FRAME_BYTES).unwrap()).unwrap(), MAX_FRAME_BYTES);
        assert_eq!(header(MAX_FRAME_BYTES + 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(length([0xff; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
