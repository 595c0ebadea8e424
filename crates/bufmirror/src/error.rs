//! The error of taking bytes out.

use core::fmt;

/// A [`get`](crate::MirrorRing::get) of more bytes than the ring holds. Nothing was taken out.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufmirror::MirrorRing;
///
/// let mut ring = MirrorRing::new(4096)?;
/// ring.put(b"abc")?;
/// let error = ring.get(&mut [0; 8]).unwrap_err();
/// assert_eq!((error.requested, error.available), (8, 3));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GetError {
    /// Requested bytes.
    pub requested: usize,
    /// Bytes that the ring held.
    pub available: usize,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot get {} bytes: {} bytes available", self.requested, self.available)
    }
}

impl core::error::Error for GetError {}
