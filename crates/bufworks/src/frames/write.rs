//! Frames that are written, many with one call of the system.

use alloc::vec::Vec;
use core::hint::black_box;
use core::mem;
use std::io::{self, ErrorKind, IoSlice, Write};

use bufcore::author::count_written;

use super::FrameError;
use super::framing::{Affix, Framing};

/// Slices of one call: a frame has up to three, and systems take 1024.
pub(super) const SLICES: usize = 192;
pub(super) const FRAMES: usize = SLICES / 3;
/// A frame of up to so many bytes is copied: that costs less than a slice does.
const SMALL_BYTES: usize = 512;

/// Writes frames with the headers and delimiters of the framing.
///
/// Cost: one write for each 64 frames, if the writer accepts all bytes. Frames of up to 512 bytes
/// are copied, with headers and delimiters; the copy is zeroed before it is freed. For a writer
/// without vectored writes, each larger frame is a separate write, and so are the bytes between two
/// of them.
///
/// # Errors
///
/// [`FrameError::TooLong`] or [`FrameError::HasDelimiter`] for a frame that the framing does not
/// allow; it and all later ones are not written. [`FrameError::Io`] if the writer fails. A part may
/// have been written then.
///
/// ```
/// use bufworks::frames::{Delimited, write_frames};
/// use bufworks::HeapPool;
///
/// let mut pool = HeapPool::new();
/// let mut buf = pool.acquire(100)?;
/// buf.extend_from_slice(b"GET key")?;
/// let request = buf.freeze();
///
/// let framing = Delimited::sequence(b"\r\n", 512).expect("two bytes");
/// let mut socket = Vec::new();
/// write_frames(&mut socket, &framing, &[request.slice(..3), request.slice(4..)])?;
/// assert_eq!(socket, b"GET\r\nkey\r\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_frames(
    to: &mut (impl Write + ?Sized),
    framing: &impl Framing,
    frames: &[impl AsRef<[u8]>],
) -> Result<(), FrameError> {
    for frames in frames.chunks(FRAMES) {
        let (gathered, wrong) = Gathered::new(framing, frames);
        write_all_vectored(to, &mut gathered.slices(frames))?;
        wrong?;
    }
    Ok(())
}

/// Frames with what is around them, as few slices: small ones are copied to one place. So they go
/// out together also where a writer takes one slice at a time.
pub(super) struct Gathered {
    /// Headers, small frames and delimiters, in order. Never grows, since it is zeroed in the end:
    /// the frames' pool may wipe its own memory.
    copied: Vec<u8>,
    /// Of each frame that is not copied, its index, and the end of the copied bytes in front of it.
    large: Vec<(usize, usize)>,
}

impl Gathered {
    /// Gathers the frames up to the first that is not allowed.
    pub(super) fn new(framing: &impl Framing, frames: &[impl AsRef<[u8]>]) -> (Self, Result<(), FrameError>) {
        let copied = Vec::with_capacity(frames.len() * (SMALL_BYTES + 2 * Affix::MAX_BYTES));
        let mut gathered = Self { copied, large: Vec::new() };
        for (index, frame) in frames.iter().enumerate() {
            let frame = frame.as_ref();
            let [before, behind] = match framing.around(frame) {
                Ok(around) => around,
                Err(error) => return (gathered, Err(error)),
            };
            gathered.copied.extend_from_slice(before.as_slice());
            if frame.len() <= SMALL_BYTES {
                gathered.copied.extend_from_slice(frame);
            } else {
                gathered.large.push((index, gathered.copied.len()));
            }
            gathered.copied.extend_from_slice(behind.as_slice());
        }
        (gathered, Ok(()))
    }

    /// Returns the slices, none of which is empty, for the frames that were gathered.
    pub(super) fn slices<'a>(&'a self, frames: &'a [impl AsRef<[u8]>]) -> Vec<IoSlice<'a>> {
        let mut from = 0;
        let mut slices = Vec::with_capacity(2 * self.large.len() + 1);
        for &(index, end) in &self.large {
            slices.push(&self.copied[from..end]);
            slices.push(frames[index].as_ref());
            from = end;
        }
        slices.push(&self.copied[from..]);
        slices.into_iter().filter(|slice| !slice.is_empty()).map(IoSlice::new).collect()
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.copied.fill(0);
        // So that the zeroes are written though the memory is freed next.
        black_box(&mut self.copied);
    }
}

/// Writes all bytes of the slices, for example of many views. The slices are advanced.
///
/// Cost: one vectored write for each 192 slices, if the writer accepts all bytes.
///
/// # Errors
///
/// The writer's error, and `WriteZero` if it writes nothing. The slices then have the remaining
/// bytes.
///
/// ```
/// use std::io::IoSlice;
///
/// use bufworks::frames::write_all_vectored;
///
/// let mut socket = Vec::new();
/// write_all_vectored(&mut socket, &mut [IoSlice::new(b"head"), IoSlice::new(b"body")])?;
/// assert_eq!(socket, b"headbody");
/// # std::io::Result::Ok(())
/// ```
pub fn write_all_vectored(to: &mut (impl Write + ?Sized), mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    advance(&mut slices, 0);
    while !slices.is_empty() {
        let now = &slices[..slices.len().min(SLICES)];
        let most = now.iter().map(|slice| slice.len()).sum();
        match to.write_vectored(now) {
            Ok(n) => advance(&mut slices, count_written(n, most)?),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Advances the slices by so many bytes, and leaves out those in front that have no more. They are
/// empty from then on: `IoSlice::advance_slices` leaves them whole, and a caller that writes again
/// after an error would write their bytes twice.
pub(super) fn advance(slices: &mut &mut [IoSlice<'_>], mut bytes: usize) {
    while let Some(first) = slices.first_mut() {
        let n = bytes.min(first.len());
        first.advance(n);
        if !first.is_empty() {
            return;
        }
        bytes -= n;
        *slices = &mut mem::take(slices)[1..];
    }
}
