//! Frames that are written, many with one call of the system.

use alloc::vec::Vec;
use std::io::{self, ErrorKind, IoSlice, Write};

use bufcore::author::count_written;

use super::FrameError;
use super::framing::{Around, Framing};

/// Slices of one call: a frame has up to three, and systems take 1024.
pub(super) const SLICES: usize = 192;
pub(super) const FRAMES: usize = SLICES / 3;

/// Writes frames as the framing says, with headers and delimiters.
///
/// Cost: no copy. Where the writer takes all that it is given, one vectored write for each 64
/// frames.
///
/// # Errors
///
/// [`FrameError::TooLong`] or [`FrameError::HasDelimiter`] for a frame that the framing does not
/// allow; then nothing of it and of those behind it is written. [`FrameError::Io`] when the writer
/// fails. A part may be written then.
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
        let (around, wrong) = around_each(framing, frames);
        write_all_vectored(to, &mut slices(frames, &around))?;
        wrong?;
    }
    Ok(())
}

/// Returns what is around each frame, up to the first that is not allowed.
pub(super) fn around_each(
    framing: &impl Framing,
    frames: &[impl AsRef<[u8]>],
) -> (Vec<[Around; 2]>, Result<(), FrameError>) {
    let mut around = Vec::with_capacity(frames.len());
    for frame in frames {
        match framing.around(frame.as_ref()) {
            Ok(both) => around.push(both),
            Err(error) => return (around, Err(error)),
        }
    }
    (around, Ok(()))
}

/// Returns the slices of frames, as many as there are pairs of what is around them.
pub(super) fn slices<'a>(frames: &'a [impl AsRef<[u8]>], around: &'a [[Around; 2]]) -> Vec<IoSlice<'a>> {
    let parts = frames
        .iter()
        .zip(around)
        .flat_map(|(frame, [before, behind])| [before.as_slice(), frame.as_ref(), behind.as_slice()]);
    parts.filter(|part| !part.is_empty()).map(IoSlice::new).collect()
}

/// Writes all bytes of the slices, such as of many views. The slices are advanced.
///
/// Cost: one vectored write for each 192 slices, where the writer takes all.
///
/// # Errors
///
/// The writer's, and `WriteZero` when it takes nothing. The slices are then those that are left.
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
    // Leaves out those in front that have no bytes.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let now = &slices[..slices.len().min(SLICES)];
        let most = now.iter().map(|slice| slice.len()).sum();
        match to.write_vectored(now) {
            Ok(n) => IoSlice::advance_slices(&mut slices, count_written(n, most)?),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
