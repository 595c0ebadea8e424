//! Every start in the ring, with the lengths at which something could be off by one.

use crate::ring::{Ring, ends};

/// Bytes in which no part looks like another one nearby.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect()
}

/// Empties the ring and has it go on at `start`, with one byte in it, in front of that; none when
/// `start` is the front.
fn go_to(ring: &mut impl Ring, start: usize) -> usize {
    ring.clear();
    ring.commit(start);
    let kept = start.min(1);
    ring.consume(start - kept);
    kept
}

/// Writes `bytes` from `start` on, in one piece or except for the last byte, and reads them back.
fn through(ring: &mut impl Ring, start: usize, bytes: &[u8], in_place: bool) {
    let kept = go_to(ring, start);
    // A full ring has no room for the byte that was kept.
    let late = (kept + bytes.len()).saturating_sub(ring.capacity());
    let (first, last) = bytes.split_at(bytes.len() - late);
    if in_place {
        ring.reserve(first.len()).unwrap().copy_from_slice(first);
        ring.commit(first.len());
        assert_eq!(&ring.peek()[kept..], first);
    } else {
        ring.put(first).unwrap();
    }
    ring.consume(kept);
    ring.put(last).unwrap();
    assert_eq!((ring.len(), ring.spare_capacity()), (bytes.len(), ring.capacity() - bytes.len()));
    assert!(ring.peek() == bytes, "{} bytes from {start} on", bytes.len());
    // In two parts, so that the rest is read from behind the border when the first part lies in
    // front of it.
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    for part in [first, rest] {
        assert!(ring.peek().starts_with(part), "{} of {} bytes from {start} on", part.len(), bytes.len());
        if in_place {
            ring.consume(part.len());
        } else {
            let mut read = vec![0; part.len()];
            ring.get(&mut read).unwrap();
            assert!(read == part, "{} of {} bytes from {start} on", part.len(), bytes.len());
        }
    }
    assert_eq!((ring.is_empty(), ring.spare_capacity()), (true, ring.capacity()));
}

/// Where bytes start. A ring of many pages, as one is where memory is mapped in 64 KiB, has them around
/// each page, and from place to place besides: each start takes as long as the ring has bytes.
fn starts(capacity: usize) -> impl Iterator<Item = usize> {
    const PAGE: usize = 4096;
    const AROUND: usize = 32;
    let is_near = |start: usize| (start + AROUND) % PAGE < 2 * AROUND;
    (0..capacity).filter(move |&start| capacity <= 4 * PAGE || is_near(start) || start % 61 == 0)
}

fn every_start(mut ring: impl Ring) {
    let capacity = ring.capacity();
    let source = pattern(capacity + 64);
    for start in starts(capacity) {
        for bytes in [0, 1, capacity - 1, capacity] {
            let from = start % 61;
            through(&mut ring, start, &source[from..from + bytes], start % 2 == 0);
        }
    }
}

#[test]
fn every_start_mapped() {
    let page = crate::mapped(1).capacity();
    for pages in 1..=4 {
        let ring = crate::mapped(pages * page);
        assert_eq!(ring.capacity(), pages * page);
        every_start(ring);
    }
}

#[test]
fn every_start_of_a_channel() {
    let page = crate::mapped(1).capacity();
    for pages in 1..=4 {
        let ends = ends(pages * page);
        assert_eq!(ends.capacity(), pages * page);
        every_start(ends);
    }
}

#[test]
fn every_start_copying() {
    for bytes in [1, 2, 3, 64, 1000, 4096] {
        every_start(crate::copying(bytes));
    }
}

/// A stream that never lets the ring become empty, so that it goes round many times.
#[test]
fn round_and_round() {
    goes_round(crate::mapped(1));
    goes_round(crate::copying(4096));
    goes_round(crate::copying(7));
    goes_round(ends(1));
}

fn goes_round(mut ring: impl Ring) {
    let source = pattern(256);
    let capacity = ring.capacity();
    let (mut written, mut read) = (0, 0);
    while read < 50 * capacity {
        let n = (written % 97 + 1).min(ring.spare_capacity());
        for (at, byte) in ring.reserve(n).unwrap().iter_mut().enumerate() {
            *byte = source[(written + at) % 256];
        }
        ring.commit(n);
        written += n;
        let n = (read % 89 + 1).min(ring.len() - 1);
        for (at, &byte) in ring.peek()[..n].iter().enumerate() {
            assert_eq!(byte, source[(read + at) % 256], "byte {}", read + at);
        }
        ring.consume(n);
        read += n;
    }
}

/// Samples of four bytes, which are read and written in place.
#[test]
fn multiples_of_four_stay_aligned() {
    stays_aligned(crate::mapped(1));
    stays_aligned(ends(1));
}

fn stays_aligned(mut ring: impl Ring) {
    let rounds = ring.capacity() / 4;
    for round in 1..rounds {
        let n = (round % 23 * 4).min(ring.spare_capacity());
        assert!(ring.reserve(n).unwrap().as_ptr().cast::<u32>().is_aligned());
        ring.commit(n);
        assert!(ring.peek().as_ptr().cast::<u32>().is_aligned());
        let n = (round % 19 * 4).min(ring.len());
        ring.consume(n);
    }
}
