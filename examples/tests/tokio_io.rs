//! Buffers and views in the hands of tokio and tokio-util: nothing is needed but the traits that they have.

use core::pin::Pin;

use bufring::RingPool;
use bufslot::SlotPool;
use bytes::{Buf, BufMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf, duplex};

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_buffer_is_filled_by_read_buf() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    run(async {
        let (mut near, mut far) = duplex(64);
        near.write_all(b"hello world").await.unwrap();
        let mut buf = pool.acquire(5).unwrap();
        let capacity = buf.capacity();
        while buf.has_remaining_mut() {
            assert_ne!(far.read_buf(&mut buf).await.unwrap(), 0);
            if buf.len() == 11 {
                break;
            }
        }
        assert_eq!(&buf[..], &b"hello world"[..capacity.min(11)]);
    });
}

/// What `BufMut for Buf` warns of: tokio asks how much room there is, and says 0 without a look at the stream.
#[test]
fn a_read_buf_of_a_full_buffer_is_not_the_end() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    run(async {
        let (mut near, mut far) = duplex(64);
        near.write_all(b"hello").await.unwrap();
        let mut full = pool.acquire_zeroed(16).unwrap();
        full.resize(full.capacity(), 0).unwrap();
        assert_eq!(far.read_buf(&mut full).await.unwrap(), 0);
        assert_eq!(full.spare_capacity(), 0, "which is what to look at before");
        full.clear();
        assert_eq!(far.read_buf(&mut full).await.unwrap(), 5);
        // A buffer is written from its front, as `BytesMut` is.
        near.write_all_buf(&mut full).await.unwrap();
        assert!(!full.has_remaining());
    });
}

#[test]
fn a_read_buf_over_the_spare_part() {
    let mut ring = RingPool::new(4096).unwrap();
    run(async {
        let (mut near, mut far) = duplex(64);
        near.write_all(b"hello").await.unwrap();
        let mut buf = ring.acquire(64).unwrap();
        buf.put_slice(b"> ");
        let n = core::future::poll_fn(|cx| {
            // All of it is initialised: there is nothing that tokio would have to zero.
            let mut room = ReadBuf::new(buf.spare_mut());
            Pin::new(&mut far).poll_read(cx, &mut room).map_ok(|()| room.filled().len())
        });
        let n = n.await.unwrap();
        buf.commit(n);
        assert_eq!(&buf[..], b"> hello");
    });
}

#[test]
fn views_are_written_without_a_copy() {
    let mut pool = SlotPool::new(4096, 4).unwrap();
    run(async {
        let (mut near, mut far) = duplex(3);
        let mut buf = pool.acquire(10).unwrap();
        buf.put_slice(b"0123456789");
        let view = buf.freeze();
        let mut rest = view.clone();
        let write = async {
            assert_eq!(near.write_buf(&mut rest).await.unwrap(), 3);
            assert_eq!(rest.as_ptr(), view[3..].as_ptr(), "it moves on in place");
            near.write_all_buf(&mut rest).await.unwrap();
            near.shutdown().await.unwrap();
        };
        let mut came = Vec::new();
        let ((), read) = tokio::join!(write, far.read_to_end(&mut came));
        assert_eq!((read.unwrap(), &came[..]), (10, &view[..]));
        drop((rest, view));
    });
    assert!(pool.is_idle());
}
