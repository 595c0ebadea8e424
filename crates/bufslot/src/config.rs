//! The settings of a pool, checked once.

use bufcore::author::{check_alignment, check_setting};
use bufcore::{BufferPool, BuildInError, ConfigError, Region, size};

use crate::SlotPool;
use crate::table::{Layout, MAX_SLOTS, Table, overhead_bytes};

/// The least and the most slots unless another number is asked for, and the bytes for each between.
const LEAST_SLOTS: usize = 8;
const MOST_SLOTS: usize = 1024;
const SLOT_BYTES: usize = 1 << 10;
/// The capacity over heap memory unless another is asked for. Pages that no buffer needed are not
/// touched, so where there are addresses for it, there is room for a burst.
#[cfg(feature = "alloc")]
const DEFAULT_CAPACITY: usize = if usize::BITS < 64 { 1 << 20 } else { 8 << 20 };

bufkit::settings! {
    /// The settings of a [`SlotPool`]. They can be given in any order and are checked when the pool
    /// is built.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::NoFallback;
    /// use bufslot::SlotPool;
    ///
    /// let builder = SlotPool::builder().slots(64).capacity(1 << 20).alignment(64);
    /// let pool = builder.build_with(NoFallback)?;
    /// assert_eq!(pool.slots(), 64);
    /// assert!(pool.capacity() >= 1 << 20);
    /// # }
    /// # Ok::<(), bufcore::ConfigError>(())
    /// ```
    ///
    /// With the `serde` feature they can be in a configuration file, each under the name of its
    /// method:
    ///
    /// ```
    /// # #[cfg(feature = "serde")] {
    /// use bufslot::Builder;
    ///
    /// let builder: Builder = serde_json::from_str(r#"{"capacity": 65536, "slots": 16}"#).unwrap();
    /// assert_eq!(builder, Builder::new().capacity(65536).slots(16));
    /// let text = serde_json::to_string(&builder).unwrap();
    /// assert_eq!(serde_json::from_str::<Builder>(&text).unwrap(), builder);
    /// assert!(serde_json::from_str::<Builder>(r#"{"no_such_setting": 1}"#).is_err());
    /// # }
    /// ```
    pub struct Builder {
        new {
            /// Returns the defaults: 8 MiB, 1024 slots that share it, no alignment, staggered.
            ///
            /// ```
            /// use bufslot::Builder;
            ///
            /// let defaults = Builder::new();
            /// assert_eq!(defaults, Builder::new().alignment(1).stagger(true));
            /// assert_eq!(defaults.slots(64).to_string(), "slots=64"); // shows what differs
            /// ```
        }
        unset {
            /// Sets the bytes that the slots share. The default is 8 MiB, or 1 MiB if addresses
            /// have fewer than 64 bits. For n buffers of one size, use n times that size, rounded
            /// up to the alignment.
            ///
            /// Over a given region the default is all bytes except the bookkeeping, the gaps of
            /// [`stagger`](Self::stagger) included.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufslot::SlotPool;
            ///
            /// let mut pool = SlotPool::builder().capacity(4 * 1500).slots(4).build()?;
            /// let four: Result<Vec<_>, _> = (0..4).map(|_| pool.acquire(1500)).collect();
            /// assert!(four?.iter().all(|buf| pool.slot_of(buf).is_some())); // none from the heap
            /// # }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes capacity(bytes);
            /// Sets how many buffers of the region can be in use at once. Each slot costs 32 bytes
            /// of bookkeeping, and 8 more if there are more than 64. The default is one for each
            /// KiB of the capacity, or of a given region; at least 8, and at most 1024. A given
            /// region has fewer if the capacity leaves no room for them.
            ///
            /// Requests beyond that number are served by the fallback, even while the region has
            /// room.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufslot::SlotPool;
            ///
            /// let mut pool = SlotPool::builder().capacity(64 << 10).slots(2).build()?;
            /// let three = [pool.acquire(100)?, pool.acquire(100)?, pool.acquire(100)?];
            /// let is_fallback = three.each_ref().map(|buf| buf.lease().is_fallback());
            /// assert_eq!(is_fallback, [false, false, true]);
            /// # }
            /// # Ok::<(), bufslot::Error>(())
            /// ```
            count slots(slots);
        }
        set {
            /// Makes every buffer start at a multiple of `bytes`, a power of two; the default is 1.
            /// The default heap fallback uses the same alignment; a given fallback keeps its own.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufslot::SlotPool;
            ///
            /// let mut pool = SlotPool::builder().alignment(64).build()?;
            /// assert_eq!(pool.acquire(100)?.as_ptr().addr() % 64, 0);
            /// # }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes alignment(bytes) = 1;
            /// Sets whether buffers of 1 KiB and more are spread over the sets of the first-level
            /// cache; the default is on. A gap of up to 127 bytes after each buffer does that.
            ///
            /// It applies only to pools that have at least 1 KiB for each slot and an alignment of
            /// at most 64 bytes. The gaps are added to the requested capacity; a given region
            /// without room for them has none.
            ///
            /// ```
            /// use bufslot::Builder;
            ///
            /// // Without gaps the region is smaller, and buffers of one size follow each other.
            /// let spread = Builder::new().capacity(64 << 10).slots(16);
            /// let packed = spread.stagger(false);
            /// assert!(packed.required_bytes()? < spread.required_bytes()?);
            /// # #[cfg(feature = "alloc")] {
            /// let mut pool = packed.build()?;
            /// let (first, second) = (pool.acquire(4096)?, pool.acquire(4096)?);
            /// assert_eq!(second.as_ptr().addr() - first.as_ptr().addr(), 4096);
            /// # }
            /// # Ok::<(), bufslot::Error>(())
            /// ```
            switch stagger(stagger) = true;
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed when it is released. The default heap
            /// fallback does the same; a given fallback keeps its own setting.
            ///
            /// Cost: zeroing the capacity of every buffer.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufslot::SlotPool;
            ///
            /// let mut pool = SlotPool::builder().capacity(4096).wipe(true).build()?;
            /// pool.acquire(9)?.extend_from_slice(b"passwords")?;
            /// assert_eq!(pool.acquire(9)?.spare_mut(), [0; 9]); // no secret
            /// # }
            /// # Ok::<(), bufslot::Error>(())
            /// ```
        }
    }
}

impl Builder {
    /// Returns the bytes that a region needs for these settings, wherever it starts.
    ///
    /// ```
    /// let bytes = bufslot::Builder::new().slots(4).capacity(256).required_bytes().unwrap();
    /// assert!(bytes > 256);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error for settings that no region can serve.
    pub fn required_bytes(&self) -> Result<usize, ConfigError> {
        self.check()?;
        let requested = self.capacity.unwrap_or(1);
        let slots = self.slots_for(requested);
        let overhead = overhead_bytes(slots, self.alignment).unwrap_or(size::MAX_BYTES);
        let beside = overhead.saturating_add(self.gaps(requested, slots));
        check_setting("capacity", requested, size::MAX_BYTES.saturating_sub(beside))?;
        Ok(beside + requested)
    }

    /// Builds the pool over heap memory, with the heap as fallback.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`] for no slots or a capacity of 0, [`ConfigError::TooLarge`] for sizes
    /// that cannot exist, [`ConfigError::BadAlignment`], and [`ConfigError::Region`] if the
    /// allocator fails.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let pool = SlotPool::builder().capacity(1 << 20).slots(64).build()?;
    /// assert!(pool.capacity() >= 1 << 20 && pool.slots() == 64);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn build(self) -> Result<SlotPool, ConfigError> {
        self.check()?;
        let fallback = bufcore::HeapPool::new().with_alignment(self.alignment)?;
        #[cfg(feature = "wipe")]
        let fallback = fallback.with_wipe(self.wipe);
        self.build_with(fallback)
    }

    /// Builds the pool over heap memory, with the caller's `fallback`.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    /// use bufslot::bufcore::{AcquireError, BufferPool, NoFallback};
    ///
    /// // The memory is bounded: the heap serves no request.
    /// let mut pool = SlotPool::builder().capacity(4096).slots(4).build_with(NoFallback)?;
    /// let first = pool.acquire(4000)?;
    /// assert!(matches!(pool.acquire(4000), Err(AcquireError::Exhausted { .. })));
    /// # drop(first);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn build_with<F: BufferPool>(self, fallback: F) -> Result<SlotPool<F>, ConfigError> {
        let builder = self.capacity(self.capacity.unwrap_or(DEFAULT_CAPACITY));
        let region = Region::heap(builder.required_bytes()?, size::CACHE_LINE_BYTES)?;
        builder.build_in(region, fallback).map_err(|refused| refused.error)
    }

    /// Builds the pool over the caller's `region`, with the caller's `fallback`. It needs no
    /// allocator.
    ///
    /// ```
    /// use bufcore::{BufferPool, Region, NoFallback};
    /// use bufslot::Builder;
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 1024].into()) }
    /// let region = Region::from_static(memory()); // a `static_cell`, a linker section, …
    /// let mut pool = Builder::new().slots(4).build_in(region, NoFallback)?;
    /// let buf = pool.acquire(100)?;
    /// assert_eq!(buf.capacity(), 100);
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    ///
    /// The error returns the region:
    ///
    /// ```
    /// use bufslot::bufcore::{ConfigError, Region, NoFallback};
    /// use bufslot::{Builder, BuildInError};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 512].into()) }
    /// let region = Region::from_static(memory());
    /// let many = Builder::new().slots(64);
    /// let refused = many.build_in(region, NoFallback).unwrap_err();
    /// let BuildInError { error, region, fallback } = refused;
    /// assert!(matches!(error, ConfigError::RegionTooSmall { available: 512, .. }));
    ///
    /// // Nothing is lost: the same region does for fewer slots.
    /// assert!(many.slots(4).build_in(region, fallback).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), and [`ConfigError::RegionTooSmall`]; the error returns region and
    /// fallback.
    pub fn build_in<F: BufferPool>(
        self,
        region: Region,
        fallback: F,
    ) -> Result<SlotPool<F>, BuildInError<F>> {
        if let Err(error) = self.check() {
            return Err(BuildInError { error, region, fallback });
        }
        let address = region.as_ptr().addr().get();
        let slots = self.slots_in(region.len());
        let Some(layout) = Layout::new(address, slots, self.alignment) else {
            let error =
                ConfigError::TooLarge { setting: "slots", requested: slots, limit: region.len() / 32 };
            return Err(BuildInError { error, region, fallback });
        };
        let room = region.len().saturating_sub(layout.overhead());
        let (capacity, stagger) = match (self.capacity, self.wanted(slots)) {
            (None, _) => (room, self.staggers(room, slots)),
            // The gaps come on top of the capacity, or not at all: they take no buffer's place.
            (Some(capacity), Some(wanted)) if wanted <= room => (wanted, self.staggers(capacity, slots)),
            (Some(capacity), _) => (capacity, false),
        };
        match Table::build(region, layout, slots, capacity, self.wipe) {
            Ok(table) => Ok(SlotPool::over(table, capacity, self.alignment, stagger, fallback)),
            Err((error, region)) => Err(BuildInError { error, region, fallback }),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        check_setting("slots", self.slots.unwrap_or(1), MAX_SLOTS)?;
        check_setting("capacity", self.capacity.unwrap_or(1), usize::MAX)?;
        check_alignment(self.alignment, size::MAX_BYTES / 4)
    }

    /// Returns whether buffers are staggered in this number of bytes. They are not where they are
    /// aligned to more than a cache line: a gap would be a whole alignment then, and take the place
    /// of buffers.
    fn staggers(&self, capacity: usize, slots: usize) -> bool {
        self.stagger
            && self.alignment <= size::CACHE_LINE_BYTES
            && capacity / slots >= bufkit::STAGGER_FROM_BYTES
    }

    /// Returns the number of slots for this number of bytes.
    fn slots_for(&self, bytes: usize) -> usize {
        self.slots.unwrap_or((bytes / SLOT_BYTES).clamp(LEAST_SLOTS, MOST_SLOTS))
    }

    /// Returns the number of slots in a region of that many bytes. The slots leave room for the
    /// capacity.
    fn slots_in(&self, bytes: usize) -> usize {
        let mut slots = self.slots_for(self.capacity.unwrap_or(bytes));
        let fits = |slots| {
            let needs = overhead_bytes(slots, self.alignment)?.checked_add(self.capacity.unwrap_or(0))?;
            Some(needs <= bytes)
        };
        while self.slots.is_none() && slots > LEAST_SLOTS && fits(slots) != Some(true) {
            slots = (slots / 2).max(LEAST_SLOTS);
        }
        slots
    }

    /// Returns the capacity that was asked for, with the gaps that may be behind its buffers.
    fn wanted(&self, slots: usize) -> Option<usize> {
        let capacity = self.capacity.unwrap_or(1);
        capacity.checked_add(self.gaps(capacity, slots))
    }

    /// Returns the bytes of the gaps that may be behind the buffers of this capacity.
    fn gaps(&self, capacity: usize, slots: usize) -> usize {
        if self.staggers(capacity, slots) { slots.saturating_mul(2 * size::CACHE_LINE_BYTES) } else { 0 }
    }
}
