//! The everyday methods of a buffer: its bytes and its room.

use core::slice;

use super::Buf;
use crate::memory::aliasing::copy_bytes;
use crate::{Lease, ReserveError};

impl<L: Lease> Buf<L> {
    /// Returns the number of filled bytes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(64)?;
    /// assert!(buf.is_empty());
    /// buf.extend_from_slice(b"GET /")?;
    /// assert_eq!((buf.len(), buf.capacity()), (5, 64));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing is filled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that the buffer can hold. For a buffer that was just acquired,
    /// this is exactly the requested number.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(1500)?;
    /// assert_eq!((buf.capacity(), buf.spare_capacity()), (1500, 1500));
    /// let rest = buf.split_off(500); // its capacity is divided, too
    /// assert_eq!((buf.capacity(), rest.capacity()), (500, 1000));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of bytes that can still be filled: `capacity - len`.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut batch = HeapPool::new().acquire(16)?;
    /// for line in ["one", "two", "three", "four"] {
    ///     if line.len() + 1 > batch.spare_capacity() {
    ///         break; // the next batch begins with this line
    ///     }
    ///     writeln!(batch, "{line}")?;
    /// }
    /// assert_eq!(batch, "one\ntwo\nthree\n");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn spare_capacity(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the filled part, as `&buf[..]` does.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(32)?;
    /// buf.extend_from_slice("naïve".as_bytes())?;
    /// assert_eq!(std::str::from_utf8(buf.as_slice()), Ok("naïve"));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len <= capacity` bytes from `ptr` are valid, initialised and ours (I1, I2).
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Returns the filled part, which can be changed in place.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"host")?;
    /// buf.as_mut_slice().make_ascii_uppercase();
    /// assert_eq!(buf.as_slice(), b"HOST");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes it the only borrow.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// Appends `bytes` to the filled part.
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] if they do not all fit. Nothing is written then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(4)?;
    /// buf.extend_from_slice(b"abc")?;
    /// let full = buf.extend_from_slice(b"de").unwrap_err();
    /// assert_eq!((full.requested, full.available), (2, 1));
    /// assert_eq!(&buf[..], b"abc"); // unchanged
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        let room = self.spare_mut();
        let Some(target) = room.get_mut(..bytes.len()) else {
            return Err(ReserveError { requested: bytes.len(), available: room.len() });
        };
        copy_bytes(target, bytes);
        self.len += bytes.len();
        Ok(())
    }

    /// Appends one byte to the filled part.
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] when the buffer is full.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut line = HeapPool::new().acquire(3)?;
    /// line.extend_from_slice(b"ok")?;
    /// line.push(b'\n')?;
    /// assert_eq!(line, "ok\n");
    /// assert_eq!(line.push(b'!').unwrap_err().available, 0);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn push(&mut self, byte: u8) -> Result<(), ReserveError> {
        self.extend_from_slice(&[byte])
    }

    /// Returns the unfilled part, for writing in place. [`commit`](Self::commit) then counts the
    /// written bytes as filled.
    ///
    /// Contents: recycled bytes of an earlier use of the memory, unless the pool wipes on release.
    ///
    /// Cost: nothing; the memory is initialised already.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut buf = HeapPool::new().acquire(8).unwrap();
    /// buf.spare_mut()[..2].copy_from_slice(b"ok");
    /// buf.commit(2);
    /// assert_eq!(&buf[..], b"ok");
    /// # }
    /// ```
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len <= capacity` (I2), so this stays within the buffer's memory.
        let start = unsafe { self.ptr.add(self.len) };
        // SAFETY: the `capacity - len` bytes from there are valid, initialised and ours (I1), and
        // `&mut self` makes this the only borrow.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), self.capacity - self.len) }
    }

    /// Counts the next `bytes` of the spare part as filled.
    ///
    /// The caller must have written them through [`spare_mut`](Self::spare_mut). Bytes that the
    /// caller did not write are recycled ones.
    ///
    /// # Panics
    ///
    /// Panics when `bytes` is over [`spare_capacity`](Self::spare_capacity).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::io::Read;
    ///
    /// use bufcore::HeapPool;
    ///
    /// let mut socket = &b"PING"[..];
    /// let mut buf = HeapPool::new().acquire(1500)?;
    /// let bytes = socket.read(buf.spare_mut())?;
    /// buf.commit(bytes);
    /// assert_eq!(buf, "PING");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn commit(&mut self, bytes: usize) {
        if bytes > self.spare_capacity() {
            commit_past_capacity(bytes, self.spare_capacity());
        }
        self.len += bytes;
    }

    /// Makes the filled part `len` bytes long: cuts it, or appends bytes of `value`.
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] when `len` is over the capacity. Nothing changes then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.resize(3, b'-')?;
    /// assert_eq!(&buf[..], b"---");
    /// buf.resize(1, b'-')?;
    /// assert_eq!(&buf[..], b"-");
    /// assert!(buf.resize(9, b'-').is_err());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn resize(&mut self, len: usize, value: u8) -> Result<(), ReserveError> {
        if len > self.len {
            let additional = len - self.len;
            let room = self.spare_mut();
            let Some(target) = room.get_mut(..additional) else {
                return Err(ReserveError { requested: additional, available: room.len() });
            };
            target.fill(value);
        }
        self.len = len;
        Ok(())
    }

    /// Keeps the first `len` filled bytes. If there are fewer, nothing changes.
    ///
    /// Cost: nothing; the bytes after them become spare capacity again.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut line = HeapPool::new().acquire(16)?;
    /// line.extend_from_slice(b"a line\r\n")?;
    /// line.truncate(line.trim_ascii_end().len());
    /// assert_eq!(line, "a line");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes the buffer empty; its whole capacity can be filled again.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut line = HeapPool::new().acquire(32)?;
    /// for number in [7, 8] {
    ///     line.clear(); // one buffer for every line
    ///     write!(line, "request {number}")?;
    /// }
    /// assert_eq!((&line[..], line.capacity()), (&b"request 8"[..], 32));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Drops the first `bytes` filled bytes.
    ///
    /// This reduces the capacity: the buffer's start moves past them. [`compact`](Self::compact)
    /// restores the capacity.
    ///
    /// Cost: nothing is copied.
    ///
    /// # Panics
    ///
    /// Panics when `bytes` is over [`len`](Self::len).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"GET /")?;
    /// buf.consume(4);
    /// assert_eq!((&buf[..], buf.capacity()), (&b"/"[..], 4));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.len, "consume({bytes}) of {} filled bytes", self.len);
        // SAFETY: `bytes <= len <= capacity`, so the new start is within the memory or one past its
        // end.
        self.ptr = unsafe { self.ptr.add(bytes) };
        self.len -= bytes;
        self.capacity -= bytes;
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn commit_past_capacity(bytes: usize, spare: usize) -> ! {
    panic!("commit({bytes}) past the capacity: there is room for {spare}")
}
