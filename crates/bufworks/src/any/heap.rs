//! The settings of the heap pool.

use bufcore::{ConfigError, HeapPool};

bufkit::settings! {
    /// The settings of a [`HeapPool`].
    ///
    /// ```
    /// use bufworks::any::{AnyBuilder, HeapBuilder};
    ///
    /// let builder = HeapBuilder::new().alignment(4096);
    /// assert_eq!(AnyBuilder::Heap(builder).to_string(), "heap:alignment=4KiB");
    /// assert_eq!(builder.build()?.acquire(100)?.as_ptr().addr() % 4096, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct HeapBuilder {
        new {
            /// Returns the defaults: no alignment beyond a pointer's.
            ///
            /// ```
            /// use bufworks::any::{AnyBuilder, HeapBuilder};
            ///
            /// assert_eq!(AnyBuilder::named("heap")?, AnyBuilder::Heap(HeapBuilder::new()));
            /// # Ok::<(), bufworks::any::SettingError>(())
            /// ```
        }
        set {
            /// Makes every buffer start at a multiple of `bytes`, a power of two; at least a
            /// pointer's alignment.
            ///
            /// ```
            /// use bufworks::any::HeapBuilder;
            ///
            /// let mut pages = HeapBuilder::new().alignment(4096).build()?; // for direct I/O
            /// assert!(pages.acquire(10_000)?.as_ptr().addr().is_multiple_of(4096));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes alignment(bytes) = 1;
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed when it is released.
            ///
            /// Cost: zeroing the capacity of every buffer.
            ///
            /// ```
            /// use bufworks::any::{AnyBuilder, HeapBuilder};
            ///
            /// let builder = AnyBuilder::Heap(HeapBuilder::new().wipe(true));
            /// assert_eq!(builder.to_string(), "heap:wipe=true");
            /// let mut key = builder.build()?.acquire(32)?;
            /// key.extend_from_slice(b"a secret")?;
            /// drop(key); // overwritten, then given back
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
        }
    }
}

impl HeapBuilder {
    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadAlignment`] for an alignment that is no power of two, and
    /// [`ConfigError::TooLarge`] for one that is too large.
    ///
    /// ```
    /// use bufworks::ConfigError;
    /// use bufworks::any::HeapBuilder;
    ///
    /// let refused = HeapBuilder::new().alignment(3).build().unwrap_err();
    /// assert_eq!(refused, ConfigError::BadAlignment { alignment: 3 });
    /// ```
    pub fn build(self) -> Result<HeapPool, ConfigError> {
        let pool = HeapPool::new().with_alignment(self.alignment)?;
        #[cfg(feature = "wipe")]
        let pool = pool.with_wipe(self.wipe);
        Ok(pool)
    }
}
