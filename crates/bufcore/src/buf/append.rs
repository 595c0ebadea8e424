//! Appending values and texts to a buffer.

use core::fmt;

use crate::memory::aliasing::copy_bytes;
use crate::{Buf, Lease, ReserveError};

impl<L: Lease> Buf<L> {
    /// Appends formatted text, all of it or nothing. `write!(buf, …)` calls it, whichever `Write`
    /// traits are in scope.
    ///
    /// `?` converts the error to that of `std::io`, of `core::fmt` or of this crate.
    ///
    /// Cost: the text is formatted in place; no allocation.
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] if the text does not fit; `requested` is its length. Nothing is
    /// appended then.
    ///
    /// # Panics
    ///
    /// Panics if a value's own `Display` returns an error, as `format!` does. Nothing is appended
    /// then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool, ReserveError};
    ///
    /// let mut buf = HeapPool::new().acquire(16).unwrap();
    /// write!(buf, "Content: {}", 42).unwrap();
    /// assert_eq!(buf, "Content: 42");
    /// // There is no room for all of it, and so nothing is written.
    /// assert_eq!(write!(buf, "; {}", "longer"), Err(ReserveError { requested: 8, available: 5 }));
    /// assert_eq!(buf, "Content: 42");
    /// # }
    /// ```
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), ReserveError> {
        let mut target = Target { room: self.spare_mut(), len: 0 };
        if fmt::write(&mut target, text).is_err() {
            panic!("a formatting trait implementation returned an error");
        }
        let len = target.len;
        if len > self.spare_capacity() {
            return Err(ReserveError { requested: len, available: self.spare_capacity() });
        }
        self.commit(len);
        Ok(())
    }
}

/// Takes the text that fits, and measures all of it.
struct Target<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl fmt::Write for Target<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len.saturating_add(text.len());
        if let Some(room) = self.room.get_mut(self.len..end) {
            copy_bytes(room, text.as_bytes());
        }
        self.len = end;
        Ok(())
    }
}

/// Appends texts. Text that does not fit is an error, and nothing of it is appended.
impl<L: Lease> fmt::Write for Buf<L> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        Ok(self.extend_from_slice(text.as_bytes())?)
    }

    /// Appends all or nothing, as [`Buf::write_fmt`] does.
    #[inline]
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        Ok(self.write_fmt(text)?)
    }
}

/// Makes `?` work in code that formats.
impl From<ReserveError> for fmt::Error {
    #[inline]
    fn from(_: ReserveError) -> Self {
        Self
    }
}

/// Appends each byte.
///
/// # Panics
///
/// Panics if the buffer is full and a byte is left, as `bytes::BufMut` does: a buffer does not
/// grow. The bytes that were appended before remain. [`extend_from_slice`](Buf::extend_from_slice)
/// returns an error instead.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::HeapPool;
///
/// let mut buf = HeapPool::new().acquire(8)?;
/// buf.extend((b'a'..=b'e').map(|letter| letter.to_ascii_uppercase()));
/// assert_eq!(buf, "ABCDE");
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
impl<L: Lease> Extend<u8> for Buf<L> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        for byte in bytes {
            if self.push(byte).is_err() {
                no_room(self.capacity());
            }
        }
    }
}

/// Appends each byte, as for owned bytes.
impl<'a, L: Lease> Extend<&'a u8> for Buf<L> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = &'a u8>>(&mut self, bytes: I) {
        self.extend(bytes.into_iter().copied());
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_room(capacity: usize) -> ! {
    panic!("extend past the capacity of {capacity} bytes: a buffer does not grow")
}
