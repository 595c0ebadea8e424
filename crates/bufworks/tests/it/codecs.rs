//! Codecs that were written for `BytesMut`, line by line, over the buffers of every strategy: the
//! same code, and the same frames.

use std::fmt::Debug;
use std::io::Cursor;
use std::ops::Deref;

use bufworks::{Buf, BufferPool, Frozen, Lease, SplitLease};
use bytes::{Buf as _, BufMut, Bytes, BytesMut};

/// What the codecs use of `BytesMut`.
trait Incoming: bytes::Buf + BufMut + Deref<Target = [u8]> {
    /// What `reserve` is there, which a buffer from a pool does not have: room for at least one
    /// byte.
    fn make_room(&mut self);
}

impl Incoming for BytesMut {
    fn make_room(&mut self) {
        self.reserve(64);
    }
}

/// A pool and the buffer of a connection.
struct Connection<P: BufferPool> {
    pool: P,
    buf: Buf<P::Lease>,
}

impl<P: BufferPool> Connection<P> {
    const BYTES: usize = 512;

    fn new(mut pool: P) -> Self {
        let buf = pool.acquire(Self::BYTES).expect("a small request");
        Self { pool, buf }
    }
}

impl<P: BufferPool> Deref for Connection<P> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buf
    }
}

impl<P: BufferPool> bytes::Buf for Connection<P> {
    fn remaining(&self) -> usize {
        self.buf.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.buf.chunk()
    }

    fn advance(&mut self, n: usize) {
        self.buf.advance(n);
    }
}

// SAFETY: as of the buffer.
unsafe impl<P: BufferPool> BufMut for Connection<P> {
    fn remaining_mut(&self) -> usize {
        self.buf.remaining_mut()
    }

    unsafe fn advance_mut(&mut self, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.buf.advance_mut(n) }
    }

    fn chunk_mut(&mut self) -> &mut bytes::buf::UninitSlice {
        self.buf.chunk_mut()
    }
}

impl<P: BufferPool> Incoming for Connection<P> {
    fn make_room(&mut self) {
        if !self.buf.has_remaining_mut() {
            let mut next = self.pool.acquire(self.buf.len() + Self::BYTES).expect("room for what is left");
            next.put_slice(&self.buf);
            self.buf = next;
        }
    }
}

/// Redis' protocol, as mini-redis has it: look whether a frame is complete, parse it, drop its
/// bytes.
mod resp {
    use super::{Bytes, Cursor, Incoming};

    #[derive(Debug, Clone, PartialEq)]
    pub(super) enum Frame {
        Simple(String),
        Error(String),
        Integer(u64),
        Bulk(Bytes),
        Null,
        Array(Vec<Frame>),
    }

    #[derive(Debug, PartialEq)]
    pub(super) enum Error {
        Incomplete,
        Invalid,
    }

    impl Frame {
        fn check(src: &mut Cursor<&[u8]>) -> Result<(), Error> {
            match get_u8(src)? {
                b'+' | b'-' => get_line(src).map(drop),
                b':' => get_decimal(src).map(drop),
                b'$' if peek_u8(src)? == b'-' => skip(src, 4),
                b'$' => {
                    let len = get_decimal(src)? as usize;
                    skip(src, len + 2)
                }
                b'*' => (0..get_decimal(src)?).try_for_each(|_| Self::check(src)),
                _ => Err(Error::Invalid),
            }
        }

        fn parse(src: &mut Cursor<&[u8]>) -> Result<Self, Error> {
            match get_u8(src)? {
                b'+' => Ok(Self::Simple(text(get_line(src)?)?)),
                b'-' => Ok(Self::Error(text(get_line(src)?)?)),
                b':' => Ok(Self::Integer(get_decimal(src)?)),
                b'$' if peek_u8(src)? == b'-' => match get_line(src)? {
                    b"-1" => Ok(Self::Null),
                    _ => Err(Error::Invalid),
                },
                b'$' => {
                    let len = get_decimal(src)? as usize;
                    if bytes::Buf::remaining(src) < len + 2 {
                        return Err(Error::Incomplete);
                    }
                    let data = Bytes::copy_from_slice(&bytes::Buf::chunk(src)[..len]);
                    skip(src, len + 2)?;
                    Ok(Self::Bulk(data))
                }
                b'*' => {
                    let len = get_decimal(src)?;
                    (0..len).map(|_| Self::parse(src)).collect::<Result<_, _>>().map(Self::Array)
                }
                _ => Err(Error::Invalid),
            }
        }

        pub(super) fn write(&self, dst: &mut Vec<u8>) {
            match self {
                Self::Simple(text) => dst.extend(format!("+{text}\r\n").as_bytes()),
                Self::Error(text) => dst.extend(format!("-{text}\r\n").as_bytes()),
                Self::Integer(number) => dst.extend(format!(":{number}\r\n").as_bytes()),
                Self::Null => dst.extend(b"$-1\r\n"),
                Self::Bulk(data) => {
                    dst.extend(format!("${}\r\n", data.len()).as_bytes());
                    dst.extend(&data[..]);
                    dst.extend(b"\r\n");
                }
                Self::Array(frames) => {
                    dst.extend(format!("*{}\r\n", frames.len()).as_bytes());
                    frames.iter().for_each(|frame| frame.write(dst));
                }
            }
        }
    }

    fn peek_u8(src: &mut Cursor<&[u8]>) -> Result<u8, Error> {
        if !bytes::Buf::has_remaining(src) {
            return Err(Error::Incomplete);
        }
        Ok(bytes::Buf::chunk(src)[0])
    }

    fn get_u8(src: &mut Cursor<&[u8]>) -> Result<u8, Error> {
        if !bytes::Buf::has_remaining(src) {
            return Err(Error::Incomplete);
        }
        Ok(bytes::Buf::get_u8(src))
    }

    fn skip(src: &mut Cursor<&[u8]>, n: usize) -> Result<(), Error> {
        if bytes::Buf::remaining(src) < n {
            return Err(Error::Incomplete);
        }
        bytes::Buf::advance(src, n);
        Ok(())
    }

    fn get_line<'a>(src: &mut Cursor<&'a [u8]>) -> Result<&'a [u8], Error> {
        let start = src.position() as usize;
        let all = *src.get_ref();
        let end = all[start..].windows(2).position(|end| end == b"\r\n").ok_or(Error::Incomplete)?;
        src.set_position((start + end + 2) as u64);
        Ok(&all[start..start + end])
    }

    fn get_decimal(src: &mut Cursor<&[u8]>) -> Result<u64, Error> {
        text(get_line(src)?)?.parse().map_err(|_| Error::Invalid)
    }

    fn text(line: &[u8]) -> Result<String, Error> {
        String::from_utf8(line.to_vec()).map_err(|_| Error::Invalid)
    }

    /// `Connection::parse_frame`.
    pub(super) fn parse_frame(buffer: &mut impl Incoming) -> Result<Option<Frame>, Error> {
        let mut buf = Cursor::new(&buffer[..]);
        match Frame::check(&mut buf) {
            Ok(()) => {
                let len = buf.position() as usize;
                buf.set_position(0);
                let frame = Frame::parse(&mut buf)?;
                buffer.advance(len);
                Ok(Some(frame))
            }
            Err(Error::Incomplete) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `Connection::read_frame`, until the peer hangs up.
    pub(super) fn read_frames(buffer: &mut impl Incoming, mut wire: &[u8], pieces: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            while let Some(frame) = parse_frame(buffer).expect("frames are right") {
                frames.push(frame);
            }
            buffer.make_room();
            let n = wire.len().min(pieces).min(buffer.remaining_mut());
            if n == 0 {
                assert!(!buffer.has_remaining(), "the connection was reset by the peer");
                return frames;
            }
            buffer.put_slice(&wire[..n]);
            wire = &wire[n..];
        }
    }
}

/// Frames of every kind, some nested, some of no bytes.
fn session() -> (Vec<resp::Frame>, Vec<u8>) {
    use resp::Frame;
    let mut rng = fastrand::Rng::with_seed(16);
    let mut frames = vec![
        Frame::Simple("OK".into()),
        Frame::Error("ERR no such command".into()),
        Frame::Null,
        Frame::Bulk(Bytes::new()),
        Frame::Array(vec![]),
        Frame::Array(vec![
            Frame::Bulk(Bytes::from("get")),
            Frame::Array(vec![Frame::Null, Frame::Integer(7)]),
        ]),
    ];
    for number in 0..150 {
        let value: Vec<u8> = (0..rng.usize(..400)).map(|_| rng.u8(..)).collect();
        let set = [Bytes::from("set"), Bytes::from(format!("key {number}")), Bytes::from(value)];
        frames.push(Frame::Array(set.into_iter().map(Frame::Bulk).collect()));
        frames.push(Frame::Integer(rng.u64(..)));
    }
    let mut wire = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut wire));
    (frames, wire)
}

/// As mini-redis has it.
fn mini_redis<P: BufferPool>(make: impl Fn() -> P) {
    let (sent, wire) = session();
    for pieces in [1, 7, 100, 4096] {
        let of_bytes = resp::read_frames(&mut BytesMut::with_capacity(4096), &wire, pieces);
        assert_eq!(of_bytes, sent);
        let ours = resp::read_frames(&mut Connection::new(make()), &wire, pieces);
        // One by one, for a message that one can read.
        for (at, (ours, theirs)) in ours.iter().zip(&of_bytes).enumerate() {
            assert_eq!(ours, theirs, "frame {at}, in pieces of {pieces}");
        }
        assert_eq!(ours.len(), of_bytes.len());
    }
}

/// What a codec with lengths in front, as tokio-util's, uses of a buffer that splits.
trait Splitting: bytes::Buf + BufMut + Deref<Target = [u8]> {
    type Payload: AsRef<[u8]> + Debug;
    fn split_to(&mut self, at: usize) -> Self;
    fn freeze(self) -> Self::Payload;
}

impl Splitting for BytesMut {
    type Payload = Bytes;
    fn split_to(&mut self, at: usize) -> Self {
        self.split_to(at)
    }
    fn freeze(self) -> Bytes {
        self.freeze()
    }
}

impl<L: SplitLease> Splitting for Buf<L> {
    type Payload = Frozen<L>;
    fn split_to(&mut self, at: usize) -> Self {
        self.split_to(at)
    }
    fn freeze(self) -> Frozen<L> {
        self.freeze()
    }
}

/// `LengthDelimitedCodec::decode`: the head tells the length, and the payload is split off.
#[derive(Default)]
struct Lengths {
    expected: Option<usize>,
}

impl Lengths {
    fn decode<B: Splitting>(&mut self, src: &mut B) -> Option<B::Payload> {
        let len = match self.expected {
            Some(len) => len,
            None => {
                if src.remaining() < 4 {
                    return None;
                }
                let len = src.get_u32() as usize;
                self.expected = Some(len);
                len
            }
        };
        if src.len() < len {
            return None;
        }
        self.expected = None;
        Some(src.split_to(len).freeze())
    }
}

fn decode_all<B: Splitting>(mut src: B, mut wire: &[u8], pieces: usize) -> Vec<B::Payload> {
    let (mut codec, mut payloads) = (Lengths::default(), Vec::new());
    while !wire.is_empty() {
        let n = wire.len().min(pieces);
        src.put_slice(&wire[..n]);
        wire = &wire[n..];
        while let Some(payload) = codec.decode(&mut src) {
            payloads.push(payload);
        }
    }
    assert!(!src.has_remaining());
    payloads
}

fn lengths<P: BufferPool<Lease: SplitLease>>(make: impl Fn() -> P) {
    let mut wire = Vec::new();
    for number in 0..100_u32 {
        let len = number * 37 % 200;
        wire.put_u32(len);
        wire.put_bytes(number as u8, len as usize);
    }
    for pieces in [1, 13, 5000] {
        let theirs = decode_all(BytesMut::with_capacity(wire.len()), &wire, pieces);
        let ours = decode_all(make().acquire(wire.len()).expect("room for all"), &wire, pieces);
        assert_eq!((theirs.len(), ours.len()), (100, 100));
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours.as_ref(), theirs.as_ref(), "payload {at}, in pieces of {pieces}");
        }
        drop(ours);
    }
}

/// Nothing of a frame that was consumed is sent again: what `advance` once did to a port that
/// compiled.
fn sends_each_once<L: Lease>(mut buf: Buf<L>) {
    buf.put_slice(b"first second");
    let mut socket = Vec::new();
    // `AsyncWriteExt::write_buf`, five bytes at a time.
    while buf.has_remaining() {
        let n = buf.remaining().min(5);
        socket.extend_from_slice(&buf.chunk()[..n]);
        buf.advance(n);
    }
    assert_eq!(socket, b"first second");
}

macro_rules! codecs {
    ($module:ident, $make:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "of some strategies")]
            use bufworks::BufferPool;

            #[test]
            fn mini_redis() {
                super::mini_redis(|| $make);
            }

            #[test]
            fn lengths() {
                super::lengths(|| $make);
            }

            #[test]
            fn sends_each_once() {
                super::sends_each_once($make.acquire(64).expect("a small request"));
            }
        }
    };
}

codecs!(any, crate::any::built("heap"));

/// Each strategy's own pool.
macro_rules! of_each {
    (
        {}
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        $(
            #[cfg(feature = $feature)]
            codecs!($module, crate::own::$module());
        )*
    };
}
strategies!(of_each! {});
