//! The crates that a user would pick instead.
//!
//! Pools whose buffers borrow them are leaked: a buffer is then free to move, as it is with an
//! owning handle, and nobody pays for a count of owners. Each group of cells has its own process,
//! which ends soon.

mod buffer_sv2;
mod bytes;
#[cfg(feature = "peers")]
mod global;
mod mirrors;
mod objects;
mod pipes;
mod ringal;

use crate::harness::engine::Engine;

/// A buffer of another crate's: a trait of one crate is implemented for types of that crate, or of
/// the implementing one.
#[derive(Debug)]
pub struct Theirs<T>(T);

/// All peers that this build has.
pub(super) fn all() -> Vec<Engine> {
    let mut all = vec![buffer_sv2::engine(), ringal::engine()];
    all.extend(objects::all());
    all.push(bytes::engine());
    #[cfg(feature = "peers")]
    all.extend(global::all());
    all.extend([mirrors::slice_ring_buffer(), pipes::rtrb(), pipes::ringbuf(), pipes::bbqueue()]);
    all.push(pipes::crossbeam_channel());
    all
}
