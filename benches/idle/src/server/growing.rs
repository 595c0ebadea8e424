//! Buffers that grow with their connection: a `BytesMut` for each, and tokio-util's codec.

use std::io;

use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::READ_BYTES;
use crate::wire::{self, HEADER_BYTES, MAX_FRAME_BYTES};

/// A buffer that is filled until it has a frame, as mini-redis does it.
pub(super) async fn serve_bytes_mut(mut socket: TcpStream) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        while let Some(frame) = first_frame(&buffer)? {
            let bytes = HEADER_BYTES + frame.len();
            wire::write_answer(&mut socket, frame).await?;
            buffer.advance(bytes);
        }
        if socket.read_buf(&mut buffer).await? == 0 {
            return ended(buffer.is_empty());
        }
    }
}

/// The frame at the start of `bytes`, if all of it is there.
pub(super) fn first_frame(bytes: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    Ok(rest.get(..wire::length(*header)?))
}

/// The end of a stream, which is an error inside a frame.
pub(super) fn ended(between_frames: bool) -> io::Result<()> {
    if between_frames { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The codec as its documentation has it.
pub(super) async fn serve_codec(socket: TcpStream) -> io::Result<()> {
    let codec = LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec();
    let mut framed = Framed::new(socket, codec);
    while let Some(frame) = framed.next().await {
        // The answers have no length in front: they are written past the codec.
        wire::write_answer(framed.get_mut(), &frame?).await?;
    }
    Ok(())
}
