//! One handle for bytes of any origin: a view whose strategy is erased.
//!
//! # Invariants
//!
//! - H1: `len` bytes from `ptr` are initialised, and nobody writes them, while `guard` lives; for
//!   ever when there is none.
//! - H2: a handle of no bytes holds nothing.

use core::ptr::NonNull;

use crate::{Buf, Frozen, Lease};
use erased::ErasedGuard;

mod erased;
#[cfg(feature = "alloc")]
mod owner;
mod traits;

/// Holds read-only bytes of any origin, cheap to clone, slice and send: a view of a buffer of any
/// strategy, a `Vec<u8>`, or static bytes.
///
/// Structs that store bytes use this type instead of a [`Frozen`] with the lease of one strategy.
/// Code that takes it works with all pools.
///
/// | made from | cost |
/// | --- | --- |
/// | [`Frozen`] or [`Buf`] of a strategy | a move; no allocation |
/// | a view whose lease is larger than four words (six with `track`) | one small allocation |
/// | `&'static [u8]`, `&'static str` | nothing |
/// | `Vec<u8>`, `Box<[u8]>`, `String` | one small allocation, no copy; nothing when empty |
/// | any owner of bytes: [`from_owner`](Self::from_owner) | one small allocation, no copy |
///
/// Clones and slices cost one locked addition, or nothing for static bytes. They allocate nothing.
/// A handle is eight words.
///
/// Ownership: the memory is released with its last handle, on any thread, even if the pool was
/// dropped. A handle of no bytes holds no memory, whatever its origin is.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{BufferPool, HeapPool, SharedBytes};
///
/// struct Message {
///     topic: SharedBytes,
///     payload: SharedBytes,
/// }
///
/// let mut buf = HeapPool::new().acquire(64)?;
/// buf.extend_from_slice(b"news:hello")?;
/// let mut payload = SharedBytes::from(buf.freeze());
/// let topic = payload.split_to(4); // both share the buffer
/// payload.consume(1);
/// let received = Message { topic, payload };
/// let own = Message { topic: SharedBytes::from_static(b"news"), payload: vec![1, 2, 3].into() };
/// assert_eq!(received.topic, own.topic);
/// assert_eq!((&received.payload[..], &own.payload[..]), (&b"hello"[..], &[1, 2, 3][..]));
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedBytes {
    /// Start of the bytes (H1).
    ptr: NonNull<u8>,
    /// Their number.
    len: usize,
    /// The lease that keeps them; `None` for static bytes and for none (H2).
    guard: Option<ErasedGuard>,
}

// SAFETY: a handle only reads its bytes, which nobody writes (H1), and its guard is `Send`.
unsafe impl Send for SharedBytes {}
// SAFETY: a shared handle gives out shared bytes and clones, and its guard is `Sync`.
unsafe impl Sync for SharedBytes {}

super::methods::view_methods!(impl[] SharedBytes, new);

impl SharedBytes {
    /// Makes a handle of no bytes.
    ///
    /// Cost: nothing.
    ///
    /// ```
    /// use bufcore::SharedBytes;
    ///
    /// static NOTHING: SharedBytes = SharedBytes::new();
    /// assert!(NOTHING.is_empty() && NOTHING.is_static());
    /// ```
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self::from_static(&[])
    }

    /// Makes a handle of bytes that exist as long as the program runs.
    ///
    /// Cost: nothing. Its clones and slices cost nothing either.
    ///
    /// ```
    /// # use bufcore::SharedBytes;
    /// const OK: SharedBytes = SharedBytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n");
    /// assert!(OK.is_static() && OK.starts_with(b"HTTP/1.1 200"));
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        // SAFETY: the pointer of a slice is not null.
        let ptr = unsafe { NonNull::new_unchecked(bytes.as_ptr().cast_mut()) };
        Self { ptr, len: bytes.len(), guard: None }
    }

    /// Puts `len` bytes at `ptr` together with what keeps them.
    ///
    /// # Safety
    ///
    /// 1. `len` bytes from `ptr` are valid and initialised, and nobody writes them, while `guard`
    ///    lives.
    /// 2. `len` is not zero.
    #[inline]
    unsafe fn guarded_by(ptr: NonNull<u8>, len: usize, guard: ErasedGuard) -> Self {
        debug_assert!(len > 0, "a handle of no bytes holds nothing (H2)");
        Self { ptr, len, guard: Some(guard) }
    }

    /// Returns whether this handle holds no memory: its bytes are static or empty.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::SharedBytes;
    ///
    /// assert!(SharedBytes::from_static(b"HTTP/1.1").is_static());
    /// assert!(!SharedBytes::from(vec![1, 2, 3]).is_static());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn is_static(&self) -> bool {
        self.guard.is_none()
    }

    /// Returns the bytes, if this handle holds no memory: then they are there for ever.
    #[cfg(feature = "bytes")]
    pub(crate) fn static_bytes(&self) -> Option<&'static [u8]> {
        // SAFETY: without a guard, they are valid, initialised and not written for ever (H1).
        self.is_static().then(|| unsafe { core::slice::from_raw_parts(self.ptr.as_ptr(), self.len) })
    }

    /// Returns whether the bytes may be secrets, which are not shown: their pool wipes.
    #[inline]
    pub(crate) fn is_wiped(&self) -> bool {
        self.guard.as_ref().is_some_and(ErasedGuard::is_wiped)
    }

    /// Returns whether this is the only handle of its memory, at this moment. It is false if the
    /// handle holds no memory.
    ///
    /// Other views of the same buffer count, erased or not.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, SharedBytes};
    ///
    /// let view = HeapPool::new().acquire_zeroed(64)?.freeze();
    /// let shared = SharedBytes::from(view.clone());
    /// assert!(!shared.is_unique());
    /// drop(view);
    /// assert!(shared.is_unique());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.guard.as_ref().is_some_and(ErasedGuard::is_only)
    }

    /// Returns a handle of `part`, a subslice of these bytes, such as a parser returns.
    ///
    /// # Panics
    ///
    /// Panics if `part` is not empty and not within these bytes.
    ///
    /// ```
    /// # use bufcore::SharedBytes;
    /// let line = SharedBytes::from_static(b"key: value");
    /// let (_, value) = std::str::from_utf8(&line).unwrap().split_once(": ").unwrap();
    /// assert_eq!(line.slice_ref(value.as_bytes()), b"value");
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn slice_ref(&self, part: &[u8]) -> Self {
        if part.is_empty() {
            return Self::new();
        }
        let start = part.as_ptr().addr().wrapping_sub(self.ptr.addr().get());
        let end = start.checked_add(part.len()).filter(|end| *end <= self.len);
        let Some(end) = end else { panic!("slice_ref of {} bytes that are not within these", part.len()) };
        self.slice(start..end)
    }

    /// Moves the start by `bytes`, which are at most `len`, checked by the callers.
    #[inline]
    fn skip(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len, "skip {bytes} of {}", self.len);
        // SAFETY: `bytes <= len`, so this stays within the bytes or one past their end.
        self.ptr = unsafe { self.ptr.add(bytes) };
        self.len -= bytes;
    }

    /// Turns the handle back into a view with the lease of its strategy, which can become a buffer
    /// again ([`Frozen::try_into_mut`]).
    ///
    /// # Errors
    ///
    /// Returns the handle itself in these cases:
    ///
    /// - The bytes are of another strategy, a program's own, static, or empty.
    /// - The lease is larger than four words (six with `track`).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapLease, HeapPool, SharedBytes};
    ///
    /// let shared = SharedBytes::from(HeapPool::new().acquire_zeroed(3)?);
    /// let view = shared.downcast::<HeapLease>().expect("it came from a heap pool");
    /// let mut buf = view.try_into_mut().expect("the only handle");
    /// buf[0] = 1;
    /// # }
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    pub fn downcast<L: Lease>(mut self) -> Result<Frozen<L>, Self> {
        match self.guard.take().map(ErasedGuard::into_guard::<L>) {
            // SAFETY: the bytes of a view that was taken apart; its lease goes along, with its
            // place in the count.
            Some(Ok(guard)) => Ok(unsafe { Frozen::from_parts(self.ptr, self.len, guard) }),
            Some(Err(guard)) => {
                self.guard = Some(guard);
                Err(self)
            }
            None => Err(self),
        }
    }
}

/// Cost: a move; see the table of [`SharedBytes`] for large leases. An empty view releases its
/// buffer.
///
/// Without the feature `alloc`, a view with a lease of over four words does not compile.
impl<L: Lease> From<Frozen<L>> for SharedBytes {
    #[inline]
    fn from(view: Frozen<L>) -> Self {
        if view.is_empty() {
            return Self::new();
        }
        let is_wiped = view.is_wiped();
        if const { ErasedGuard::fits::<L>() } {
            let (ptr, len, guard) = view.into_parts();
            let Some(guard) = guard.and_then(|guard| ErasedGuard::new(guard, is_wiped)) else {
                // A lease that counts nothing is over no bytes (`Lease`, rule 3).
                return Self::new();
            };
            // SAFETY: the bytes of a view are valid and not written while its lease lives, which
            // the guard has now; there are some.
            return unsafe { Self::guarded_by(ptr, len, guard) };
        }
        #[cfg(feature = "alloc")]
        return Self::from_owner_of(view, is_wiped);
        #[cfg(not(feature = "alloc"))]
        const {
            assert!(
                ErasedGuard::fits::<L>(),
                "without the feature `alloc` a lease has to fit into four words"
            );
        }
        #[cfg(not(feature = "alloc"))]
        return Self::new();
    }
}

/// Cost: as from a [`Frozen`].
impl<L: Lease> From<Buf<L>> for SharedBytes {
    #[inline]
    fn from(buf: Buf<L>) -> Self {
        buf.freeze().into()
    }
}
