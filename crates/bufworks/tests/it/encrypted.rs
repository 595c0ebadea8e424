//! A codec in the manner of Stratum V2's, over the buffers of every strategy and over the heap as
//! the control. It keeps its state between calls, lends the bytes that are missing, decrypts in
//! place, and cuts off the tags.

use bufworks::{AcquireError, Buf, BufferPool, SplitLease, Writer};

const HEADER: usize = 6;
const TAG: usize = 16;

/// A cipher that is none, and changes every byte.
fn crypt(bytes: &mut [u8], nonce: u64) {
    for (byte, at) in bytes.iter_mut().zip(nonce..) {
        *byte ^= (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    }
}

fn tag(encrypted: &[u8], nonce: u64) -> [u8; TAG] {
    let sum = encrypted.iter().fold(nonce, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    u128::from(sum).to_le_bytes()
}

#[derive(Debug, PartialEq)]
enum Refused {
    Tag,
    Memory(AcquireError),
}

struct Decoder<P: BufferPool<Lease: SplitLease>> {
    writer: Writer<P>,
    missing: usize,
    nonce: u64,
}

impl<P: BufferPool<Lease: SplitLease>> Decoder<P> {
    fn new(pool: P) -> Self {
        Self { writer: Writer::new(pool), missing: HEADER + TAG, nonce: 0 }
    }

    /// Lends the bytes of the header or of the payload that are missing.
    fn writable(&mut self) -> Result<&mut [u8], Refused> {
        let room = self.writer.writable(self.missing).map_err(Refused::Memory)?;
        Ok(&mut room[..self.missing])
    }

    /// Takes the next `n` bytes, and returns the frame that they complete.
    fn commit(&mut self, n: usize) -> Result<Option<Buf<P::Lease>>, Refused> {
        self.writer.commit(n);
        self.missing -= n;
        if self.missing > 0 {
            return Ok(None);
        }
        let filled = self.writer.filled().len();
        if filled == HEADER + TAG && self.nonce.is_multiple_of(2) {
            self.decrypt(0)?;
            let header = self.writer.filled();
            self.missing = usize::from(u16::from_le_bytes([header[3], header[4]])) + TAG;
            return Ok(None);
        }
        self.decrypt(HEADER)?;
        self.missing = HEADER + TAG;
        Ok(Some(self.writer.finish()))
    }

    /// Decrypts the bytes from `start` on in place, and cuts off their tag.
    fn decrypt(&mut self, start: usize) -> Result<(), Refused> {
        let bytes = self.writer.filled_mut();
        let end = bytes.len() - TAG;
        if bytes[end..] != tag(&bytes[start..end], self.nonce) {
            return Err(Refused::Tag);
        }
        crypt(&mut bytes[start..end], self.nonce);
        self.nonce += 1;
        self.writer.truncate(end);
        Ok(())
    }

    /// Decodes `wire`, which comes in pieces of at most `most` bytes.
    fn decode(&mut self, mut wire: &[u8], most: usize) -> Result<Vec<Buf<P::Lease>>, Refused> {
        let mut frames = Vec::new();
        while !wire.is_empty() {
            let room = self.writable()?;
            let n = room.len().min(most).min(wire.len());
            room[..n].copy_from_slice(&wire[..n]);
            wire = &wire[n..];
            frames.extend(self.commit(n)?);
        }
        Ok(frames)
    }
}

fn frame(number: usize) -> Vec<u8> {
    // Small ones, and some that outgrow what a pool has in one place.
    let len = if number % 8 == 7 { 700 } else { number * 37 % 90 };
    let mut frame = vec![1, 0, number as u8, 0, 0, 0];
    frame[3..5].copy_from_slice(&(len as u16).to_le_bytes());
    frame.extend((0..len).map(|at| (at * 7 + number) as u8));
    frame
}

fn encode(frame: &[u8], nonce: &mut u64) -> Vec<u8> {
    let mut wire = Vec::new();
    for part in [&frame[..HEADER], &frame[HEADER..]] {
        let start = wire.len();
        wire.extend_from_slice(part);
        crypt(&mut wire[start..], *nonce);
        wire.extend_from_slice(&tag(&wire[start..], *nonce));
        *nonce += 1;
    }
    wire
}

fn decodes<P: BufferPool<Lease: SplitLease>>(make: impl Fn() -> P) {
    const FRAMES: usize = 24;
    let (mut nonce, mut wire) = (0, Vec::new());
    for number in 0..FRAMES {
        wire.extend(encode(&frame(number), &mut nonce));
    }
    for most in [1, 7, 64, usize::MAX] {
        let mut decoder = Decoder::new(make());
        // In two halves, between which the decoder keeps what has come.
        let (front, back) = wire.split_at(wire.len() / 2);
        let mut frames = decoder.decode(front, most).expect("memory for all");
        frames.extend(decoder.decode(back, most).expect("memory for all"));
        assert_eq!(frames.len(), FRAMES);
        for (number, found) in frames.iter().enumerate() {
            assert_eq!(**found, *frame(number), "frame {number}, in pieces of {most}");
            assert_eq!(found.capacity(), found.len(), "what was not filled went back");
        }
        drop(frames);
        let mut broken = encode(&frame(3), &mut nonce.clone());
        *broken.last_mut().expect("a tag") ^= 1;
        assert_eq!(decoder.decode(&broken, most).map(|frames| frames.len()), Err(Refused::Tag));
        let pool = decoder.writer.into_inner();
        if cfg!(feature = "stats") {
            assert_eq!(pool.stats().in_use, 0);
        }
    }
}

macro_rules! encrypted {
    ($module:ident, $make:expr) => {
        #[test]
        fn $module() {
            decodes(|| $make);
        }
    };
}

encrypted!(any, crate::any::built("heap"));

/// Each strategy's own pool.
macro_rules! of_each {
    (
        {}
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        $(
            #[cfg(feature = $feature)]
            encrypted!($module, crate::own::$module());
        )*
    };
}
strategies!(of_each! {});
