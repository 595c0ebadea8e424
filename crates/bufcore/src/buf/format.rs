//! How buffers and views print.

use core::fmt::{self, Debug, LowerHex, UpperHex, Write};

use crate::{Buf, Frozen, Lease, SharedBytes};

/// `Debug` shows this many bytes.
const SHOWN_BYTES: usize = 64;

/// Bytes as a literal, `b"…"`, escaped as `bytes` and the compiler do it, and cut.
struct Literal<'a>(&'a [u8]);

impl Debug for Literal<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES)];
        f.write_str("b\"")?;
        for &byte in shown {
            match byte {
                b'\0' => f.write_str("\\0")?,
                // A text has it often, and needs no escape for it.
                b'\'' => f.write_char('\'')?,
                _ => write!(f, "{}", byte.escape_ascii())?,
            }
        }
        f.write_str(if shown.len() < self.0.len() { "\"..." } else { "\"" })
    }
}

/// Shows the length, the capacity, and the first 64 bytes, escaped. For a buffer of a pool that
/// wipes it shows `..` in place of the bytes, since they may be secrets.
impl<L: Lease> Debug for Buf<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Buf");
        shown.field("len", &self.len()).field("capacity", &self.capacity());
        if self.lease().wipe_range().is_some() {
            return shown.finish_non_exhaustive();
        }
        shown.field("bytes", &Literal(self)).finish()
    }
}

/// Shows the length and the first 64 bytes, escaped. For a view of a pool that wipes it shows `..`
/// in place of the bytes, since they may be secrets.
impl<L: Lease> Debug for Frozen<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Frozen");
        shown.field("len", &self.len());
        if self.is_wiped() {
            return shown.finish_non_exhaustive();
        }
        shown.field("bytes", &Literal(self)).finish()
    }
}

/// Shows the first 64 bytes as a literal. For bytes of a pool that wipes it shows their length
/// instead, since they may be secrets.
impl Debug for SharedBytes {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_wiped() {
            return f.debug_struct("SharedBytes").field("len", &self.len()).finish_non_exhaustive();
        }
        Literal(self).fmt(f)
    }
}

/// Each byte as two digits.
macro_rules! hex {
    ($($trait:ident $format:literal),+) => {$(
        hex!($trait $format, [L: Lease] Buf<L>, "Shows all bytes, two digits each; `{:#…}` puts `0x` in front.");
        hex!($trait $format, [L: Lease] Frozen<L>, "Shows the bytes as for a [`Buf`].");
        hex!($trait $format, [] SharedBytes, "Shows the bytes as for a [`Buf`].");
    )+};
    ($trait:ident $format:literal, [$($generics:tt)*] $type:ty, $doc:literal) => {
        #[doc = $doc]
        impl<$($generics)*> $trait for $type {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if f.alternate() {
                    f.write_str("0x")?;
                }
                self.iter().try_for_each(|byte| write!(f, $format, byte))
            }
        }
    };
}

hex!(LowerHex "{:02x}", UpperHex "{:02X}");
