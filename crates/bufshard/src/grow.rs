//! Buffers that grow: in place in their block, or by moving.

use bufcore::author::Growth;
use bufcore::{AcquireError, Buf};

use crate::block::Block;
use crate::lease::ShardLease;
use crate::pool::ShardPool;

impl ShardPool {
    /// Makes room in `buf` for at least `additional` bytes after the filled ones, as
    /// [`BufferPool::grow`](bufcore::BufferPool::grow) does, through a shared reference.
    ///
    /// The buffer grows in place up to the bytes of its size class.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). The filled bytes are unchanged on an error.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let mut line = pool.acquire(65)?; // of a class of 80 bytes
    /// let start = line.as_ptr();
    /// line.extend_from_slice(&[b'.'; 65])?;
    /// pool.grow(&mut line, 15)?;
    /// assert_eq!((line.as_ptr(), line.capacity()), (start, 80)); // nothing was copied
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn grow(&self, buf: &mut Buf<ShardLease>, additional: usize) -> Result<(), AcquireError> {
        let Some(mut growth) = Growth::of(buf, additional, self.max_capacity())? else { return Ok(()) };
        if let Some(block) = buf.lease().block().filter(|_| bufkit::is_alone(buf.lease())) {
            // SAFETY: the buffer is in use while it is borrowed.
            let start = unsafe { Block::start(block) };
            // SAFETY: likewise.
            let bytes = unsafe { Block::usable_bytes(block) };
            let room = bytes - (buf.as_ptr().addr() - start.addr().get());
            if growth.least <= room {
                // SAFETY: the bytes up to the end of the block are this handle's alone (`block`,
                // K2), and initialised (K1).
                unsafe { buf.set_capacity(growth.roomy.min(room)) };
                return Ok(());
            }
            growth.spare = room - growth.len;
        }
        growth.move_to(&mut &*self, buf)
    }
}
