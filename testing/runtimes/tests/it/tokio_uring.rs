//! Buffers in operations of tokio-uring.

use std::net::Shutdown;
use std::rc::Rc;

use tokio_uring::Runtime;
use tokio_uring::buf::BoundedBuf;
use tokio_uring::fs::File;
use tokio_uring::net::TcpStream;

use crate::dropped;
use crate::echo::echo;
use crate::system::{TestFile, or_skip, pair, pattern, pools};

fn runtime() -> Option<Runtime> {
    or_skip(Runtime::new(tokio_uring::builder().entries(64)))
}

/// The kernel answers one operation, and those that it had finished before.
async fn tick(null: Rc<File>) {
    let (read, _) = null.read_at(Vec::with_capacity(1), 0).await;
    read.unwrap();
}

fn streams() -> (TcpStream, TcpStream) {
    let (here, there) = pair();
    (TcpStream::from_std(here), TcpStream::from_std(there))
}

#[test]
fn echoes_over_a_socket() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(echo(
        streams,
        async |stream, bytes| stream.write_all(bytes).await.0.unwrap(),
        async |stream, buf| {
            let filled = buf.len();
            let (read, part) = stream.read(buf.slice(filled..)).await;
            (read.unwrap(), part.into_inner())
        },
    ));
}

#[test]
fn a_read_overwrites_the_front() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let (here, there) = streams();
            let mut buf = pool.acquire(64).unwrap();
            buf.extend_from_slice(b"0123456789").unwrap();
            here.write_all(b"abc".to_vec()).await.0.unwrap();
            let (read, buf) = there.read(buf).await;
            // As with a `Vec` in this runtime, the length only grows.
            assert_eq!((read.unwrap(), &buf[..]), (3, &b"abc3456789"[..]));
            here.shutdown(Shutdown::Write).unwrap();
            let (read, buf) = there.read(buf).await;
            assert_eq!((read.unwrap(), buf.len()), (0, 10), "the end of the stream");
        }
    });
}

#[test]
fn files_and_vectors() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let path = TestFile::new("tokio-uring");
            let file = File::create(&path.0).await.unwrap();
            let mut views = Vec::new();
            for part in 0..8 {
                let mut buf = pool.acquire(600).unwrap();
                buf.extend_from_slice(&pattern(600, part)).unwrap();
                views.push(buf.freeze());
            }
            let expected: Vec<u8> = views.iter().flat_map(|view| view.to_vec()).collect();
            let (written, views) = file.writev_at(views, 0).await;
            assert_eq!((written.unwrap(), views.len()), (expected.len(), 8));
            assert_eq!(path.bytes(), expected);
            let file = File::open(&path.0).await.unwrap();
            let (read, buf) = file.read_exact_at(pool.acquire(4800).unwrap().slice(..4800), 0).await;
            read.unwrap();
            assert_eq!(&buf.into_inner()[..], expected, "{}", pool.strategy());
            // The pool may be gone before the operation has ended.
            let buf = pool.acquire(100).unwrap();
            let read = file.read_at(buf, 600);
            drop(pool);
            let (read, buf) = read.await;
            assert_eq!(&buf[..read.unwrap()], &pattern(600, 1)[..buf.len()]);
        }
    });
}

#[test]
fn reads_whose_futures_are_dropped() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        let (peer, here) = pair();
        let here = Rc::new(TcpStream::from_std(here));
        let null = Rc::new(File::open("/dev/null").await.unwrap());
        let read = |buf| {
            let here = Rc::clone(&here);
            async move { drop(here.read(buf).await) }
        };
        let shown = dropped::reads(peer, read, || tick(Rc::clone(&null))).await;
        assert!(shown.held > 50, "{shown:?}");
    });
}
