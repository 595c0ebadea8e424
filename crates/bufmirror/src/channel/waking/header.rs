//! The positions and states that the ends see of each other, in one process' memory or in a file.

use bufkit::sync::{AtomicU32, AtomicUsize};

/// On cache lines of its own: pairs of lines come together on many processors.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// The end sleeps, or is about to: it is to be woken.
pub(crate) const SLEEPS: u32 = 1;
/// The end is gone.
pub(crate) const CLOSED: u32 = 2;

/// What is seen of one end by the other.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Half {
    /// C1.
    pub(crate) position: Padded<AtomicUsize>,
    /// `SLEEPS` and `CLOSED`, and a flag of `shared::processes`. Apart from the position, because
    /// it changes rarely and is read by the other end all the time.
    pub(crate) state: Padded<AtomicU32>,
}

/// What is seen of both.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Header {
    pub(crate) producer: Half,
    pub(crate) consumer: Half,
}

impl Header {
    #[inline(always)]
    pub(crate) fn half(&self, producer: bool) -> &Half {
        if producer { &self.producer } else { &self.consumer }
    }
}
