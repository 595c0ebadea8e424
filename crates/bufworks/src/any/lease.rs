//! The lease: what a buffer keeps of a pool whose strategy was chosen at run time.

use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufcore::{Buf, Frozen, Lease, SplitLease};

use super::variants::Of;

/// A buffer of an [`AnyPool`](crate::AnyPool).
///
/// ```
/// use bufworks::any::{AnyBuf, AnyBuilder};
///
/// /// Work for whatever pool the command line asks for.
/// struct Job {
///     body: AnyBuf,
/// }
///
/// let mut pool = "heap".parse::<AnyBuilder>()?.build()?;
/// let mut job = Job { body: pool.acquire(64)? };
/// job.body.extend_from_slice(b"work")?;
/// assert_eq!(job.body.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type AnyBuf = Buf<AnyLease>;

/// A view of a buffer of an [`AnyPool`](crate::AnyPool).
///
/// ```
/// use bufworks::any::{AnyBuilder, AnyView};
///
/// let mut buf = AnyBuilder::named("heap")?.build()?.acquire(64)?;
/// buf.extend_from_slice(b"GET /index.html")?;
/// let request: AnyView = buf.freeze();
/// let path: AnyView = request.slice(4..); // shares the memory
/// assert_eq!(&path[..], b"/index.html");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type AnyView = Frozen<AnyLease>;

/// The lease of an [`AnyPool`](crate::AnyPool)'s buffer: that of its strategy.
///
/// ```
/// use bufworks::Buf;
/// use bufworks::any::{AnyBuilder, AnyLease};
///
/// /// How many of the buffers did not come from the strategy's own memory.
/// fn fallbacks(bufs: &[Buf<AnyLease>]) -> usize {
///     bufs.iter().filter(|buf| buf.lease().is_fallback()).count()
/// }
///
/// let mut pool = "heap".parse::<AnyBuilder>()?.build()?;
/// assert_eq!(fallbacks(&[pool.acquire(64)?, pool.acquire(1 << 20)?]), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AnyLease {
    pub(super) of: Of,
}

impl AnyLease {
    /// Returns whether the memory is from the heap because the strategy had none left. A pool that
    /// is itself the heap does not fall back.
    ///
    /// ```
    /// # #[cfg(feature = "slot")] {
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = "slot:capacity=4KiB,slots=4".parse::<AnyBuilder>()?.build()?;
    /// assert!(!pool.acquire(1024)?.lease().is_fallback());
    /// assert!(pool.acquire(1 << 20)?.lease().is_fallback());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_fallback(&self) -> bool {
        self.of.is_fallback()
    }
}

// SAFETY: all as the lease in it has them; which one that is never changes.
unsafe impl Lease for AnyLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        each!(&self.of, Of(lease) => lease.views())
    }

    #[inline]
    fn is_shared(&self) -> bool {
        each!(&self.of, Of(lease) => lease.is_shared())
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        each!(&self.of, Of(lease) => lease.wipe_range())
    }

    fn start(&self) -> Option<NonNull<u8>> {
        each!(&self.of, Of(lease) => lease.start())
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self { of: Of::Heap(Lease::empty()?) })
    }
}

// SAFETY: as the lease in it has its mark; which one that is never changes. A lease over no bytes
// holds nothing of any strategy.
unsafe impl SplitLease for AnyLease {
    #[inline]
    fn into_shared(self) -> Self {
        let of = each!(self.of, Of(lease), Of(wrap) => wrap(lease.into_shared()));
        Self { of }
    }
}
