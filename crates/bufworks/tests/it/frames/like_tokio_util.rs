//! What tokio-util's tests say of its codecs, of readers and of the codec here: its `length_delimited`, and lines and any delimiter of its `codecs`.

use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use bufworks::frames::{Affix, Parsed, write_frames};
use bufworks::frames::{
    Delimited, FrameError, FrameReader, Framing, LengthDelimited, PoolCodec, VarintDelimited,
};
use bufworks::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, PoolStats};
use bytes::BytesMut;
use tokio_util::codec::length_delimited::Builder;
use tokio_util::codec::{Decoder, Encoder};

/// Lends pieces, and would block between two of them.
struct Pieces<'a>(Vec<&'a [u8]>);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.first_mut() {
            None => Ok(0),
            Some([]) => {
                self.0.remove(0);
                Err(ErrorKind::WouldBlock.into())
            }
            Some(piece) => piece.read(into),
        }
    }
}

/// A frame, or what is wrong with one, by the name of the error.
type Next = Result<Vec<u8>, &'static str>;

fn name(error: &FrameError) -> &'static str {
    match error {
        FrameError::TooLong { .. } => "too long",
        FrameError::TooShort { .. } => "too short",
        FrameError::Truncated => "truncated",
        FrameError::Contradiction => "contradiction",
        other => panic!("{other}"),
    }
}

/// Up to the stream's end, or to a second error of one kind: then there are only more of these.
fn collect(mut next: impl FnMut() -> Option<Next>) -> Vec<Next> {
    let mut all: Vec<Next> = Vec::new();
    while let Some(one) = next() {
        if one.is_err() && all.last() == Some(&one) {
            break;
        }
        all.push(one);
    }
    all
}

/// What a stream in pieces has, in each way to read it, which have to agree.
fn read(framing: &(impl Framing + Copy), pieces: &[&[u8]]) -> Vec<Next> {
    let reader = || FrameReader::<_, _, HeapLease>::new(Pieces(pieces.to_vec()), *framing);
    let readers = [reader(), reader().chunks_of(1), reader().chunks_of(7), reader().by_frame()];
    let mut found = readers.map(|mut reader| {
        collect(|| {
            loop {
                return match reader.next_frame(|bytes| HeapPool::new().acquire(bytes)) {
                    Err(FrameError::Io(error)) if error.kind() == ErrorKind::WouldBlock => continue,
                    other => other
                        .map(|frame| frame.map(|frame| frame.to_vec()))
                        .map_err(|error| name(&error))
                        .transpose(),
                };
            }
        })
    });
    let mut codec = PoolCodec::new(HeapPool::new(), *framing);
    let (mut stream, mut pieces) = (BytesMut::new(), pieces.iter());
    let decoded = collect(|| {
        loop {
            let decoded = codec.decode(&mut stream);
            let decoded = match decoded {
                Ok(None) => match pieces.next() {
                    Some(piece) => {
                        stream.extend_from_slice(piece);
                        continue;
                    }
                    None => codec.decode_eof(&mut stream),
                },
                other => other,
            };
            return decoded
                .map(|frame| frame.map(|frame| frame.to_vec()))
                .map_err(|error| name(&error))
                .transpose();
        }
    });
    for other in &found {
        assert_eq!(*other, decoded, "{pieces:?}");
    }
    std::mem::take(&mut found[0])
}

fn frames<const N: usize>(frames: [&[u8]; N]) -> Vec<Next> {
    frames.map(|frame| Ok(frame.to_vec())).into()
}

fn lengths() -> LengthDelimited {
    LengthDelimited::new(8 << 20)
}

#[test]
fn lengths_in_packets() {
    assert_eq!(read(&lengths(), &[]), []);
    assert_eq!(read(&lengths(), &[b"\0\0\0\x09abcdefghi"]), frames([b"abcdefghi"]));
    assert_eq!(read(&lengths().little_endian(), &[b"\x09\0\0\0abcdefghi"]), frames([b"abcdefghi"]));
    assert_eq!(read(&lengths().length_bytes(1), &[b"\x09abcdefghi"]), frames([b"abcdefghi"]));
    let three = frames([b"abcdefghi", b"123", b"hello world"]);
    assert_eq!(read(&lengths(), &[b"\0\0\0\x09abcdefghi\0\0\0\x03123\0\0\0\x0bhello world"]), three);
    let packets: [&[u8]; 5] = [b"\0\0", b"\0\x09abc", b"defghi", b"\0\0\0\x0312", b"3\0\0\0\x0bhello world"];
    assert_eq!(read(&lengths(), &packets), three);
}

#[test]
fn lengths_that_are_cut_off_or_too_large() {
    assert_eq!(read(&lengths(), &[b"\0\0"]), [Err("truncated")]);
    assert_eq!(read(&lengths(), &[b"", b"\0", b""]), [Err("truncated")]);
    assert_eq!(read(&lengths(), &[b"\0\0\0\x09ab", b"cd", b""]), [Err("truncated")]);
    assert_eq!(read(&LengthDelimited::new(5), &[b"\0\0\0\x09abcdefghi"]), [Err("too long")]);
}

#[test]
fn headers_with_more_in_them() {
    let offset = lengths().length_bytes(2).offset(4);
    assert_eq!(read(&offset, &[b"zzzz\0\x09abcdefghi"]), frames([b"abcdefghi"]));
    let kept = lengths().length_bytes(2).offset(2).skip(0).adjustment(4);
    let wire: [&[u8]; 3] = [b"xx\0\x09abcdefghi", b"yy\0\x03123", b"zz\0\x0bhello world"];
    assert_eq!(read(&kept, &[&wire.concat()]), frames(wire));
    let skipped = lengths().length_bytes(3).skip(4);
    assert_eq!(read(&skipped, &[b"\0\0\x0b\x0cHello world"]), frames([b"Hello world"]));
    let includes = lengths().length_bytes(2).adjustment(-2);
    let three = frames([b"abcdefghi", b"123", b"hello world"]);
    let wire = b"\0\x0babcdefghi\0\x05123\0\x0dhello world";
    assert_eq!(read(&includes, &[wire]), three);
    assert_eq!(read(&lengths().length_bytes(2).counts_header(), &[wire]), three);
    assert_eq!(read(&includes, &[b"\0\x01"]), [Err("too short")]);
}

#[test]
fn written_lengths() {
    let written = |framing: &LengthDelimited, frame: &[u8]| {
        let (mut wire, mut encoded) = (Vec::new(), BytesMut::new());
        let wrote = write_frames(&mut wire, framing, &[frame]).map_err(|error| error.to_string());
        let put = PoolCodec::new(HeapPool::new(), *framing).encode(frame, &mut encoded);
        assert_eq!((put.map_err(|error| error.to_string()), &encoded[..]), (wrote.clone(), &wire[..]));
        wrote.map(|()| wire)
    };
    assert_eq!(written(&lengths(), b"abcdefghi").unwrap(), b"\0\0\0\x09abcdefghi");
    assert_eq!(written(&lengths().adjustment(-2), b"abcdefghi").unwrap(), b"\0\0\0\x0babcdefghi");
    assert_eq!(written(&lengths().little_endian(), b"abcdefghi").unwrap(), b"\x09\0\0\0abcdefghi");
    assert_eq!(written(&lengths().length_bytes(1), b"abcdefghi").unwrap(), b"\x09abcdefghi");
    assert!(written(&LengthDelimited::new(5), b"abcdef").unwrap_err().contains("limit of 5"));
    assert!(written(&lengths().length_bytes(1), &[0; 256]).unwrap_err().contains("limit of 255"));
    // Less than what is added to the length.
    assert!(written(&lengths().adjustment(3), b"ab").is_err());
    let kept = lengths().length_bytes(2).offset(1).skip(0).adjustment(3);
    assert_eq!(written(&kept, b"T\0\x02hi").unwrap(), b"T\0\x02hi");
    assert!(written(&kept, b"T\0\x03hi").unwrap_err().contains("another length"));
    assert!(written(&kept, b"T\0").is_err());
}

/// Random settings and streams, decoded here and there; what was decoded is written, and read again.
#[test]
fn random_settings_decode_as_tokio_utils() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut decoded = 0;
    for _ in 0..testkit::trials::scaled(2000) {
        let (offset, width, skip) = (random.usize(..6), random.usize(1..=8), random.usize(..16));
        let adjustment = random.isize(-12..12);
        let is_little = random.bool();
        let mut theirs = Builder::new();
        theirs
            .length_field_offset(offset)
            .length_field_length(width)
            .length_adjustment(adjustment)
            .num_skip(skip);
        let mut ours = lengths().offset(offset).length_bytes(width).adjustment(adjustment).skip(skip);
        if is_little {
            theirs.little_endian();
            ours = ours.little_endian();
        }
        let mut wire = Vec::new();
        for _ in 0..4 {
            let number = random.u64(..40);
            let length = usize::try_from(number as i64 + adjustment as i64).unwrap_or(0);
            let begin = wire.len();
            wire.resize_with(begin + (skip + length).max(offset + width), || random.u8(..));
            let bytes = if is_little { number.to_le_bytes() } else { number.to_be_bytes() };
            let bytes = if is_little { &bytes[..width] } else { &bytes[8 - width..] };
            wire[begin + offset..][..width].copy_from_slice(bytes);
        }
        let (mut codec, mut stream) = (theirs.new_codec(), BytesMut::from(&wire[..]));
        for one in read(&ours, &[&wire]) {
            // A frame that ends in its own header is an error here, and theirs begins the next one in it.
            let Ok(frame) = one else { break };
            let same = codec.decode(&mut stream).unwrap().expect("a frame");
            assert_eq!(frame, same, "{ours:?} {wire:?}");
            decoded += 1;
            let mut again = Vec::new();
            write_frames(&mut again, &ours, &[&frame]).unwrap();
            assert_eq!(read(&ours, &[&again]), [Ok(frame)], "{ours:?}");
        }
    }
    assert!(decoded > 100, "{decoded}");
}

#[test]
fn lines() {
    let lines = Delimited::byte(b'\n', usize::MAX);
    let found = read(&lines, &[b"line 1\nline 2\r\nline 3\n\r\n\r", b"k"]);
    assert_eq!(found, frames([b"line 1", b"line 2\r", b"line 3", b"\r", b"\rk"]));
}

#[test]
fn lines_that_are_too_long_are_skipped() {
    let lines = |limit| Delimited::byte(b'\n', limit).skip_too_long();
    let ok = |line: &str| Ok(line.as_bytes().to_vec());
    let long = || Err("too long");
    assert_eq!(
        read(&lines(6), &[b"line 1 is too long\nline 2\nline 3\r\nline 4\n\nk"]),
        [long(), ok("line 2"), long(), ok("line 4"), ok(""), ok("k")]
    );
    assert_eq!(read(&lines(6), &[b"line ", b"too l", b"ong\n", b"line 2", b"\n"]), [long(), ok("line 2")]);
    assert_eq!(read(&lines(10), &[b"line ", b"too l", b"ong\n"]), [long()]);
    assert_eq!(read(&lines(10), &[b"line ", b"too long!\n"]), [long()]);
    assert_eq!(read(&lines(5), &[b"hello", b"\nworld"]), [ok("hello"), ok("world")]);
    assert_eq!(read(&lines(1), &[b"aa", b"a"]), [long()]);
    let twice: [&[u8]; 4] = [b"line ", b"too very l", b"aaaaaaaaaaaaaaaaaaaaaaa", b"ong\nshort\n"];
    assert_eq!(read(&lines(11), &twice), [long(), ok("short")]);
    // The delimiter comes in two pieces; the next long line is there at once, the last has no end.
    let two = Delimited::sequence(b"\r\n", 3).unwrap().skip_too_long();
    assert_eq!(
        read(&two, &[b"abcdef\r", b"\nok\r\nabcd\r\nxy\r\nabcdefgh"]),
        [long(), ok("ok"), long(), ok("xy"), long()]
    );
    // A stream that ends in what is skipped ended inside a frame.
    let cut = || Err("truncated");
    assert_eq!(
        read(&two.must_end(), &[b"abcdefgh\r", b"\nok\r\nabcdefgh"]),
        [long(), ok("ok"), long(), cut()]
    );
    assert_eq!(read(&two.must_end(), &[b"abcdefgh", b"\r\n"]), [long()]);
    // Without it, each call says the same.
    assert_eq!(read(&Delimited::byte(b'\n', 3), &[b"abcdef\nok\n"]), [long()]);
}

#[test]
fn skipped_bytes_take_no_more_than_a_chunk() {
    let line = [vec![b'a'; 1 << 20], b"\nok\n".to_vec()].concat();
    let mut most = 0;
    let mut reader = FrameReader::new(&line[..], Delimited::byte(b'\n', 100).skip_too_long());
    let mut acquire = |bytes| {
        most = most.max(bytes);
        HeapPool::new().acquire(bytes)
    };
    assert!(matches!(reader.next_frame(&mut acquire), Err(FrameError::TooLong { .. })));
    assert!(reader.is_inside_frame());
    assert_eq!(reader.next_frame(&mut acquire).unwrap().unwrap(), *b"ok");
    assert!(reader.next_frame(&mut acquire).unwrap().is_none());
    assert!(most <= 64 << 10, "{most}");
}

#[test]
fn varints() {
    let framing = VarintDelimited::new(70_000);
    let sent: Vec<Vec<u8>> = [0, 1, 127, 128, 16_383, 16_384, 70_000].map(|len| vec![len as u8; len]).into();
    let mut wire = Vec::new();
    write_frames(&mut wire, &framing, &sent).unwrap();
    assert_eq!(wire.len(), sent.iter().map(Vec::len).sum::<usize>() + 3 + 2 * 2 + 2 * 3);
    let pieces: Vec<_> = wire.chunks(1000).collect();
    assert!(read(&framing, &pieces) == sent.into_iter().map(Ok).collect::<Vec<_>>());
    assert_eq!(read(&framing, &[b"\xf1\xa2\x04"]), [Err("too long")]);
    assert_eq!(read(&framing, &[&[0xff; 9], b"\x01"]), [Err("too long")]);
    assert_eq!(read(&framing, &[&[0xff; 10], b"\x01"]), [Err("too long")]);
    assert_eq!(read(&framing, &[b"\x85"]), [Err("truncated")]);
    // A length may have more bytes than it needs.
    assert_eq!(read(&framing, &[b"\x82\0hi"]), frames([b"hi"]));
    assert!(write_frames(&mut io::sink(), &framing, &[vec![0; 70_001]]).is_err());
}

/// A user's framing: a header that is not returned, a payload, and a trailer, each of three bytes at most.
#[derive(Clone, Copy)]
struct Own;

impl Framing for Own {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        Ok(match stream {
            [b'<', length, ..] => {
                let end = 3 + usize::from(*length);
                Parsed::Frame { payload: 3..end, total: end + 2 }
            }
            [b'!', ..] => Parsed::Frame { payload: 0..4, total: 3 },
            [b'0', ..] => Parsed::Frame { payload: 0..0, total: 0 },
            _ => Parsed::Incomplete,
        })
    }

    fn max_bytes(&self) -> usize {
        3 + 255 + 2
    }

    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        Ok([&[b'<', frame.len() as u8, b'|'][..], b"/>"].map(|bytes| Affix::new(bytes).unwrap()))
    }

    fn header_bytes(&self) -> usize {
        2
    }
}

#[test]
fn framings_of_users() {
    let mut wire = Vec::new();
    let sent = [&b"one"[..], b"", &[7; 255]];
    write_frames(&mut wire, &Own, &sent).unwrap();
    assert!(wire.starts_with(b"<\x03|one/><\0|/>"));
    for size in [1, 2, 3, 5, 100, 1000] {
        let pieces: Vec<_> = wire.chunks(size).collect();
        assert_eq!(read(&Own, &pieces), frames(sent), "{size}");
    }
    assert_eq!(read(&Own, &[b"<\x01|a/"]), [Err("truncated")]);
    assert_eq!(read(&Own, &[b"!"]), [Err("contradiction")]);
    assert_eq!(read(&Own, &[b"0"]), [Err("contradiction")]);
    // It never says where this ends.
    assert_eq!(read(&Own, &[&[b'a'; 1000]]), [Err("too long")]);
    assert!(Affix::new(&[0; 33]).is_none());
}

/// A user's framing that does what tokio-util's `AnyDelimiterCodec` does: frames of up to so many bytes, each with any of these behind it.
#[derive(Clone, Copy)]
struct AnyOf(&'static [u8], usize);

impl AnyOf {
    fn find(&self, stream: &[u8]) -> Option<usize> {
        stream.iter().position(|byte| self.0.contains(byte))
    }
}

impl Framing for AnyOf {
    fn parse(&self, stream: &[u8], searched: usize) -> Result<Parsed, FrameError> {
        let found = self.find(&stream[searched..]).map(|at| searched + at);
        let length = found.unwrap_or(stream.len());
        if length > self.1 {
            return Err(FrameError::TooLong { length, limit: self.1 });
        }
        Ok(found.map_or(Parsed::Incomplete, |end| Parsed::Frame { payload: 0..end, total: end + 1 }))
    }

    fn max_bytes(&self) -> usize {
        self.1.saturating_add(1)
    }

    fn around(&self, _frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        Ok([Affix::NONE, Affix::new(b";--;").unwrap()])
    }

    fn takes_rest(&self, _rest: &[u8]) -> Result<bool, FrameError> {
        Ok(true)
    }

    fn find_next(&self, stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
        Some(self.find(stream).map_or(ControlFlow::Continue(stream.len()), |at| ControlFlow::Break(at + 1)))
    }
}

#[test]
fn any_of_several_delimiters() {
    let chunks = |limit| AnyOf(b",;\n\r", limit);
    let ok = |chunk: &str| Ok(chunk.as_bytes().to_vec());
    let long = || Err("too long");
    assert_eq!(
        read(&chunks(usize::MAX), &[b"chunk 1,chunk 2;chunk 3\n\r", b"k"]),
        frames([b"chunk 1", b"chunk 2", b"chunk 3", b"", b"k"])
    );
    assert_eq!(
        read(&chunks(7), &[b"chunk 1 is too long\nchunk 2\nchunk 3\r\nchunk 4\n\r\n", b"k"]),
        [long(), ok("chunk 2"), ok("chunk 3"), ok(""), ok("chunk 4"), ok(""), ok(""), ok("k")]
    );
    assert_eq!(read(&chunks(7), &[b"aaabbbcc"]), [long()]);
    assert_eq!(read(&chunks(7), &[b"chunk ", b"too l", b"ong\n", b"chunk 2", b","]), [long(), ok("chunk 2")]);
    let twice: [&[u8]; 4] = [b"chunk ", b"too very l", b"aaaaaaaaaaaaaaaaaaaaaaa", b"ong\nshort\n"];
    assert_eq!(read(&chunks(11), &twice), [long(), ok("short")]);
    assert_eq!(read(&chunks(11), &[b"chunk ", b"too l", b"ong\n"]), [long()]);
    assert_eq!(read(&chunks(11), &[b"chunk ", b"too long!\n"]), [long()]);
    assert_eq!(read(&chunks(5), &[b"hello", b",world"]), [ok("hello"), ok("world")]);
    assert_eq!(read(&chunks(1), &[b"aa", b"a"]), [long()]);
    let mut wire = Vec::new();
    write_frames(&mut wire, &chunks(7), &["chunk 1", "chunk 2"]).unwrap();
    assert_eq!(wire, b"chunk 1;--;chunk 2;--;");
}

/// Refuses until it is told otherwise.
struct Refusing(Arc<Mutex<bool>>);

impl BufferPool for Refusing {
    type Lease = HeapLease;

    fn acquire(&mut self, bytes: usize) -> Result<Buf<HeapLease>, AcquireError> {
        if *self.0.lock().unwrap() {
            return Err(AcquireError::Exhausted { requested: bytes, available: 0 });
        }
        HeapPool::new().acquire(bytes)
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

#[test]
fn a_refused_frame_is_not_lost_by_the_codec() {
    let refuses = Arc::new(Mutex::new(true));
    let mut codec = PoolCodec::new(Refusing(Arc::clone(&refuses)), lengths());
    let mut stream = BytesMut::from(&b"\0\0\0\x05hello"[..]);
    assert!(matches!(codec.decode(&mut stream), Err(FrameError::Acquire(_))));
    *refuses.lock().unwrap() = false;
    assert_eq!(codec.decode(&mut stream).unwrap().unwrap(), *b"hello");
}

/// `Framed` reads into 8 KiB, whatever the frame.
#[test]
fn a_large_frame_leaves_the_buffer_of_framed_small() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut wire = Vec::new();
        write_frames(&mut wire, &lengths(), &[vec![7; 1 << 20]]).unwrap();
        let codec = PoolCodec::new(HeapPool::new(), lengths());
        let mut framed = core::pin::pin!(tokio_util::codec::FramedRead::new(&wire[..], codec));
        let next = core::future::poll_fn(|cx| futures_core::Stream::poll_next(framed.as_mut(), cx)).await;
        assert_eq!(next.unwrap().unwrap().len(), 1 << 20);
        assert!(framed.read_buffer().capacity() <= 16 << 10, "{}", framed.read_buffer().capacity());
    });
}
