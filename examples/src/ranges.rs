//! Ranges of objects, in the shape of `object_store`: callers get `Bytes`, and the memory is a pool's.
//!
//! Readers of Parquet and the like ask for many ranges of one object, often side by side. Ranges that are near each other come with one
//! read, and share its buffer.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use bufshard::ShardPool;
use bytes::Bytes;

/// Objects that are files of a folder.
#[derive(Debug, Clone)]
pub struct PooledFiles {
    folder: PathBuf,
    pool: ShardPool,
    /// Ranges with no more bytes than this between them are read at once.
    gap: u64,
}

impl PooledFiles {
    /// Makes a store over `folder`, whose reads go to `pool`. Ranges that are at most `gap` bytes apart are read at once.
    pub fn new(folder: impl Into<PathBuf>, pool: ShardPool, gap: u64) -> Self {
        Self { folder: folder.into(), pool, gap }
    }

    /// Returns a range of an object.
    ///
    /// # Errors
    ///
    /// When there is no such object or range, or the pool refuses.
    pub async fn get_range(&self, object: &str, range: Range<u64>) -> io::Result<Bytes> {
        let mut all = self.get_ranges(object, &[range]).await?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Returns ranges of an object, in the order in which they are asked for.
    ///
    /// # Errors
    ///
    /// As [`get_range`](Self::get_range).
    pub async fn get_ranges(&self, object: &str, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
        let (path, store, ranges) = (self.folder.join(object), self.clone(), ranges.to_vec());
        let reading = tokio::task::spawn_blocking(move || store.read(&File::open(path)?, &ranges));
        reading.await.map_err(io::Error::other)?
    }

    fn read(&self, file: &File, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
        let mut order: Vec<usize> = (0..ranges.len()).collect();
        order.sort_by_key(|&index| ranges[index].start);
        let mut found = vec![Bytes::new(); ranges.len()];
        let mut left = &order[..];
        while let Some(&first) = left.first() {
            let start = ranges[first].start;
            let mut end = ranges[first].end;
            let near = left.iter().take_while(|&&index| {
                let is_near = ranges[index].start <= end.saturating_add(self.gap);
                if is_near {
                    end = end.max(ranges[index].end);
                }
                is_near
            });
            let (together, rest) = left.split_at(near.count());
            left = rest;
            let len = usize::try_from(end.saturating_sub(start)).map_err(io::Error::other)?;
            let mut buf = self.pool.acquire(len).map_err(io::Error::other)?;
            read_at(file, &mut buf.spare_mut()[..len], start)?;
            buf.commit(len);
            let view = buf.freeze();
            for &index in together {
                let Range { start: from, end: to } = &ranges[index];
                // A range that ends before it starts is empty.
                let (from, to) = ((from - start) as usize, to.saturating_sub(start) as usize);
                found[index] = Bytes::from(view.slice(from..to.max(from)));
            }
        }
        Ok(found)
    }
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, at)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, into: &mut [u8], at: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(into)
}
