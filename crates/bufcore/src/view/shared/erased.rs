//! The guard of a [`SharedBytes`](super::SharedBytes): a lease of any type, in place.
//!
//! # Invariants
//!
//! - W1: the first bytes of `words` are a bitwise copy of a `LeaseGuard<L>`, where `methods` are
//!   those of `L`. All copies of one memory but the last are forgotten, never dropped.
//! - W2: `views` is the counter of that lease, which counts this handle.

use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::Lease;
use crate::lease::guard::LeaseGuard;
use crate::lease::ref_count::RefCount;

/// Room for a lease, and for the tracker's id beside it.
const WORDS: usize = if cfg!(feature = "track") { 6 } else { 4 };

/// The bits of a `LeaseGuard`. Pointers, so that those among the bits keep their provenance in
/// every copy.
type Words = [MaybeUninit<*mut ()>; WORDS];

/// A counted copy of a lease whose type is known to `methods` alone.
pub(super) struct ErasedGuard {
    views: NonNull<RefCount>,
    methods: &'static Methods,
    words: Words,
}

// SAFETY: leases are `Send`, and so is the tracker's id beside one; the count is atomic.
unsafe impl Send for ErasedGuard {}
// SAFETY: through a shared guard the count alone is used, which is `Sync`.
unsafe impl Sync for ErasedGuard {}

/// The functions that depend on the type of the lease.
struct Methods {
    lease: fn() -> TypeId,
    /// Whether the bytes may be secrets, which are not shown.
    is_wiped: bool,
    /// Wipes and releases the lease in these words, once.
    release: unsafe fn(&mut Words),
}

/// The methods for one type.
struct Of<L>(PhantomData<L>);

impl<L: Lease> Of<L> {
    const SHOWN: Methods = Methods { lease: TypeId::of::<L>, is_wiped: false, release: release::<L> };
    const WIPED: Methods = Methods { is_wiped: true, ..Self::SHOWN };
}

/// Releases the lease guard in `words`.
///
/// # Safety
///
/// 1. `words` hold a `LeaseGuard<L>` (W1) that is the last handle of its memory.
/// 2. It is not used again.
unsafe fn release<L: Lease>(words: &mut Words) {
    let guard = ptr::from_mut(words).cast::<LeaseGuard<L>>();
    // SAFETY: it is there, and aligned, since it fits; the borrow is the only one.
    let guard = unsafe { &mut *guard };
    // SAFETY: the caller's promise.
    unsafe { guard.release() }
}

impl ErasedGuard {
    /// Returns whether a lease of this type has room in here.
    pub(super) const fn fits<L: Lease>() -> bool {
        size_of::<LeaseGuard<L>>() <= size_of::<Words>() && align_of::<LeaseGuard<L>>() <= align_of::<Words>()
    }

    /// Takes over a view's lease, which fits, and its place in the count. `None`, and the lease is
    /// dropped, for one that counts nothing.
    #[inline]
    pub(super) fn new<L: Lease>(guard: LeaseGuard<L>, is_wiped: bool) -> Option<Self> {
        // Not by the compiler: it also looks at calls that are never made.
        assert!(const { Self::fits::<L>() }, "a lease of {} bytes is too large", size_of::<LeaseGuard<L>>());
        let views = NonNull::from(guard.lease.views()?);
        let guard = ManuallyDrop::new(guard);
        let mut words: Words = [MaybeUninit::uninit(); WORDS];
        // SAFETY: `guard` is valid for reads, `words` for writes of as many bytes, and they are
        // different places. It moves: the source is never dropped.
        unsafe {
            ptr::copy_nonoverlapping(
                (&raw const *guard).cast::<u8>(),
                words.as_mut_ptr().cast(),
                size_of_val(&guard),
            );
        }
        let methods = if is_wiped { &Of::<L>::WIPED } else { &Of::<L>::SHOWN };
        Some(Self { views, methods, words })
    }

    /// Returns the lease, if it is of this type, or else the guard.
    pub(super) fn into_guard<L: Lease>(self) -> Result<LeaseGuard<L>, Self> {
        if (self.methods.lease)() != TypeId::of::<L>() || !const { Self::fits::<L>() } {
            return Err(self);
        }
        let erased = ManuallyDrop::new(self);
        // SAFETY: a `LeaseGuard<L>` is there, and aligned (W1). It moves: the erased guard is never
        // dropped.
        Ok(unsafe { ptr::read((&raw const erased.words).cast::<LeaseGuard<L>>()) })
    }

    #[inline]
    fn views(&self) -> &RefCount {
        // SAFETY: valid until the lease is dropped (`Lease`, rule 3), which the handle that this is
        // prevents (W2).
        unsafe { self.views.as_ref() }
    }

    /// Returns whether the bytes may be secrets: their pool wipes.
    #[inline]
    pub(super) fn is_wiped(&self) -> bool {
        self.methods.is_wiped
    }

    /// Returns whether this is the only handle of its memory.
    #[inline]
    pub(super) fn is_only(&self) -> bool {
        self.views().is_one()
    }
}

impl Clone for ErasedGuard {
    #[inline]
    fn clone(&self) -> Self {
        self.views().retain();
        // The lease may be copied bit by bit (`Lease`, rule 2), and the tracker's id; the copy is
        // counted.
        Self { views: self.views, methods: self.methods, words: self.words }
    }
}

impl Drop for ErasedGuard {
    #[inline]
    fn drop(&mut self) {
        if self.views().release() {
            // SAFETY: the last handle, which is being dropped; its words hold what the methods are
            // for (W1).
            unsafe { (self.methods.release)(&mut self.words) }
        }
    }
}
