//! Columns for Arrow out of a pool: a file's bytes become an Arrow buffer without a copy, and go back to the pool with it.

use std::fs::File;
use std::io;

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use bufcore::{Frozen, Lease};
use bufshard::ShardPool;
use bytes::Bytes;

/// Makes an Arrow buffer of a view.
///
/// Cost: an allocation or two for the counted handle; no copy.
pub fn arrow<L: Lease + Send + Sync + 'static>(view: Frozen<L>) -> Buffer {
    Buffer::from(Bytes::from(view))
}

/// Reads `count` values of a file into memory of `pool`, as a column. The pool aligns by 64 bytes unless told otherwise, which is as Arrow
/// recommends.
///
/// # Errors
///
/// When the file ends before, cannot be read, or the pool refuses.
pub fn read_column<T: ArrowNativeType>(
    mut file: &File,
    count: usize,
    pool: &ShardPool,
) -> io::Result<ScalarBuffer<T>> {
    let bytes = count.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::InvalidInput)?;
    let mut buf = pool.acquire(bytes).map_err(io::Error::other)?;
    buf.read_exact_from(&mut file, bytes)?;
    Ok(ScalarBuffer::new(arrow(buf.freeze()), 0, count))
}
