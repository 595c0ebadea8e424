//! Buffers in operations of monoio.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use monoio::buf::IoBufMut;
use monoio::fs::File;
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::TcpStream;
use monoio::time::TimeDriver;
use monoio::{IoUringDriver, Runtime, RuntimeBuilder};

use crate::dropped;
use crate::echo::echo;
use crate::system::{TestFile, or_skip, pair, pattern, pools};

fn runtime() -> Option<Runtime<TimeDriver<IoUringDriver>>> {
    or_skip(RuntimeBuilder::<IoUringDriver>::new().enable_timer().build())
}

fn streams() -> (TcpStream, TcpStream) {
    let (here, there) = pair();
    (TcpStream::from_std(here).unwrap(), TcpStream::from_std(there).unwrap())
}

#[test]
fn echoes_over_a_socket() {
    let Some(mut runtime) = runtime() else { return };
    runtime.block_on(echo(
        streams,
        async |stream, bytes| {
            stream.write_all(bytes).await.0.unwrap();
        },
        async |stream, buf| {
            let filled = buf.len();
            let (read, part) = stream.read(buf.slice_mut(filled..)).await;
            (read.unwrap(), part.into_inner())
        },
    ));
}

#[test]
fn a_read_replaces_what_is_filled() {
    let Some(mut runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let (mut here, mut there) = streams();
            let mut buf = pool.acquire(64).unwrap();
            buf.extend_from_slice(b"0123456789").unwrap();
            here.write_all(b"abc".to_vec()).await.0.unwrap();
            let (read, buf) = there.read(buf).await;
            assert_eq!((read.unwrap(), &buf[..]), (3, &b"abc"[..]));
        }
    });
}

#[test]
fn files_and_vectors() {
    let Some(mut runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let path = TestFile::new("monoio");
            let file = File::create(&path.0).await.unwrap();
            let mut buf = pool.acquire(5000).unwrap();
            buf.extend_from_slice(&pattern(5000, 3)).unwrap();
            let view = buf.freeze();
            file.write_all_at(view.clone(), 0).await.0.unwrap();
            assert_eq!(path.bytes(), &view[..]);
            let file = File::open(&path.0).await.unwrap();
            let (read, buf) = file.read_exact_at(pool.acquire(5000).unwrap().slice_mut(..5000), 0).await;
            read.unwrap();
            assert_eq!(&buf.into_inner()[..], &view[..], "{}", pool.strategy());
            // The pool may be gone before the operation has ended.
            let buf = pool.acquire(100).unwrap();
            let read = file.read_at(buf, 600);
            drop(pool);
            let (read, buf) = read.await;
            assert_eq!(&buf[..], &view[600..600 + read.unwrap()]);
        }
    });
}

#[test]
fn reads_whose_futures_are_dropped() {
    let Some(mut runtime) = runtime() else { return };
    runtime.block_on(async {
        let (peer, here) = pair();
        let read = |buf| {
            let mut here = TcpStream::from_std(here.try_clone().unwrap()).unwrap();
            async move { drop(here.read(buf).await) }
        };
        let tick = || monoio::time::sleep(Duration::from_micros(100));
        let shown = dropped::reads(peer, read, tick).await;
        assert!(shown.held > 50, "{shown:?}");
    });
}

#[test]
fn runtimes_that_end_with_a_read_in_flight() {
    dropped::ends(|buf, here| {
        let Some(mut runtime) = runtime() else { return };
        runtime.block_on(async {
            let mut here = TcpStream::from_std(here).unwrap();
            let mut read = pin!(here.read(buf));
            poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx).is_ready())).await;
            // It is dropped here; nothing waits until the kernel has cancelled it.
        });
    });
}
