//! The `serde` crate.

use serde::{Serialize, Serializer};

use crate::{Buf, Frozen, Lease, SharedBytes};

/// Serializes as bytes, which a text format may write as a sequence of numbers.
///
/// There is no `Deserialize`: a buffer comes from a pool, which a deserializer does not have.
/// Deserialize borrowed bytes, and append them to a buffer.
impl<L: Lease> Serialize for Buf<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

/// Serializes as a [`Buf`] does.
impl<L: Lease> Serialize for Frozen<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

/// Serializes as a [`Buf`] does.
impl Serialize for SharedBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}
