//! The options of a mapping that the operating system makes.

use core::fmt;

pub(crate) const PAGE_BYTES: usize = 4096;
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Chooses the pages that back a mapped region.
///
/// ```
/// use bufcore::{HugePages, MapOptions, Region, RegionError};
///
/// /// Maps huge pages, or ordinary ones where the administrator set none aside.
/// fn map(len: usize) -> Result<Region, RegionError> {
///     let options = MapOptions::new();
///     Region::mapped(len, options.huge_pages(HugePages::Require))
///         .or_else(|_| Region::mapped(len, options.huge_pages(HugePages::Advise)))
/// }
/// assert!(map(1 << 20)?.len() >= 1 << 20);
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum HugePages {
    /// Ordinary pages.
    #[default]
    No,
    /// Ordinary pages that the kernel is advised to merge into huge ones (`madvise`). A hint: never
    /// fails.
    Advise,
    /// Huge pages reserved by the administrator (`MAP_HUGETLB`, 2 MiB); fails if there are none.
    Require,
}

/// Holds the options of a mapped region.
///
/// ```
/// # use bufcore::{HugePages, MapOptions};
/// let options = MapOptions::new().huge_pages(HugePages::Advise).populate(true);
/// # let _ = options;
/// ```
///
/// With the `serde` feature they can be in a configuration file, each under the name of its method:
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use bufcore::{HugePages, MapOptions};
///
/// let file = r#"{"huge_pages": "advise", "lock": true}"#;
/// let options: MapOptions = serde_json::from_str(file).unwrap();
/// assert_eq!(options, MapOptions::new().huge_pages(HugePages::Advise).lock(true));
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct MapOptions {
    pub(crate) huge_pages: HugePages,
    pub(crate) populate: bool,
    pub(crate) lock: bool,
}

impl MapOptions {
    /// Returns the defaults: ordinary pages, faulted in on first touch, not locked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which pages to use.
    ///
    /// ```
    /// use bufcore::{HugePages, MapOptions, Region};
    ///
    /// // A hint to the kernel, which never fails. The length is rounded up to huge pages.
    /// let options = MapOptions::new().huge_pages(HugePages::Advise);
    /// assert_eq!(Region::mapped(3 << 20, options)?.len(), 4 << 20);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn huge_pages(mut self, huge_pages: HugePages) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Returns the bytes of a page. A mapping has a whole number of pages: of 4096 bytes, or of 2
    /// MiB if huge pages are required.
    ///
    /// ```
    /// use bufcore::{HugePages, MapOptions};
    ///
    /// assert_eq!(MapOptions::new().page_bytes(), 4096);
    /// assert_eq!(MapOptions::new().huge_pages(HugePages::Advise).page_bytes(), 2 << 20);
    /// ```
    #[must_use]
    pub fn page_bytes(self) -> usize {
        if self.huge_pages == HugePages::No { PAGE_BYTES } else { HUGE_PAGE_BYTES }
    }

    /// Sets whether to fault in all pages at once, so that no later access does.
    ///
    /// ```
    /// use bufcore::{MapOptions, Region};
    ///
    /// // Every page is there before the first request comes.
    /// let region = Region::mapped(64 << 10, MapOptions::new().populate(true))?;
    /// assert_eq!(region.len(), 64 << 10);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.populate = populate;
        self
    }

    /// Sets whether to lock the pages in memory (`mlock`); they stay locked until the region is
    /// dropped.
    ///
    /// ```
    /// use bufcore::{MapOptions, Region, RegionError};
    ///
    /// // Keys must not reach the swap file. The system may refuse: its limit is small.
    /// match Region::mapped(4096, MapOptions::new().lock(true)) {
    ///     Ok(region) => assert_eq!(region.len(), 4096),
    ///     Err(refused) => assert!(matches!(refused, RegionError::Refused { call: "mlock", .. })),
    /// }
    /// ```
    #[must_use]
    pub fn lock(mut self, lock: bool) -> Self {
        self.lock = lock;
        self
    }
}

/// The options that are set, as words with `+` between: `advise` or `require` for huge pages,
/// `populate`, and `lock`. `plain` if none is set. `AnyBuilder` of `bufworks` parses this form.
///
/// ```
/// use bufcore::{HugePages, MapOptions};
///
/// let options = MapOptions::new().huge_pages(HugePages::Advise).lock(true);
/// assert_eq!(options.to_string(), "advise+lock");
/// assert_eq!(MapOptions::new().to_string(), "plain");
/// ```
impl fmt::Display for MapOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let huge_pages = match self.huge_pages {
            HugePages::No => None,
            HugePages::Advise => Some("advise"),
            HugePages::Require => Some("require"),
        };
        let words = [huge_pages, self.populate.then_some("populate"), self.lock.then_some("lock")];
        let mut words = words.into_iter().flatten();
        f.write_str(words.next().unwrap_or("plain"))?;
        words.try_for_each(|word| write!(f, "+{word}"))
    }
}
