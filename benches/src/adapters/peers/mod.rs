//! The crates that a user would pick instead.
//!
//! Pools whose buffers borrow them are leaked: a buffer is then free to move, as it is with an
//! owning handle, and nobody pays for a count of owners. Each group of cells has its own process,
//! which ends soon.

mod buffer_sv2;
mod byte_pool;
mod bytes;
#[cfg(feature = "peers")]
mod global;
mod lockfree;
mod mirrors;
mod object_pool;
mod opool;
mod pipes;
mod ringal;
mod sharded_slab;
mod vec_queue;
mod zeropool;

use crate::harness::contestant::Contestant;

/// A buffer of another crate's: a trait of one crate is implemented for types of that crate, or of
/// the implementing one.
#[derive(Debug)]
pub struct Theirs<T>(T);

/// All peers that this build has.
pub(super) fn all() -> Vec<Contestant> {
    vec![
        buffer_sv2::contestant(),
        ringal::contestant(),
        zeropool::contestant(),
        zeropool::without_settings(),
        opool::contestant(),
        object_pool::contestant(),
        lockfree::contestant(),
        sharded_slab::contestant(),
        byte_pool::contestant(),
        vec_queue::contestant(),
        bytes::contestant(),
        #[cfg(feature = "peers")]
        global::jemalloc(),
        #[cfg(feature = "peers")]
        global::mimalloc(),
        mirrors::slice_ring_buffer(),
        mirrors::vmcircbuffer(),
        pipes::rtrb(),
        pipes::ringbuf(),
        pipes::bbqueue(),
    ]
}

/// The reason of those that pool whole buffers only.
const NO_FRAMES: &str =
    "pools whole objects; a frame would be a `Vec` of the largest size in it, which is what `vec` shows";
