//! `std::io`, and streaming with the vocabulary's traits.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use bufmirror::bufcore;

#[test]
fn writes_are_short_when_it_is_full() {
    let mut ring = crate::copying(5);
    assert_eq!(ring.write(b"hello world").unwrap(), 5);
    assert_eq!(ring.write(b"!").unwrap(), 0);
    assert_eq!(ring.write_all(b"!").unwrap_err().kind(), ErrorKind::WriteZero);
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
    assert_eq!(ring.read_from(&mut source).unwrap(), 0, "it is full");
    ring.consume(6);
    assert_eq!(ring.read_from(&mut source).unwrap(), 3);
    assert_eq!(ring.peek(), b"world");
    assert_eq!(ring.read_from(&mut source).unwrap(), 0, "it has ended");
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
