//! `std::io`, and streaming with the vocabulary's traits.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use bufmirror::MirrorRing;
use bufmirror::bufcore::{self, ReserveError};

#[test]
fn writes_are_short_when_it_is_full() {
    let mut ring = crate::copying(5);
    assert_eq!(ring.write(b"hello world").unwrap(), 5);
    assert_eq!(ring.write(b"!").unwrap(), 0);
    assert_eq!(ring.write_all(b"!").unwrap_err().kind(), ErrorKind::StorageFull);
    ring.flush().unwrap();
    let mut two = [0; 2];
    ring.read_exact(&mut two).unwrap();
    write!(ring, "{}", 42).unwrap();
    assert_eq!((&two, ring.peek()), (b"he", &b"llo42"[..]));
    let mut rest = String::new();
    ring.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "llo42");
    assert_eq!(ring.read(&mut two).unwrap(), 0);
    assert_eq!(ring.read_exact(&mut two).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

/// Lines that lie across the end of the ring are read like all others.
#[test]
fn lines_across_the_border() {
    let mut ring = crate::mapped(1);
    let mut expected = 0;
    let mut line = String::new();
    for number in 0..5000 {
        writeln!(ring, "line {number}").unwrap();
        // The last one stays, so that the ring goes round.
        if number > 0 {
            line.clear();
            ring.read_line(&mut line).unwrap();
            assert_eq!(line, format!("line {expected}\n"));
            expected += 1;
        }
    }
}

#[test]
fn reads_in_place() {
    let mut ring = crate::copying(8);
    let mut source = &b"hello world"[..];
    assert_eq!(ring.read_from(&mut source).unwrap(), 8);
    let full = ring.read_from(&mut source).expect_err("it is full, which is not the end");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let cause = full.get_ref().and_then(|cause| cause.downcast_ref::<ReserveError>());
    assert_eq!(cause, Some(&ReserveError { requested: 1, available: 0 }));
    ring.consume(6);
    assert_eq!(ring.read_from(&mut source).unwrap(), 3);
    assert_eq!(ring.peek(), b"world");
    assert_eq!(ring.read_from(&mut source).unwrap(), 0, "it has ended");
}

/// The loop of the guide to all strategies: how many headers came, up to the end of the stream.
fn count_headers(socket: &mut impl Read, ring: &mut MirrorRing) -> io::Result<usize> {
    let mut headers = 0;
    while ring.read_from(socket)? > 0 {
        while let Some(end) = ring.peek().windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            headers += 1; // all of it is `ring.peek()[..end]`
            ring.consume(end + 4);
        }
    }
    Ok(headers)
}

#[test]
fn a_header_that_is_longer_than_the_ring_is_an_error() {
    for mut ring in [crate::mapped(1), crate::copying(100)] {
        let fits = b"GET / HTTP/1.1\r\n\r\n";
        assert_eq!(count_headers(&mut &fits[..], &mut ring).expect("it fits"), 1);
        let long = [&fits[..], &vec![b'x'; 2 * ring.capacity()], b"\r\n\r\n"].concat();
        let mut socket = &long[..];
        let error = count_headers(&mut socket, &mut ring).expect_err("part of it is unread");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!((ring.len(), ring.spare_capacity()), (ring.capacity(), 0), "what came stays");
        // One that just fits is none.
        let capacity = ring.capacity();
        ring.clear();
        let just = [&vec![b'x'; capacity - 4][..], b"\r\n\r\n"].concat();
        assert_eq!(count_headers(&mut &just[..], &mut ring).expect("it fits"), 1);
    }
}

#[test]
fn bad_readers() {
    struct Liar;
    impl Read for Liar {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            Ok(into.len() + 1)
        }
    }
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::ConnectionReset.into())
        }
    }
    let mut ring = crate::copying(8);
    ring.put(b"abc").unwrap();
    assert_eq!(ring.read_from(&mut Liar).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(ring.read_from(&mut Broken).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(ring.peek(), b"abc");
}

#[test]
fn streams_from_ring_to_ring() {
    let (mut from, mut to) = (crate::mapped(1), crate::copying(100));
    let bytes: Vec<u8> = (0..=255).collect();
    from.put(&bytes).unwrap();
    let mut arrived = Vec::new();
    while !from.is_empty() {
        assert!(bufcore::copy(&mut from, &mut to) > 0);
        // Not all of it, so that the second ring goes round as well.
        let n = to.len().div_ceil(2);
        arrived.extend_from_slice(&to.peek()[..n]);
        to.consume(n);
    }
    arrived.extend_from_slice(to.peek());
    assert_eq!(arrived, bytes);
}

/// The ends of a channel are a sink and a source, as a ring is.
#[test]
fn streams_through_a_channel() {
    let (mut producer, mut consumer) = bufmirror::channel(4096).expect("the system maps");
    let (capacity, mut arrived) = (producer.capacity(), bufcore::Writer::new(bufcore::HeapPool::new()));
    let bytes: Vec<u8> = (0..3 * capacity).map(|at| (at % 251) as u8).collect();
    let mut source = &bytes[..];
    while arrived.filled().len() < bytes.len() {
        let (room, left) = (producer.spare_capacity(), source.len());
        assert_eq!(bufcore::copy(&mut source, &mut producer), room.min(left));
        // Some of it at a time, so that both go round.
        assert!(bufcore::copy_up_to(&mut consumer, &mut arrived, 1000) > 0);
    }
    assert_eq!(arrived.filled(), bytes);
    let refused = bufcore::ByteSink::reserve(&mut producer, capacity + 1).map(drop);
    assert_eq!(refused, Err(ReserveError { requested: capacity + 1, available: capacity }));
}

#[test]
fn write_all_is_all_or_nothing() {
    let mut ring = crate::copying(5);
    ring.write_all(b"abc").expect("room");
    let error = ring.write_all(b"def").expect_err("no room for all of it");
    assert_eq!(ring.peek(), b"abc", "a part was appended");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<ReserveError>());
    assert_eq!(cause, Some(&ReserveError { requested: 3, available: 2 }));
    let (text, number) = ("d", 42);
    assert!(write!(ring, "{text}{number}").is_err());
    assert_eq!(ring.peek(), b"abc", "a part was appended");
    write!(ring, "{text}e").expect("just so much");
    ring.write_all(b"").expect("nothing always fits");
    #[cfg(feature = "embedded-io-0_7")]
    {
        ring.consume(3);
        let refused = embedded_io::Write::write_all(&mut ring, b"fghi");
        assert_eq!((refused, ring.len()), (Err(ReserveError { requested: 4, available: 3 }), 2));
    }
}

/// Takes a number of bytes at a time, or claims to.
struct Slow {
    taken: Vec<u8>,
    at_a_time: usize,
    claims: Option<usize>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.at_a_time);
        self.taken.extend_from_slice(&bytes[..n]);
        Ok(self.claims.map_or(n, |more| bytes.len() + more))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow(at_a_time: usize) -> Slow {
    Slow { taken: Vec::new(), at_a_time, claims: None }
}

#[test]
fn what_a_writer_takes_is_dropped() {
    let mut ring = crate::copying(8);
    ring.put(b"abcdefgh").unwrap();
    let mut writer = slow(3);
    assert_eq!(ring.write_to(&mut writer).unwrap(), 3);
    assert_eq!((ring.peek(), &writer.taken[..]), (&b"defgh"[..], &b"abc"[..]));
    ring.put(b"ijk").unwrap();
    while ring.write_to(&mut writer).unwrap() > 0 {}
    assert_eq!((ring.len(), &writer.taken[..]), (0, &b"abcdefghijk"[..]));
    // It takes nothing, which is not the end.
    ring.put(b"xyz").unwrap();
    assert_eq!(ring.write_to(&mut slow(0)).unwrap_err().kind(), ErrorKind::WriteZero);
    let mut liar = Slow { claims: Some(1), ..slow(1) };
    assert_eq!(ring.write_to(&mut liar).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(ring.peek(), b"xyz");
}

#[test]
fn pieces_across_the_border() {
    for mut ring in [crate::mapped(1), crate::copying(100)] {
        let (mut sent, mut found) = (0_u32, 0_u32);
        for round in 0..3000 {
            while ring.spare_capacity() > 50 && sent % 5 != round % 5 {
                write!(ring, "piece {sent};").unwrap();
                sent += 1;
            }
            write!(ring, "pie").unwrap();
            let wanted = round % 4;
            let mut seen = 0;
            let mut pieces = ring.pieces(b';');
            for piece in (&mut pieces).into_iter().take(wanted as usize) {
                assert_eq!(piece, format!("piece {found}").as_bytes());
                (seen, found) = (seen + 1, found + 1);
            }
            drop(pieces);
            assert!(seen == wanted || found == sent);
            write!(ring, "ce {sent};").unwrap();
            sent += 1;
        }
        for piece in &mut ring.pieces(b';') {
            assert_eq!(piece, format!("piece {found}").as_bytes());
            found += 1;
        }
        assert_eq!((found, ring.len()), (sent, 0));
    }
}
