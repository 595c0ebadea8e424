//! Memory that a program supplies for regions; see [`MemoryProvider`].

use alloc::boxed::Box;
use core::alloc::Layout;
use core::any::Any;
use core::ptr::NonNull;

use crate::memory::try_box::try_box;
use crate::{Region, RegionError};

/// Supplies the memory of regions: memory that is registered with a device, bound to a NUMA node,
/// or part of a program's own arena.
///
/// [`Region::from_provider`] makes a region of it. Pools that are built in a region (`build_in`)
/// have all their memory there. Pools that grow request each larger piece from a provider
/// (`build_from`). An `Arc<P>` or a `&'static P` of a provider is a provider too, which many
/// regions can share.
///
/// Memory that lives as long as the program needs no provider: see [`Region::from_static`].
///
/// # Panics
///
/// Its methods and its drop may panic.
///
/// - A panic of [`allocate`](Self::allocate), or one while a region or a pool without live buffers
///   is dropped, propagates to the caller.
/// - If a pool is dropped with live buffers, its memory is freed with the last of them. The thread
///   that frees it may only use other pools. There a panic is caught after its hook ran. Without
///   `std` it propagates through that thread.
/// - In pools that request each piece from a provider (`build_from`), all its panics are caught. A
///   panic of [`allocate`](Self::allocate) is then a failed allocation.
///
/// # Safety
///
/// For memory that [`allocate`](Self::allocate) returns, until it is passed to
/// [`deallocate`](Self::deallocate):
///
/// 1. It is valid for reads and writes of the layout's size, and aligned to the layout's alignment.
///    Any thread may use it.
/// 2. No other code uses it, except a device that the program controls.
/// 3. Its address does not change, even if the provider is moved.
/// 4. If [`Provided::is_zeroed`] is true, all its bytes are zero.
///
/// ```
/// use std::alloc::{Layout, alloc, dealloc};
/// use std::ptr::NonNull;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use bufcore::{Region, RegionError, MemoryProvider, Provided};
///
/// /// Memory of which the program knows how much there is.
/// #[derive(Default)]
/// struct Counted {
///     bytes: AtomicUsize,
/// }
///
/// // SAFETY: the allocator's block is valid, exclusive and not moved until it is freed.
/// unsafe impl MemoryProvider for Counted {
///     fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
///         // SAFETY: the layout is not of zero size.
///         let start = NonNull::new(unsafe { alloc(layout) })
///             .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
///         self.bytes.fetch_add(layout.size(), Ordering::Relaxed);
///         // Here a program would register the bytes with its device.
///         Ok(Provided { start, is_zeroed: false })
///     }
///
///     unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
///         self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
///         // SAFETY: from `allocate`, with this layout, and freed once.
///         unsafe { dealloc(start.as_ptr(), layout) };
///     }
/// }
///
/// let provider = Arc::new(Counted::default());
/// let region = Region::from_provider(Arc::clone(&provider), 1 << 20, 4096)?;
/// assert_eq!(provider.bytes.load(Ordering::Relaxed), 1 << 20);
/// drop(region);
/// assert_eq!(provider.bytes.load(Ordering::Relaxed), 0);
/// # Ok::<(), RegionError>(())
/// ```
pub unsafe trait MemoryProvider: Send + Sync + 'static {
    /// Supplies memory of this layout, which is not of zero size.
    ///
    /// # Errors
    ///
    /// [`RegionError::OutOfMemory`], or [`RegionError::Refused`] with the call that failed.
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError>;

    /// Frees the memory, on any thread.
    ///
    /// # Safety
    ///
    /// [`allocate`](Self::allocate) of this provider, or of one that shares its memory such as a
    /// clone, returned `start` for this layout. The memory is freed once, and not used afterwards.
    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout);

    /// Returns whether pages of the memory may be returned to the system while a region uses it. A
    /// region asks once, when it is made; the default is that they are kept.
    ///
    /// Pools return pages without live buffers when they are [trimmed](Region::return_pages). At
    /// its next use such a page is zero, and at another physical address. Pages must therefore be
    /// kept if a device knows them, if they are bound to a node one by one, or if other processes
    /// map them. They may be returned if the memory is private, and from `mmap` or the global
    /// allocator. The kernel does not take pages that are locked, shared or of a file.
    ///
    /// ```
    /// # use std::alloc::{Layout, alloc_zeroed, dealloc};
    /// # use std::ptr::NonNull;
    /// use bufcore::{Region, RegionError, MemoryProvider, Provided};
    ///
    /// /// Ordinary memory, which the program counts.
    /// struct Counted;
    ///
    /// // SAFETY: as the allocator that it passes on.
    /// unsafe impl MemoryProvider for Counted {
    ///     // ...
    /// #   fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
    /// #       // SAFETY: the layout is not of zero size.
    /// #       let start = NonNull::new(unsafe { alloc_zeroed(layout) })
    /// #           .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
    /// #       Ok(Provided { start, is_zeroed: true })
    /// #   }
    /// #   unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
    /// #       // SAFETY: from `allocate`, with this layout, and freed once.
    /// #       unsafe { dealloc(start.as_ptr(), layout) };
    /// #   }
    ///     fn returns_pages(&self) -> bool {
    ///         true
    ///     }
    /// }
    /// # #[cfg(all(feature = "mmap", target_os = "linux"))]
    /// assert!(Region::from_provider(Counted, 1 << 20, 64)?.returns_pages());
    /// # Ok::<(), RegionError>(())
    /// ```
    fn returns_pages(&self) -> bool {
        false
    }
}

/// The memory that a [`MemoryProvider`] supplied.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufcore::Provided;
///
/// /// What comes from `mmap` is zero.
/// fn mapped(start: NonNull<u8>) -> Provided {
///     Provided { start, is_zeroed: true }
/// }
///
/// let mut byte = 0;
/// assert!(mapped(NonNull::from(&mut byte)).is_zeroed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provided {
    /// Where the memory starts.
    pub start: NonNull<u8>,
    /// Whether all bytes are zero. If not, the caller zeroes them.
    pub is_zeroed: bool,
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        // SAFETY: as the provider that it leads to, which is there while the pointer is, and is not
        // moved.
        unsafe impl<P: MemoryProvider + ?Sized> MemoryProvider for $pointer {
            fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
                (**self).allocate(layout)
            }

            unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller's promise.
                unsafe { (**self).deallocate(start, layout) }
            }

            fn returns_pages(&self) -> bool {
                (**self).returns_pages()
            }
        }
    )*};
}

pointers!(&'static P, Box<P>);
#[cfg(target_has_atomic = "ptr")]
pointers!(alloc::sync::Arc<P>);

/// Memory of a provider, with the provider. It is given back when this is dropped.
struct Provision<P: MemoryProvider> {
    provider: P,
    start: NonNull<u8>,
    layout: Layout,
}

impl<P: MemoryProvider> Drop for Provision<P> {
    fn drop(&mut self) {
        // SAFETY: from `allocate` of this provider, for this layout, and given back once, here.
        unsafe { self.provider.deallocate(self.start, self.layout) };
    }
}

/// Owns memory of a provider, with the provider: kept for its drop.
pub(crate) struct FromProvider(#[allow(dead_code, reason = "kept for its Drop")] Box<dyn Any>);

// Nothing of the provider can be reached through it, so nothing half-done can be seen.
crate::unwind_safe!(FromProvider);

/// Takes memory of this layout from a provider, zeroed. Returns with it whether its pages may go
/// back to the system.
fn take<P: MemoryProvider>(
    provider: P,
    layout: Layout,
) -> Result<(NonNull<u8>, FromProvider, bool), RegionError> {
    let Provided { start, is_zeroed } = provider.allocate(layout)?;
    // Gives it back from here on, whatever fails.
    let provision = Provision { provider, start, layout };
    debug_assert!(start.addr().get().is_multiple_of(layout.align()), "{start:?} of a provider, {layout:?}");
    if !is_zeroed {
        // SAFETY: valid for writes of the layout's size, and nobody else's (`MemoryProvider`, rules
        // 1 and 2).
        unsafe { start.write_bytes(0, layout.size()) };
    }
    let returns_pages = provision.provider.returns_pages();
    let kept =
        try_box(|| provision).ok_or(RegionError::OutOfMemory { requested: size_of::<Provision<P>>() })?;
    // SAFETY: made by `try_box`, and taken once.
    let kept: Box<dyn Any> = unsafe { Box::from_raw(kept.as_ptr()) };
    Ok((start, FromProvider(kept), returns_pages))
}

impl Region {
    /// Takes a zeroed region of `len` bytes from a provider, its start aligned to `alignment`.
    ///
    /// The region keeps the provider, and frees its memory when it is dropped.
    ///
    /// Cost: the provider's, and an allocation of a few words. Memory that is not zeroed is zeroed
    /// here.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::BadAlignment`]: `alignment` is no power of two.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::OutOfMemory`]: the provider or the allocator failed.
    /// - Any other error that the provider returns.
    ///
    /// [`MemoryProvider`] has an example.
    pub fn from_provider(
        provider: impl MemoryProvider,
        len: usize,
        alignment: usize,
    ) -> Result<Self, RegionError> {
        let layout = Self::layout(len, alignment)?;
        let (start, kept, returns_pages) = take(provider, layout)?;
        // SAFETY: valid, zeroed and nobody else's until `kept` is dropped (`MemoryProvider`).
        Ok(unsafe { Self::of_provider(start, len, kept, returns_pages) })
    }
}
