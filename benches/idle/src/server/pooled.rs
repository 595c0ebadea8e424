//! Frames in buffers of a pool: one is taken when there is something to read, or when the length of
//! a frame is known. A silent connection holds none.

use std::io;

use bufworks::frames::{FrameReader, LengthDelimited};
use bufworks::net::read_ready;
use bufworks::{AcquireError, Buf, Lease};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::growing::ended;
use super::sources::Source;
use crate::wire::{self, HEADER_BYTES, MAX_FRAME_BYTES};

/// How the start of a frame is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    /// Into a buffer of this number of bytes, with whatever follows it.
    Ahead(usize),
    /// By itself: then nothing of the pool is held while the frame's buffer is waited for, and its
    /// bytes wait in the system.
    Header,
}

pub(super) async fn serve<S: Source>(socket: TcpStream, source: S, reading: Reading) -> io::Result<()> {
    match reading {
        Reading::Ahead(bytes) => serve_ahead(socket, source, bytes).await,
        Reading::Header => serve_exactly(socket, source).await,
    }
}

async fn serve_ahead<S: Source>(mut socket: TcpStream, source: S, bytes: usize) -> io::Result<()> {
    let mut start = Start::default();
    while let Some(chunk) = read_ready(&mut socket, || source.acquire(bytes)).await? {
        let mut rest: &[u8] = &chunk;
        while let Some(length) = start.take(&mut rest)? {
            if let Some((frame, behind)) = rest.split_at_checked(length) {
                wire::write_answer(&mut socket, frame).await?;
                rest = behind;
            } else {
                let mut frame = source.wait(length).await.map_err(refused)?;
                frame.extend_from_slice(rest).map_err(io::Error::other)?;
                // Nothing is left of it, and the rest of the frame may take its time.
                drop(chunk);
                fill(&mut socket, &mut frame, length).await?;
                wire::write_answer(&mut socket, &frame).await?;
                break;
            }
        }
    }
    ended(start.is_empty())
}

async fn serve_exactly<S: Source>(socket: TcpStream, source: S) -> io::Result<()> {
    let mut frames = FrameReader::new(socket, LengthDelimited::new(MAX_FRAME_BYTES)).by_frame();
    while let Some(frame) = frames.next_frame_async(|length| source.wait(length)).await? {
        wire::write_answer(frames.get_mut(), &frame).await?;
    }
    Ok(())
}

/// Reads until `frame` has `length` bytes.
async fn fill(socket: &mut TcpStream, frame: &mut Buf<impl Lease>, length: usize) -> io::Result<()> {
    while frame.len() < length {
        let missing = length - frame.len();
        let read = socket.read(&mut frame.spare_mut()[..missing]).await?;
        if read == 0 {
            return ended(false);
        }
        frame.commit(read);
    }
    Ok(())
}

fn refused(error: AcquireError) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, error)
}

/// The header of the next frame, as far as it came.
#[derive(Debug, Default)]
struct Start {
    bytes: [u8; HEADER_BYTES],
    len: usize,
}

impl Start {
    /// Takes bytes off `from`, and returns the length of the frame behind them when they are all
    /// there.
    fn take(&mut self, from: &mut &[u8]) -> io::Result<Option<usize>> {
        let taken = from.len().min(HEADER_BYTES - self.len);
        let (head, rest) = from.split_at(taken);
        self.bytes[self.len..][..taken].copy_from_slice(head);
        self.len += taken;
        *from = rest;
        if self.len < HEADER_BYTES {
            return Ok(None);
        }
        self.len = 0;
        wire::length(self.bytes).map(Some)
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_may_come_in_pieces() {
        let mut start = Start::default();
        let mut first: &[u8] = &[0, 0];
        assert_eq!(start.take(&mut first).unwrap(), None);
        assert!(!start.is_empty() && first.is_empty());
        let mut second: &[u8] = &[1, 2, 9, 9];
        assert_eq!(start.take(&mut second).unwrap(), Some(258));
        assert_eq!((start.is_empty(), second), (true, &[9, 9][..]));
        assert!(start.take(&mut &[0xff; 4][..]).is_err());
    }
}
