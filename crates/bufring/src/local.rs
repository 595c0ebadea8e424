//! A ring for each thread.

use core::cell::{RefCell, RefMut};
use core::fmt;
use std::thread::LocalKey;

use bufcore::{AcquireError, Buf, ConfigError};

use crate::{Builder, RingLease, RingPool, RingVec};

/// A ring for a `thread_local!` static: each thread that uses it gets its own, at its first
/// request.
///
/// [`LocalAcquire`] gives the static its `acquire`. Buffers may be sent to other threads, and
/// outlive their thread.
///
/// ```
/// use bufring::{LocalAcquire, LocalRing, Writer};
///
/// thread_local! {
///     static RING: LocalRing = const { LocalRing::new(1024) };
/// }
///
/// let mut fixed = RING.acquire(64)?;
/// fixed.extend_from_slice(b"hello world!")?;
/// // A closure may use anything that borrows the ring; it may return a fixed buffer.
/// let finished = RING.with_ring(|ring| {
///     let mut writer = Writer::new(ring);
///     writer.extend_from_slice(b"hello world, again!")?;
///     Ok::<_, bufcore::AcquireError>(writer.finish())
/// })??;
/// assert_eq!((&fixed[..], &finished[..]), (&b"hello world!"[..], &b"hello world, again!"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LocalRing {
    settings: Builder,
    /// Built at the first request.
    ring: RefCell<Option<RingPool>>,
}

bufcore::unwind_safe!(LocalRing);

impl LocalRing {
    /// Declares a ring of `capacity` bytes for each thread. It allocates no memory before it is
    /// used.
    ///
    /// ```
    /// use bufring::{LocalAcquire, LocalRing};
    ///
    /// thread_local! {
    ///     static RING: LocalRing = const { LocalRing::new(64 << 10) };
    /// }
    ///
    /// let workers: Vec<_> = (0..2)
    ///     .map(|worker| {
    ///         std::thread::spawn(move || {
    ///             let mut result = RING.acquire(16)?; // from the worker's own ring
    ///             result.extend_from_slice(format!("worker {worker}").as_bytes())?;
    ///             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(result)
    ///         })
    ///     })
    ///     .collect();
    /// for (worker, thread) in workers.into_iter().enumerate() {
    ///     let result = thread.join().unwrap().unwrap(); // outlives the thread and its ring
    ///     assert_eq!(result, format!("worker {worker}").as_bytes());
    /// }
    /// ```
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self::with_settings(Builder::new().capacity(capacity))
    }

    /// Declares a ring of these settings for each thread.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufring::{Builder, LocalAcquire, LocalRing};
    ///
    /// thread_local! {
    ///     static RING: LocalRing =
    ///         const { LocalRing::with_settings(Builder::new().capacity(1 << 20).buffers(256)) };
    /// }
    /// assert_eq!(RING.acquire(1500)?.capacity(), 1500);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_settings(settings: Builder) -> Self {
        Self { settings, ring: RefCell::new(None) }
    }

    /// Returns this thread's ring, and builds it if there is none.
    #[inline]
    fn ring(&self) -> Result<RefMut<'_, RingPool>, LocalError> {
        let mut ring = self.ring.try_borrow_mut().map_err(|_| LocalError::InUse)?;
        if ring.is_none() {
            *ring = Some(self.build()?);
        }
        RefMut::filter_map(ring, Option::as_mut).map_err(|_| LocalError::InUse)
    }

    #[cold]
    #[inline(never)]
    fn build(&self) -> Result<RingPool, LocalError> {
        self.settings.build().map_err(LocalError::Config)
    }
}

/// Why a thread's ring did not serve a request.
///
/// ```
/// use bufring::{AcquireError, LocalAcquire, LocalError, LocalRing};
///
/// thread_local! {
///     static RING: LocalRing = const { LocalRing::new(1024) };
/// }
///
/// let all = RING.acquire(1024)?;
/// let refused = RING.acquire(100).unwrap_err();
/// assert!(matches!(refused, LocalError::Acquire(AcquireError::Exhausted { .. })));
/// drop(all); // makes room
///
/// let nested = RING.with_ring(|_ring| RING.acquire(100).map(drop))?;
/// assert_eq!(nested, Err(LocalError::InUse)); // inside, use the ring that the closure was given
/// # Ok::<(), LocalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocalError {
    /// The thread is exiting, and its ring was dropped.
    Gone,
    /// The ring is in use: the call is inside of a closure of [`LocalAcquire::with_ring`].
    InUse,
    /// The ring could not be built. The next request tries again.
    Config(ConfigError),
    /// The ring cannot serve such a buffer.
    Acquire(AcquireError),
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("thread is ending and its ring is gone"),
            Self::InUse => f.write_str("thread's ring is in use further up the stack"),
            Self::Config(error) => error.fmt(f),
            Self::Acquire(error) => error.fmt(f),
        }
    }
}

// What it has inside prints as itself.
impl core::error::Error for LocalError {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for std::thread::LocalKey<super::LocalRing> {}
}

/// Acquires from a `thread_local!` static of a [`LocalRing`].
///
/// ```
/// use bufring::{LocalAcquire, LocalRing, RingBuf};
///
/// thread_local! {
///     static RING: LocalRing = const { LocalRing::new(64 << 10) };
/// }
///
/// /// Needs no pool among its parameters.
/// fn greeting(name: &str) -> Result<RingBuf, Box<dyn std::error::Error>> {
///     let mut text = RING.acquire(7 + name.len())?;
///     text.extend_from_slice(b"Hello, ")?;
///     text.extend_from_slice(name.as_bytes())?;
///     Ok(text)
/// }
/// assert_eq!(greeting("Ada")?, *b"Hello, Ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LocalAcquire: sealed::Sealed {
    /// Takes a buffer of at least `capacity` bytes from this thread's ring.
    ///
    /// Cost: as [`RingPool`]'s `acquire`, and a look-up of the thread's ring.
    ///
    /// # Errors
    ///
    /// See [`LocalError`]. It never panics or aborts, even in the destructor of another
    /// thread-local.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufring::{LocalAcquire, LocalRing};
    ///
    /// thread_local! {
    ///     static RING: LocalRing = const { LocalRing::new(1024) };
    /// }
    /// let mut line = RING.acquire(64)?;
    /// line.extend_from_slice(b"a line")?;
    /// assert_eq!(&line[..], b"a line");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire(&'static self, capacity: usize) -> Result<Buf<RingLease>, LocalError>;

    /// Takes an empty vector with room for `capacity` values from this thread's ring.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufring::{LocalAcquire, LocalRing};
    ///
    /// thread_local! {
    ///     static RING: LocalRing = const { LocalRing::new(1024) };
    /// }
    /// let mut columns = RING.acquire_vec::<usize>(4)?;
    /// columns.push(7)?;
    /// assert_eq!(columns[..], [7]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_vec<T>(&'static self, capacity: usize) -> Result<RingVec<T>, LocalError>;

    /// Lends this thread's ring to `f`: for a `Writer`, and for other code that borrows it.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](Self::acquire); `f` is not called then.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufring::{LocalAcquire, LocalRing, Writer};
    ///
    /// thread_local! {
    ///     static RING: LocalRing = const { LocalRing::new(1024) };
    /// }
    /// let text = RING.with_ring(|ring| {
    ///     let mut writer = Writer::with_capacity(ring, 16);
    ///     writer.extend_from_slice(b"longer than sixteen bytes")?;
    ///     Ok::<_, Box<dyn std::error::Error>>(writer.finish())
    /// })??;
    /// assert_eq!(text.len(), 25);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn with_ring<R>(&'static self, f: impl FnOnce(&mut RingPool) -> R) -> Result<R, LocalError>;
}

/// Returns the value of this thread. It is not used inside of a closure, where the caller's place
/// in the source would be lost to the leak tracker.
///
/// # Safety
///
/// The reference is not used after the caller of this function has returned.
#[inline(always)]
unsafe fn local<'a>(key: &'static LocalKey<LocalRing>) -> Result<&'a LocalRing, LocalError> {
    let here = key.try_with(core::ptr::from_ref).map_err(|_| LocalError::Gone)?;
    // SAFETY: the value lives until this thread's destructors run; they run on this thread, so not
    // before the caller returns.
    Ok(unsafe { &*here })
}

impl LocalAcquire for LocalKey<LocalRing> {
    #[inline]
    fn acquire(&'static self, capacity: usize) -> Result<Buf<RingLease>, LocalError> {
        // SAFETY: used in this function only.
        let local = unsafe { local(self)? };
        local.ring()?.acquire(capacity).map_err(LocalError::Acquire)
    }

    #[inline]
    fn acquire_vec<T>(&'static self, capacity: usize) -> Result<RingVec<T>, LocalError> {
        // SAFETY: used in this function only.
        let local = unsafe { local(self)? };
        local.ring()?.acquire_vec(capacity).map_err(LocalError::Acquire)
    }

    fn with_ring<R>(&'static self, f: impl FnOnce(&mut RingPool) -> R) -> Result<R, LocalError> {
        self.try_with(|local| Ok(f(&mut *local.ring()?))).map_err(|_| LocalError::Gone)?
    }
}
