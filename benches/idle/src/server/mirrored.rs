//! A mirrored ring for each connection, with room for the longest frame.

use std::io;

use bufworks::mirror::MirrorRing;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::growing::{ended, first_frame};
use crate::wire::{self, HEADER_BYTES, MAX_FRAME_BYTES};

pub(super) async fn serve(mut socket: TcpStream) -> io::Result<()> {
    let mut ring = MirrorRing::new(HEADER_BYTES + MAX_FRAME_BYTES).map_err(io::Error::other)?;
    loop {
        while let Some(frame) = first_frame(ring.peek())? {
            let bytes = HEADER_BYTES + frame.len();
            wire::write_answer(&mut socket, frame).await?;
            ring.consume(bytes);
        }
        let room = ring.spare_capacity();
        let room = ring.reserve(room).map_err(io::Error::other)?;
        let read = socket.read(room).await?;
        if read == 0 {
            return ended(ring.is_empty());
        }
        ring.commit(read);
    }
}
