//! Settings of builders: as text, `capacity=64KiB,slots=3`.

use core::fmt::{self, Write};

/// Writes the settings of a builder that differ from its defaults, as `name=value` with commas
/// between. The `Display` of a strategy's builder uses it.
///
/// ```
/// use core::fmt;
/// use bufkit::SettingsText;
///
/// struct Builder { capacity: Option<usize>, slots: usize }
///
/// impl fmt::Display for Builder {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         let mut text = SettingsText::new(f);
///         text.bytes("capacity", self.capacity, None)?;
///         text.count("slots", self.slots, 8)
///     }
/// }
///
/// assert_eq!(Builder { capacity: Some(65536), slots: 3 }.to_string(), "capacity=64KiB,slots=3");
/// assert_eq!(Builder { capacity: None, slots: 8 }.to_string(), "");
/// ```
#[allow(missing_debug_implementations, reason = "a formatter has none")]
pub struct SettingsText<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    is_empty: bool,
}

impl<'a, 'f> SettingsText<'a, 'f> {
    /// Makes a text without settings.
    pub fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, is_empty: true }
    }

    /// Writes a number of bytes, in the largest unit that is exact: `65536` as `64KiB`, `65537` as
    /// itself. `None` is a setting that is not set.
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
    ///         SettingsText::new(f).bytes("limit", self.0, 4096)
    ///     }
    /// }
    ///
    /// assert_eq!(Bytes(Some(3 << 20)).to_string(), "limit=3MiB");
    /// assert_eq!(Bytes(Some(1500)).to_string(), "limit=1500");
    /// assert_eq!(Bytes(Some(4096)).to_string(), ""); // the default
    /// assert_eq!(Bytes(None).to_string(), "");
    /// ```
    pub fn bytes(
        &mut self,
        name: &str,
        value: impl Into<Option<usize>>,
        default: impl Into<Option<usize>>,
    ) -> fmt::Result {
        const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let (Some(value), default) = (value.into(), default.into()) else { return Ok(()) };
        if Some(value) == default {
            return Ok(());
        }
        let (unit, shift) =
            UNITS.into_iter().find(|&(_, shift)| value.trailing_zeros() >= shift).unwrap_or(("", 0));
        // All bits of zero are zero, but it has no unit.
        let (unit, number) = if value == 0 { ("", 0) } else { (unit, value >> shift) };
        self.setting(name, format_args!("{number}{unit}"))
    }

    /// Writes a bound of bytes, as [`bytes`](Self::bytes) does.
    ///
    /// # Errors
    ///
    /// The errors are those of the formatter.
    pub fn bound(&mut self, name: &str, value: Option<usize>, default: Option<usize>) -> fmt::Result {
        self.bytes(name, value, default)
    }

    /// Writes a number of other things than bytes.
    ///
    /// # Errors
    ///
    /// The errors are those of the formatter.
    pub fn count(
        &mut self,
        name: &str,
        value: impl Into<Option<usize>>,
        default: impl Into<Option<usize>>,
    ) -> fmt::Result {
        match value.into() {
            Some(value) if Some(value) != default.into() => self.setting(name, format_args!("{value}")),
            _ => Ok(()),
        }
    }

    /// Writes `true` or `false`.
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
    /// struct Builder {
    ///     slots: usize,
    ///     wipe: bool,
    /// }
    ///
    /// impl fmt::Display for Builder {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         let mut text = SettingsText::new(f);
    ///         text.count("slots", self.slots, 8)?;
    ///         text.switch("wipe", self.wipe, false)
    ///     }
    /// }
    ///
    /// assert_eq!(Builder { slots: 3, wipe: true }.to_string(), "slots=3,wipe=true");
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn switch(&mut self, name: &str, value: bool, default: bool) -> fmt::Result {
        if value == default { Ok(()) } else { self.setting(name, format_args!("{value}")) }
    }

    /// Writes a setting that is none of these, as it prints.
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
    ///         SettingsText::new(f).text("mode", self.0, 'a')
    ///     }
    /// }
    ///
    /// assert_eq!(Mode('b').to_string(), "mode=b");
    /// assert_eq!(Mode('a').to_string(), ""); // the default
    /// ```
    pub fn text<T: fmt::Display + PartialEq>(&mut self, name: &str, value: T, default: T) -> fmt::Result {
        if value == default { Ok(()) } else { self.setting(name, format_args!("{value}")) }
    }

    fn setting(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        if !self.is_empty {
            self.f.write_char(',')?;
        }
        self.is_empty = false;
        write!(self.f, "{name}={value}")
    }
}
