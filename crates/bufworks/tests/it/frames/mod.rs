//! Frames: random streams through readers that are cut at random, over every strategy; users' code
//! that lies, refuses, panics and is dropped amid it.

mod asynchronous;
mod borders;
mod crowds;
mod hostile;
#[cfg(all(feature = "futures-core-0_3", feature = "tokio-util-0_7"))]
mod like_tokio_util;
mod writing;

use std::io::{self, ErrorKind, Read};

use bufworks::any::{AnyLease, AnyPool, AnyView};
use bufworks::frames::{Delimited, FrameError, FrameReader, Framing, LengthDelimited, write_frames};
use testkit::trials::scaled;

/// Bytes of the longest frame of a random stream.
const LONGEST: usize = 3000;

/// A pool of each strategy, with room for what a test has out at once.
fn pools() -> Vec<AnyPool> {
    let texts =
        ["slot:capacity=4MiB,slots=600", "ring:capacity=4MiB", "bump:shard_size=16KiB", "shard", "heap"];
    texts.map(|text| text.parse::<bufworks::any::AnyBuilder>().unwrap().build().unwrap()).into()
}

/// The framings that random streams have.
fn framings() -> Vec<Either> {
    let lengths = LengthDelimited::new(LONGEST);
    vec![
        Either::Lengths(lengths),
        Either::Lengths(lengths.length_bytes(2).little_endian()),
        Either::Lengths(lengths.length_bytes(8).counts_header()),
        Either::Lengths(lengths.length_bytes(3).little_endian().counts_header()),
        Either::Lengths(lengths.length_bytes(2).offset(3).skip(9)),
        Either::Lengths(lengths.offset(1).adjustment(-3)),
        Either::Delimited(Delimited::byte(b'\n', LONGEST)),
        Either::Delimited(Delimited::sequence(b"\r\n", LONGEST).unwrap()),
        Either::Delimited(Delimited::sequence(b"--=-=-=", LONGEST).unwrap()),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Either {
    Lengths(LengthDelimited),
    Delimited(Delimited),
}

/// Frames of random lengths, most of them short. Those of a delimited stream have letters, and now
/// and then a part of a delimiter.
fn random_frames(random: &mut fastrand::Rng, framing: &Either, count: usize) -> Vec<Vec<u8>> {
    let length = |random: &mut fastrand::Rng| match random.u8(..) {
        0..16 => 0,
        16..240 => random.usize(..60),
        240..254 => random.usize(..700),
        _ => random.usize(..=LONGEST),
    };
    (0..count)
        .map(|_| {
            let mut frame = vec![0; length(random)];
            match framing {
                Either::Lengths(_) => random.fill(&mut frame),
                Either::Delimited(_) => {
                    frame.fill_with(|| if random.u8(..) < 8 { b"-\r="[random.usize(..3)] } else { b'x' });
                }
            }
            frame
        })
        .filter(|frame| match framing {
            Either::Lengths(_) => true,
            // What cannot be written is for another test.
            Either::Delimited(framing) => write_frames(&mut io::sink(), framing, &[frame]).is_ok(),
        })
        .collect()
}

/// Gives the bytes of a stream in random parts, with errors in between.
struct Cut<'a> {
    bytes: &'a [u8],
    random: fastrand::Rng,
    most: usize,
}

impl Read for Cut<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!into.is_empty(), "a read without room");
        match self.random.u8(..) {
            0..10 => return Err(ErrorKind::Interrupted.into()),
            10..20 => return Err(ErrorKind::WouldBlock.into()),
            _ => {}
        }
        let most = into.len().min(self.random.usize(1..=self.most));
        self.bytes.read(&mut into[..most])
    }
}

/// Reads the frames of a stream of `wire`, and holds the last few.
fn read_all<F: Framing>(
    mut reader: FrameReader<Cut<'_>, F, AnyLease>,
    pool: &mut AnyPool,
    frames: &[Vec<u8>],
    random: &mut fastrand::Rng,
) {
    let mut held: Vec<(AnyView, &[u8])> = Vec::new();
    let mut expected = frames.iter();
    loop {
        match reader.next_frame(|bytes| pool.acquire(bytes)) {
            Ok(Some(frame)) => {
                let right = expected.next().expect("no more frames than were written");
                assert!(frame == right[..], "frame of {} bytes is {frame:?}", right.len());
                held.push((frame, right));
                if held.len() > 20 {
                    let (frame, right) = held.swap_remove(random.usize(..held.len()));
                    assert!(frame == *right, "a frame changed while it was held");
                }
            }
            Ok(None) => break,
            Err(FrameError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(!reader.is_inside_frame() && reader.into_parts().1.is_empty());
    assert_eq!(expected.next(), None, "a frame is missing");
}

#[test]
fn random_streams_in_random_parts() {
    for seed in 0..scaled(60) as u64 {
        for framing in framings() {
            for mut pool in pools() {
                let mut random = fastrand::Rng::with_seed(seed);
                let frames = random_frames(&mut random, &framing, 100);
                let mut wire = Vec::new();
                let most = random.choice([1, 3, 50, 1000, 100_000]).unwrap();
                let chunk = random.choice([1, 2, 7, 64, 1000, 8192]).unwrap();
                let cut = |wire| Cut { bytes: wire, random: fastrand::Rng::with_seed(seed), most };
                match framing {
                    Either::Lengths(framing) => {
                        write_frames(&mut wire, &framing, &frames).unwrap();
                        let reader = FrameReader::new(cut(&wire), framing).chunks_of(chunk);
                        read_all(reader, &mut pool, &frames, &mut random);
                        let reader = FrameReader::new(cut(&wire), framing).by_frame();
                        read_all(reader, &mut pool, &frames, &mut random);
                    }
                    Either::Delimited(framing) => {
                        write_frames(&mut wire, &framing, &frames).unwrap();
                        let reader = FrameReader::new(cut(&wire), framing.must_end()).chunks_of(chunk);
                        read_all(reader, &mut pool, &frames, &mut random);
                    }
                }
            }
        }
    }
}
