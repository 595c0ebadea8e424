//! Files of words that tell their place, so that whoever reads them knows what they have to be.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The word at an offset, a multiple of 8 (the output function of SplitMix64, Steele, Lea and Flood
/// 2014).
#[inline]
#[must_use]
pub fn word(offset: u64) -> u64 {
    let mut word = (offset / 8).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The sum of the words of a part of the file.
#[must_use]
pub fn sum_of(offsets: core::ops::Range<u64>) -> u64 {
    offsets.step_by(8).map(word).fold(0, u64::wrapping_add)
}

/// Writes the file, unless it is there, with its folder.
///
/// # Errors
///
/// When it cannot be written.
pub fn prepare(path: &Path, bytes: u64) -> io::Result<()> {
    // Two tests of one program would write to one file, and the second find that it has its name.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _writing = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if fs::metadata(path).is_ok_and(|file| file.len() == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().ok_or(io::ErrorKind::NotFound)?)?;
    // Under another name until it is whole, so that an interrupted run leaves no wrong file.
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
    for offset in (0..bytes).step_by(8) {
        file.write_all(&word(offset).to_le_bytes())?;
    }
    file.into_inner()?.sync_all()?;
    fs::rename(partial, path)
}

/// A sum that depends on every byte, word by word, so that it runs at the speed of memory.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let tail = tail.iter().fold(0_u64, |sum, &byte| sum.wrapping_add(u64::from(byte)));
    words.iter().fold(tail, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)))
}
