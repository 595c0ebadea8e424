//! Copies into and out of memory that another process may write at the same time.
//!
//! Such accesses race, and for the language a race of plain accesses is undefined behaviour
//! whatever the bytes are good for. So these are atomic, though in no order: a word at a time where
//! the shared memory is aligned, a byte at a time at its ends. A read may return any mixture of
//! what was written.

use core::ptr::NonNull;

use bufkit::sync::Ordering;

use crate::channel::end::Access;
use crate::sync::{AtomicU8, AtomicU64};

const WORD_BYTES: usize = size_of::<u64>();

/// Returns how many of `len` bytes from `at` on are in front of the first whole word.
fn bytes_before_words(at: NonNull<[u8]>) -> usize {
    at.cast::<u8>().align_offset(WORD_BYTES).min(at.len())
}

/// Returns the byte at `index`.
///
/// # Safety
///
/// It is in `shared`, which is valid for `'a` and accessed by atomics only, as far as this process
/// does.
unsafe fn byte<'a>(shared: NonNull<[u8]>, index: usize) -> &'a AtomicU8 {
    debug_assert!(index < shared.len());
    // SAFETY: within, as promised.
    let at = unsafe { shared.cast::<u8>().add(index) };
    // SAFETY: valid, and never written but by atomics, as promised; any alignment does for a byte.
    unsafe { AtomicU8::from_ptr(at.as_ptr()) }
}

/// Returns the word at `index`.
///
/// # Safety
///
/// As for [`byte`], for all of its bytes; it is aligned.
unsafe fn word<'a>(shared: NonNull<[u8]>, index: usize) -> &'a AtomicU64 {
    debug_assert!(index + WORD_BYTES <= shared.len());
    // SAFETY: within, as promised.
    let at = unsafe { shared.cast::<u8>().add(index) };
    // SAFETY: valid, aligned, and never written but by atomics, as promised.
    unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }
}

/// Copies `from` into `shared`, which is as long.
///
/// # Safety
///
/// `shared` is valid memory, which this process accesses by atomics only.
unsafe fn copy_in(shared: NonNull<[u8]>, from: &[u8]) {
    assert_eq!(shared.len(), from.len(), "copies have one length");
    let (front, rest) = from.split_at(bytes_before_words(shared));
    let (words, back) = rest.as_chunks::<WORD_BYTES>();
    for (index, &value) in front.iter().enumerate() {
        // SAFETY: within, as both have one length.
        let byte = unsafe { byte(shared, index) };
        // ORDER: Relaxed: the position's store orders it.
        byte.store(value, Ordering::Relaxed);
    }
    for (index, &value) in words.iter().enumerate() {
        // SAFETY: within, and aligned, being whole words behind `front`.
        let word = unsafe { word(shared, front.len() + index * WORD_BYTES) };
        // ORDER: Relaxed, as above.
        word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
    let done = from.len() - back.len();
    for (index, &value) in back.iter().enumerate() {
        // SAFETY: within, as both have one length.
        let byte = unsafe { byte(shared, done + index) };
        // ORDER: Relaxed, as above.
        byte.store(value, Ordering::Relaxed);
    }
}

/// Copies `shared` to `into`, which is as long.
///
/// # Safety
///
/// As for [`copy_in`].
unsafe fn copy_out(into: &mut [u8], shared: NonNull<[u8]>) {
    assert_eq!(shared.len(), into.len(), "copies have one length");
    let len = into.len();
    let (front, rest) = into.split_at_mut(bytes_before_words(shared));
    let (words, back) = rest.as_chunks_mut::<WORD_BYTES>();
    for (index, place) in front.iter_mut().enumerate() {
        // SAFETY: within, as both have one length.
        let byte = unsafe { byte(shared, index) };
        // ORDER: Relaxed: the position's load orders it.
        *place = byte.load(Ordering::Relaxed);
    }
    for (index, place) in words.iter_mut().enumerate() {
        // SAFETY: within, and aligned, being whole words behind `front`.
        let word = unsafe { word(shared, front.len() + index * WORD_BYTES) };
        // ORDER: Relaxed, as above.
        *place = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    let done = len - back.len();
    for (index, place) in back.iter_mut().enumerate() {
        // SAFETY: within, as both have one length.
        let byte = unsafe { byte(shared, done + index) };
        // ORDER: Relaxed, as above.
        *place = byte.load(Ordering::Relaxed);
    }
}

/// Bytes are copied, and never lent: the other end may be a process that nobody trusts.
#[derive(Debug)]
pub struct Copying;

impl Access for Copying {
    const LENDS: bool = false;

    unsafe fn copy_in(place: NonNull<[u8]>, from: &[u8]) {
        // SAFETY: within the ring's memory, as the caller promises; ends that copy use nothing else
        // (S3).
        unsafe { copy_in(place, from) };
    }

    unsafe fn copy_out(into: &mut [u8], place: NonNull<[u8]>) {
        // SAFETY: as in `copy_in`.
        unsafe { copy_out(into, place) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_and_length() {
        const BYTES: usize = 64;
        let from: [u8; BYTES] = core::array::from_fn(|at| at as u8 + 1);
        for start in 0..WORD_BYTES {
            for len in 0..BYTES - WORD_BYTES {
                let mut shared = [0_u64; BYTES / WORD_BYTES];
                let place = NonNull::from(&mut shared).cast::<u8>();
                // SAFETY: within the array.
                let place = NonNull::slice_from_raw_parts(unsafe { place.add(start) }, len);
                // SAFETY: the array's, which is used through this pointer only.
                unsafe { copy_in(place, &from[..len]) };
                let mut into = [0; BYTES];
                // SAFETY: as above.
                unsafe { copy_out(&mut into[..len], place) };
                assert_eq!((&into[..len], &into[len..]), (&from[..len], &[0; BYTES][len..]));
                let bytes = shared.map(u64::to_ne_bytes);
                let bytes = bytes.as_flattened();
                assert_eq!(&bytes[start..start + len], &from[..len]);
                assert!(bytes[..start].iter().chain(&bytes[start + len..]).all(|&byte| byte == 0));
            }
        }
    }
}
