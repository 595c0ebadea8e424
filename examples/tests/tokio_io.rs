//! Buffers and views in the hands of tokio and tokio-util: nothing is needed but the traits that they have.

use core::pin::Pin;
use std::io::ErrorKind;

use bufcore::{AcquireError, HeapPool, Reject};
use bufring::RingPool;
use bufslot::SlotPool;
use bufworks_examples::frames::{FrameCodec, FrameError, send};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf, duplex};
use tokio_util::codec::{Decoder, Encoder, Framed};

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

#[test]
fn frames_are_whole_however_they_come() {
    let mut codec = FrameCodec::new(RingPool::new(1 << 20).unwrap(), 70_000);
    let frames: Vec<Vec<u8>> =
        [0, 1, 3, 4, 5, 1000, 0, 65_536].map(|len| (0..len).map(|at| at as u8).collect()).to_vec();
    let mut stream = BytesMut::new();
    for frame in &frames {
        codec.encode(frame, &mut stream).unwrap();
    }
    for piece in [1, 2, 3, 7, 100, 4096, stream.len()] {
        let mut found = Vec::new();
        for mut bytes in stream.chunks(piece) {
            while let Some(frame) = codec.decode_from(&mut bytes).unwrap() {
                found.push(frame);
            }
            assert!(!bytes.has_remaining());
        }
        assert!(!codec.is_inside_frame());
        assert!(
            found.iter().zip(&frames).all(|(found, frame)| found[..] == frame[..]),
            "in pieces of {piece}"
        );
        assert_eq!(found.len(), frames.len());
    }
}

#[test]
fn framed_streams_deliver_buffers_of_a_pool() {
    run(async {
        let (near, far) = duplex(100);
        let mut near = Framed::new(near, FrameCodec::new(HeapPool::new(), 5000));
        let mut far = Framed::new(far, FrameCodec::new(SlotPool::new(64 << 10, 16).unwrap(), 5000));
        let send = async move {
            for len in [10, 0, 4000] {
                near.send(vec![7; len]).await.unwrap();
            }
            drop(near);
        };
        let receive = async {
            let mut found = Vec::new();
            while let Some(frame) = far.next().await {
                let frame = frame.unwrap();
                let at = frame.as_ptr();
                let bytes = Bytes::from(frame);
                assert!(bytes.is_empty() || bytes.as_ptr() == at, "no copy");
                found.push(bytes);
            }
            found
        };
        let ((), found) = tokio::join!(send, receive);
        assert_eq!(found.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 0, 4000]);
        assert!(found.iter().flatten().all(|byte| *byte == 7));
    });
}

#[test]
fn a_frame_is_sent_from_where_it_is() {
    run(async {
        let (mut near, far) = duplex(5);
        let mut far = Framed::new(far, FrameCodec::new(HeapPool::new(), 100));
        let mut pool = SlotPool::new(4096, 4).unwrap();
        let mut buf = pool.acquire(20).unwrap();
        buf.put_bytes(9, 20);
        let view = buf.freeze();
        let error = send(&mut near, view.clone(), 19).await.unwrap_err();
        assert!(matches!(error, FrameError::TooLong { length: 20, limit: 19 }), "{error}");
        let (sent, came) = tokio::join!(send(&mut near, view, 20), far.next());
        sent.unwrap();
        assert_eq!(&came.unwrap().unwrap()[..], [9; 20]);
        assert!(pool.is_idle());
    });
}

#[test]
fn what_is_wrong_with_a_stream_is_said() {
    let mut codec = FrameCodec::new(HeapPool::new(), 10);
    let error = codec.decode_from(&mut &[0, 0, 0, 11, 1][..]).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { length: 11, limit: 10 }), "{error}");
    assert!(codec.encode([0; 11], &mut BytesMut::new()).is_err());

    let mut ended = FrameCodec::new(HeapPool::new(), 10);
    for cut in [&[0][..], &[0, 0, 0, 2, 1]] {
        let mut bytes = BytesMut::from(cut);
        assert!(matches!(ended.decode_eof(&mut bytes), Err(FrameError::Truncated)));
        ended = FrameCodec::new(HeapPool::new(), 10);
    }
    assert!(matches!(ended.decode_eof(&mut BytesMut::new()), Ok(None)));

    let mut never = FrameCodec::new(Reject, 10);
    let error = never.decode_from(&mut &[0, 0, 0, 1, 1][..]).unwrap_err();
    assert!(matches!(error, FrameError::Acquire(AcquireError::TooLarge { .. })), "{error}");
    let failed = FrameError::from(std::io::Error::from(ErrorKind::ConnectionReset));
    assert!(matches!(failed, FrameError::Io(_)));
}

/// Memory that is short is no end of the stream.
#[test]
fn a_refused_frame_can_be_had_later() {
    let mut ring = RingPool::new(256).unwrap();
    let all = ring.acquire(256).unwrap();
    let mut codec = FrameCodec::new(&mut ring, 100);
    let mut bytes = &b"\0\0\0\x05hello\0"[..];
    assert!(matches!(
        codec.decode_from(&mut bytes),
        Err(FrameError::Acquire(AcquireError::Exhausted { .. }))
    ));
    drop(all);
    assert_eq!(&codec.decode_from(&mut bytes).unwrap().unwrap()[..], b"hello");
    assert!(codec.decode_from(&mut bytes).unwrap().is_none() && codec.is_inside_frame());
}
