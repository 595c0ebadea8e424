//! How large a buffer has to become that grows, for [`BufferPool::grow`].

use crate::size::MAX_BYTES;
use crate::{AcquireError, Buf, BufferPool, Lease};

/// The sizes of a buffer that grows, for authors of strategies.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::HeapPool;
/// use bufcore::author::Growth;
///
/// let mut buf = HeapPool::new().acquire(100)?;
/// buf.commit(80);
/// assert!(Growth::of(&mut buf, 20, 4096)?.is_none()); // there is room
/// let growth = Growth::of(&mut buf, 21, 4096)?.expect("a byte more than there is");
/// assert_eq!((growth.least, growth.roomy), (101, 160));
/// assert!(Growth::of(&mut buf, usize::MAX, 4096).is_err());
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    /// Bytes that the buffer must hold, including the filled ones.
    pub least: usize,
    /// The same, or twice the filled bytes if that is more. A buffer that moves gets this many
    /// bytes if available, because the next step would move it again.
    pub roomy: usize,
    /// The filled bytes.
    pub len: usize,
    /// The bytes of the request.
    pub additional: usize,
    /// The spare bytes after the filled ones, fewer than requested.
    pub spare: usize,
}

impl Growth {
    /// Plans to give `buf` room for `additional` bytes. Bytes that were consumed in front of the
    /// filled ones become spare capacity. Returns `None` if that is enough.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError::TooLarge`] if no buffer can have this many bytes; `limit` is the
    /// pool's largest.
    pub fn of<L: Lease>(
        buf: &mut Buf<L>,
        additional: usize,
        limit: usize,
    ) -> Result<Option<Self>, AcquireError> {
        if additional <= buf.spare_capacity() {
            return Ok(None);
        }
        let len = buf.len();
        let limit = limit.min(MAX_BYTES).saturating_sub(len).max(buf.spare_capacity());
        let most = MAX_BYTES.saturating_sub(len);
        if additional > most {
            return Err(AcquireError::TooLarge { requested: additional, limit });
        }
        buf.compact();
        let spare = buf.spare_capacity();
        if additional <= spare {
            return Ok(None);
        }
        let least = len + additional;
        let roomy = least.max(len.saturating_mul(2)).min(MAX_BYTES);
        Ok(Some(Self { least, roomy, len, additional, spare }))
    }

    /// Moves the filled bytes to another buffer of `pool`, which replaces `buf`.
    ///
    /// # Errors
    ///
    /// The error is that of the pool, with the numbers of the request. `buf` is unchanged then.
    #[cfg_attr(feature = "track", track_caller)]
    pub fn move_to<P: BufferPool + ?Sized>(
        self,
        pool: &mut P,
        buf: &mut Buf<P::Lease>,
    ) -> Result<(), AcquireError> {
        let roomy = self.roomy.min(pool.max_capacity());
        let more = if roomy > self.least { pool.acquire(roomy).ok() } else { None };
        let mut larger = match more {
            Some(larger) => larger,
            None => pool.acquire(self.least).map_err(|error| self.refused(error))?,
        };
        // A pool of the user's may return one that is not empty, or too small.
        larger.clear();
        let available = larger.capacity();
        if available < self.least || larger.extend_from_slice(buf).is_err() {
            return Err(self.refused(AcquireError::Exhausted { requested: self.least, available }));
        }
        *buf = larger;
        Ok(())
    }

    /// Converts the error for a buffer of [`least`](Self::least) bytes to the numbers of the
    /// request.
    #[cold]
    pub fn refused(self, error: AcquireError) -> AcquireError {
        let requested = self.additional;
        // What the buffer has room for needs no growth; what was just refused is not to be had.
        let most =
            |number: usize| number.saturating_sub(self.len).max(self.spare).min(requested.saturating_sub(1));
        match error {
            AcquireError::TooLarge { limit, .. } => AcquireError::TooLarge { requested, limit: most(limit) },
            AcquireError::Exhausted { available, .. } => {
                AcquireError::Exhausted { requested, available: most(available) }
            }
            AcquireError::OutOfMemory { .. } => AcquireError::OutOfMemory { requested },
        }
    }
}
