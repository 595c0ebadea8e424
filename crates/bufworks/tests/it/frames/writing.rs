//! Frames that are written: all of each, in few calls.

use std::io::{self, ErrorKind, IoSlice, Write};

use bufworks::frames::{Delimited, FrameError, LengthDelimited, write_all_vectored, write_frames};

/// Takes a random part of what it is given.
struct Part {
    taken: Vec<u8>,
    calls: usize,
    most: usize,
    random: fastrand::Rng,
}

impl Part {
    fn new(most: usize) -> Self {
        Self { taken: Vec::new(), calls: 0, most, random: fastrand::Rng::with_seed(most as u64) }
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.most < usize::MAX && self.random.u8(..) < 30 {
            return Err(ErrorKind::Interrupted.into());
        }
        self.calls += 1;
        assert!(slices.len() <= 1024, "systems take no more");
        let all = slices.iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
        assert!(!all.is_empty(), "a write of nothing");
        let n =
            if self.most == usize::MAX { all.len() } else { self.random.usize(1..=all.len().min(self.most)) };
        self.taken.extend_from_slice(&all[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frames() -> Vec<Vec<u8>> {
    (0..1000).map(|number: usize| vec![b'a' + (number % 26) as u8; number % 40]).collect()
}

#[test]
fn writers_that_take_a_part() {
    let framing = LengthDelimited::new(100).length_bytes(2);
    let expected: Vec<u8> =
        frames().iter().flat_map(|frame| [&(frame.len() as u16).to_be_bytes()[..], frame].concat()).collect();
    for most in [1, 5, 100, 3000] {
        let mut part = Part::new(most);
        write_frames(&mut part, &framing, &frames()).unwrap();
        assert!(part.taken == expected, "parts of up to {most}");
    }
    // A vector takes the slices by itself.
    let mut whole = Vec::new();
    write_frames(&mut whole, &framing, &frames()).unwrap();
    assert!(whole == expected);
}

/// A writer without vectored writes takes small frames in one call, with their headers; larger ones
/// on their own.
#[test]
fn small_frames_are_one_slice() {
    #[derive(Default)]
    struct One(Vec<usize>);
    impl Write for One {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lengths = LengthDelimited::new(1 << 20);
    let mut one = One::default();
    write_frames(&mut one, &lengths, &frames()[..64]).unwrap();
    assert_eq!(one.0, [64 * 4 + frames()[..64].concat().len()]);
    let mut one = One::default();
    let frames = [vec![1; 100], vec![2; 5000], vec![3; 100], vec![], vec![4; 513], vec![5; 512]];
    write_frames(&mut one, &lengths, &frames).unwrap();
    assert_eq!(one.0, [108, 5000, 112, 513, 516]);
    let mut one = One::default();
    write_frames(&mut one, &Delimited::byte(b'\n', 1 << 20), &frames[..5]).unwrap();
    assert_eq!(one.0, [101, 5000, 103, 513, 1]);
}

#[test]
fn many_frames_in_one_call() {
    let mut all = Part::new(usize::MAX);
    write_frames(&mut all, &LengthDelimited::new(100), &frames()).unwrap();
    assert_eq!(all.calls, 1000_usize.div_ceil(64));
    let lines = Delimited::sequence(b"\r\n", 100).unwrap();
    let mut all = Part::new(usize::MAX);
    write_frames(&mut all, &lines, &frames()[..64]).unwrap();
    assert_eq!(all.calls, 1);
    // Nothing to write is no call.
    write_frames(&mut all, &lines, &[""; 0]).unwrap();
    write_all_vectored(&mut all, &mut [IoSlice::new(b""), IoSlice::new(b"")]).unwrap();
    assert_eq!(all.calls, 1);
}

#[test]
fn frames_in_front_of_a_wrong_one_are_written() {
    let lines = Delimited::byte(b'\n', 100);
    let mut written = Vec::new();
    let error = write_frames(&mut written, &lines, &["one", "t\nwo", "three"]).unwrap_err();
    assert!(matches!(error, FrameError::HasDelimiter { at: 1 }));
    assert_eq!(written, b"one\n");
}

/// Where a frame's end and the delimiter make another delimiter, the reader would cut it there.
#[test]
fn a_delimiter_that_begins_in_the_frame() {
    let twice = Delimited::sequence(b"aa", 100).unwrap();
    let error = write_frames(&mut io::sink(), &twice, &["xa"]).unwrap_err();
    assert!(matches!(error, FrameError::HasDelimiter { at: 1 }));
    let lines = Delimited::sequence(b"\r\n", 100).unwrap();
    assert!(write_frames(&mut io::sink(), &lines, &["x\r"]).is_ok());
}

#[test]
fn writers_that_take_nothing_or_too_much() {
    struct Takes(usize);
    impl Write for Takes {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Ok(self.0)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for (n, kind) in [(0, ErrorKind::WriteZero), (usize::MAX, ErrorKind::InvalidData)] {
        let mut slices = [IoSlice::new(b"head"), IoSlice::new(b"body")];
        assert_eq!(write_all_vectored(&mut Takes(n), &mut slices).unwrap_err().kind(), kind);
    }
}

/// After an error the slices have the bytes that are left, and no others.
#[test]
fn a_later_call_writes_what_is_left() {
    /// Takes so many bytes at most, and then none for a call.
    struct Refusing(Vec<u8>, usize, bool);
    impl Write for Refusing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if !self.2 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let n = self.1.min(bytes.len());
            self.0.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for most in 1..=5 {
        let mut to = Refusing(Vec::new(), most, false);
        let mut slices = ["head", "", "bo", "dy"].map(|part| IoSlice::new(part.as_bytes()));
        while let Err(error) = write_all_vectored(&mut to, &mut slices) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            let left: Vec<u8> = slices.iter().flat_map(|left| left.iter().copied()).collect();
            assert_eq!([&to.0[..], &left].concat(), b"headbody");
        }
        assert_eq!(to.0, b"headbody");
    }
}
