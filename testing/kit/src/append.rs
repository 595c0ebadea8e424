//! A step of a frame, as the trials write it.

use bufcore::{AcquireError, BufferPool, SplitLease, Writer};

/// Appends to a writer.
pub trait Append {
    /// Counts `n` bytes more as filled, and lends them to be written.
    ///
    /// # Errors
    ///
    /// Those of [`Writer::writable`].
    fn append(&mut self, n: usize) -> Result<&mut [u8], AcquireError>;
}

impl<P: BufferPool<Lease: SplitLease>> Append for Writer<P> {
    fn append(&mut self, n: usize) -> Result<&mut [u8], AcquireError> {
        let len = self.filled().len();
        assert!(self.writable(n)?.len() >= n, "less than {n} bytes were lent");
        self.commit(n);
        Ok(&mut self.filled_mut()[len..])
    }
}
