//! Says which feature is missing, where a program converts to `bytes::Bytes` without it.

use crate::{Buf, Frozen, Lease};

/// Nothing implements it.
#[diagnostic::on_unimplemented(
    message = "`into_bytes` needs the feature `bytes`",
    label = "the feature `bytes` is off",
    note = "add `features = [\"bytes\"]` to the dependency on `bufworks`, `bufcore` or the strategy's crate"
)]
pub trait FeatureBytes: Sized {
    type Bytes;
    fn into_bytes(self) -> Self::Bytes;
}

macro_rules! missing {
    ($($handle:ident)+) => {$(
        impl<L: Lease> $handle<L> {
            /// Needs the feature `bytes`.
            #[doc(hidden)]
            pub fn into_bytes(self) -> <Self as FeatureBytes>::Bytes
            where
                Self: FeatureBytes,
            {
                FeatureBytes::into_bytes(self)
            }
        }
    )+};
}

missing!(Buf Frozen);
