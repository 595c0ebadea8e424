//! Settings of builders: as text, `capacity=64KiB,slots=3`.

use core::fmt::{self, Write};

/// Writes the settings of a builder that differ from its defaults, as `name=value`, separated by
/// commas. The `Display` of a strategy's builder uses it.
///
/// ```
/// use core::fmt;
/// use bufkit::SettingsText;
///
/// struct Builder { capacity: Option<usize>, slots: usize, stagger: bool }
///
/// impl fmt::Display for Builder {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         let mut text = SettingsText::new(f);
///         text.bytes("capacity", self.capacity, None)?;
///         text.text("slots", Some(self.slots), Some(8))?;
///         text.text("stagger", Some(self.stagger), Some(true))
///     }
/// }
///
/// let text = Builder { capacity: Some(65536), slots: 3, stagger: true }.to_string();
/// assert_eq!(text, "capacity=64KiB,slots=3");
/// assert_eq!(Builder { capacity: None, slots: 8, stagger: false }.to_string(), "stagger=false");
/// ```
#[allow(missing_debug_implementations, reason = "a formatter has none")]
pub struct SettingsText<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    is_empty: bool,
}

impl<'a, 'f> SettingsText<'a, 'f> {
    /// Makes a text without settings.
    #[inline]
    pub fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, is_empty: true }
    }

    /// Writes a number of bytes, in the largest unit that is exact: `65536` as `64KiB`, `65537` as
    /// itself. `None` is an unset setting.
    ///
    /// # Errors
    ///
    /// The errors are those of the formatter.
    ///
    /// ```
    /// use std::fmt;
    ///
    /// use bufkit::SettingsText;
    ///
    /// struct Bytes(Option<usize>);
    ///
    /// impl fmt::Display for Bytes {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         SettingsText::new(f).bytes("limit", self.0, Some(4096))
    ///     }
    /// }
    ///
    /// assert_eq!(Bytes(Some(3 << 20)).to_string(), "limit=3MiB");
    /// assert_eq!(Bytes(Some(1500)).to_string(), "limit=1500");
    /// assert_eq!(Bytes(Some(4096)).to_string(), ""); // the default
    /// assert_eq!(Bytes(None).to_string(), "");
    /// ```
    #[inline]
    pub fn bytes(&mut self, name: &str, value: Option<usize>, default: Option<usize>) -> fmt::Result {
        self.text(name, value.map(Bytes), default.map(Bytes))
    }

    /// Writes a setting that is not a number of bytes, by its `Display`.
    ///
    /// # Errors
    ///
    /// The errors are those of the formatter.
    ///
    /// ```
    /// use std::fmt;
    ///
    /// use bufkit::SettingsText;
    ///
    /// struct Mode(char);
    ///
    /// impl fmt::Display for Mode {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         SettingsText::new(f).text("mode", Some(self.0), Some('a'))
    ///     }
    /// }
    ///
    /// assert_eq!(Mode('b').to_string(), "mode=b");
    /// assert_eq!(Mode('a').to_string(), ""); // the default
    /// ```
    pub fn text<T>(&mut self, name: &str, value: Option<T>, default: Option<T>) -> fmt::Result
    where
        T: fmt::Display + PartialEq,
    {
        if value == default {
            return Ok(());
        }
        let Some(value) = value else { return Ok(()) };
        if !self.is_empty {
            self.f.write_char(',')?;
        }
        self.is_empty = false;
        write!(self.f, "{name}={value}")
    }
}

/// A number of bytes, which prints in the largest unit that is exact.
#[derive(PartialEq)]
struct Bytes(usize);

impl fmt::Display for Bytes {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];
        // All bits of zero are zero, but it has no unit.
        let is_exact = |shift| shift == 0 || (self.0 > 0 && self.0.trailing_zeros() >= shift);
        let unit = UNITS.into_iter().find(|&(_, shift)| is_exact(shift));
        unit.map_or(Ok(()), |(unit, shift)| write!(f, "{}{unit}", self.0 >> shift))
    }
}
