//! Views in the types of other crates: HTTP bodies, Arrow's buffers, ranges of objects.

use std::fs::{self, File};
use std::path::PathBuf;

use bufshard::ShardPool;
use bufworks_examples::bodies::PooledBody;
use bufworks_examples::columns::{arrow, read_column};
use bufworks_examples::ranges::PooledFiles;
use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A folder of this test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bufworks-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_body_is_the_readers_bytes_and_its_memory_goes_round() {
    let pool = ShardPool::new().unwrap();
    let bytes = pattern(100_000);
    let mut body = PooledBody::new(&bytes[..], 100_000, pool.clone(), 16 << 10);
    assert_eq!(body.size_hint().exact(), Some(100_000));
    let (mut received, mut places) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let mut data = frame.unwrap().into_data().unwrap();
        places.push(data.chunk().as_ptr());
        received.extend_from_slice(data.chunk());
        data.advance(data.remaining());
    }
    assert!(received == bytes && body.is_end_stream());
    assert!(places.iter().all(|place| *place == places[0]), "each chunk is the same memory");
    assert_eq!(pool.stats().in_use, 0);
}

#[tokio::test]
async fn a_body_whose_reader_ends_early_is_an_error() {
    let body = PooledBody::new(&b"short"[..], 6, ShardPool::new().unwrap(), 100);
    assert!(body.collect().await.is_err());
}

#[test]
fn a_view_is_an_arrow_buffer_without_a_copy() {
    let pool = ShardPool::new().unwrap();
    let mut buf = pool.acquire(1000).unwrap();
    buf.extend_from_slice(&pattern(1000)).unwrap();
    let view = buf.freeze();
    let place = view.as_ptr();
    let column = arrow(view).slice(100);
    assert_eq!(column.as_ptr(), place.wrapping_add(100));
    assert_eq!(column.as_slice(), &pattern(1000)[100..]);
    assert_eq!(pool.stats().in_use, 1);
    drop(column);
    assert_eq!(pool.stats().in_use, 0);
}

#[test]
fn a_column_of_a_file() {
    let folder = Folder::new("column");
    let path = folder.0.join("numbers");
    let bytes: Vec<u8> = (0..1000_i64).flat_map(i64::to_ne_bytes).collect();
    fs::write(&path, bytes).unwrap();
    let pool = ShardPool::new().unwrap();
    let file = File::open(&path).unwrap();
    let column = read_column::<i64>(&file, 1000, &pool).unwrap();
    assert!(column.iter().copied().eq(0..1000));
    assert!(read_column::<i64>(&file, 1, &pool).is_err(), "the file has no more");
}

#[tokio::test]
async fn ranges_in_any_order_share_reads() {
    let folder = Folder::new("ranges");
    let bytes = pattern(50_000);
    fs::write(folder.0.join("object"), &bytes).unwrap();
    let pool = ShardPool::new().unwrap();
    let store = PooledFiles::new(&folder.0, pool.clone(), 1000);
    let ranges = [40_000..40_500, 0..100, 41_000..41_100, 50..80, 49_990..50_000, 7..7];
    let found = store.get_ranges("object", &ranges).await.unwrap();
    for (range, found) in ranges.iter().zip(&found) {
        assert_eq!(found[..], bytes[range.start as usize..range.end as usize]);
    }
    // Two that are near each other are parts of one buffer.
    assert_eq!(found[2].as_ptr(), found[0].as_ptr().wrapping_add(1000));
    assert_eq!(pool.stats().in_use, 3);
    drop(found);
    assert_eq!(pool.stats().in_use, 0);
    assert_eq!(store.get_range("object", 3..9).await.unwrap(), Bytes::copy_from_slice(&bytes[3..9]));
    assert!(store.get_range("object", 49_999..50_001).await.is_err());
    assert!(store.get_range("none", 0..1).await.is_err());
}
