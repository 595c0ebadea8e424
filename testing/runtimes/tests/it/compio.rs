//! Buffers in operations of compio.

use std::rc::Rc;
use std::time::Duration;

use bufworks::bufcore::compio::ReadBuf;
use bufworks::{Buf, Lease};
use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::driver::ProactorBuilder;
use compio::fs::File;
use compio::io::{AsyncRead, AsyncReadAt, AsyncReadAtExt, AsyncWriteAt, AsyncWriteExt};
use compio::net::TcpStream;
use compio::runtime::{Runtime, RuntimeBuilder};

use crate::dropped;
use crate::echo::echo;
use crate::system::{TestFile, or_skip, pair, pattern, pools};

fn runtime() -> Option<Runtime> {
    let mut proactor = ProactorBuilder::new();
    proactor.capacity(64);
    or_skip(RuntimeBuilder::new().with_proactor(proactor).build())
}

/// The buffer, for a read.
fn reading<L: Lease>(buf: Buf<L>) -> ReadBuf<L> {
    // SAFETY: it is for operations of compio's files and sockets, which write no uninitialised
    // bytes.
    unsafe { ReadBuf::new(buf) }
}

fn streams() -> (TcpStream, TcpStream) {
    let (here, there) = pair();
    (TcpStream::from_std(here).unwrap(), TcpStream::from_std(there).unwrap())
}

#[test]
fn echoes_over_a_socket() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(echo(
        streams,
        async |stream, bytes| stream.write_all(bytes).await.0.unwrap(),
        async |stream, buf| {
            let filled = buf.len();
            let BufResult(read, part) = stream.read(reading(buf).slice(filled..)).await;
            (read.unwrap(), part.into_inner().into_inner())
        },
    ));
}

#[test]
fn a_read_overwrites_the_front() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let (mut here, mut there) = streams();
            let mut buf = pool.acquire(64).unwrap();
            buf.extend_from_slice(b"0123456789").unwrap();
            here.write_all(b"abc".to_vec()).await.0.unwrap();
            let BufResult(read, buf) = there.read(reading(buf)).await;
            // As with a `Vec` in this runtime, the length only grows.
            assert_eq!((read.unwrap(), &buf.into_inner()[..]), (3, &b"abc3456789"[..]));
        }
    });
}

#[test]
fn files_and_vectors() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        for mut pool in pools() {
            let path = TestFile::new("compio");
            let mut file = File::create(&path.0).await.unwrap();
            let mut views = Vec::new();
            for part in 0..8 {
                let mut buf = pool.acquire(600).unwrap();
                buf.extend_from_slice(&pattern(600, part)).unwrap();
                views.push(buf.freeze());
            }
            let expected: Vec<u8> = views.iter().flat_map(|view| view.to_vec()).collect();
            let BufResult(written, views) = file.write_vectored_at(views, 0).await;
            assert_eq!((written.unwrap(), views.len()), (expected.len(), 8));
            assert_eq!(path.bytes(), expected);
            let file = File::open(&path.0).await.unwrap();
            let buf = reading(pool.acquire(4800).unwrap()).slice(..4800);
            let BufResult(read, buf) = file.read_exact_at(buf, 0).await;
            read.unwrap();
            assert_eq!(&buf.into_inner().into_inner()[..], expected, "{}", pool.strategy());
            // The pool may be gone before the operation has ended.
            let read = file.read_at(reading(pool.acquire(100).unwrap()), 600);
            drop(pool);
            let BufResult(read, buf) = read.await;
            assert_eq!(&buf.into_inner()[..], &pattern(600, 1)[..read.unwrap()]);
        }
    });
}

#[test]
fn reads_whose_futures_are_dropped() {
    let Some(runtime) = runtime() else { return };
    runtime.block_on(async {
        let (peer, here) = pair();
        let here = Rc::new(TcpStream::from_std(here).unwrap());
        let read = |buf| {
            let here = Rc::clone(&here);
            async move { drop((&*here).read(reading(buf)).await) }
        };
        let tick = || compio::time::sleep(Duration::from_micros(100));
        let shown = dropped::reads(peer, read, tick).await;
        assert!(shown.held + shown.at_once > 0, "{shown:?}");
    });
}

#[test]
fn runtimes_that_end_with_a_read_in_flight() {
    dropped::ends(|buf, here| {
        let Some(runtime) = runtime() else { return };
        runtime.block_on(async {
            let task = compio::runtime::spawn(async move {
                let mut here = TcpStream::from_std(here).unwrap();
                drop(here.read(reading(buf)).await);
            });
            task.detach();
            compio::time::sleep(Duration::from_micros(100)).await;
        });
    });
}

/// compio's own buffers for managed reads, in a pool: each in pages of its own, which no buffer
/// shares and which begin a page.
mod managed {
    use core::alloc::Layout;
    use core::mem::MaybeUninit;
    use core::num::NonZeroU16;
    use core::ptr::NonNull;
    use std::alloc::handle_alloc_error;
    use std::sync::LazyLock;

    use allocator_api2::alloc::Allocator;
    use bufworks::MapOptions;
    use bufworks::bufcore::allocator::PoolAllocator;
    use bufworks::shard::ShardPool;
    use compio::driver::{BufferAllocator, ProactorBuilder};
    use compio::fs::File;
    use compio::io::AsyncReadManagedAt;
    use compio::runtime::RuntimeBuilder;

    use crate::system::{TestFile, or_skip, pattern};

    const BUFFERS: u16 = 8;
    const BYTES: usize = 64 << 10;

    static POOL: LazyLock<PoolAllocator<ShardPool>> = LazyLock::new(|| {
        let pool = ShardPool::builder().map_options(MapOptions::new()).build();
        PoolAllocator::new(pool.expect("settings are right"))
    });

    struct FromPool;

    fn layout(len: u32) -> Layout {
        Layout::array::<u8>(len as usize).expect("a length is less than half of the addresses")
    }

    impl BufferAllocator for FromPool {
        fn allocate(len: u32) -> NonNull<MaybeUninit<u8>> {
            let layout = layout(len);
            POOL.allocate(layout).unwrap_or_else(|_error| handle_alloc_error(layout)).cast()
        }

        unsafe fn deallocate(block: NonNull<MaybeUninit<u8>>, len: u32) {
            // SAFETY: by compio's promise the block is of `allocate`, of this length, and not used
            // again.
            unsafe { POOL.deallocate(block.cast(), layout(len)) };
        }
    }

    #[test]
    fn reads_use_a_pool() {
        let mut proactor = ProactorBuilder::new();
        proactor.buffer_pool_size(NonZeroU16::new(BUFFERS).expect("some"));
        proactor.buffer_pool_buffer_len(BYTES).buffer_pool_allocator::<FromPool>();
        let Some(runtime) = or_skip(RuntimeBuilder::new().with_proactor(proactor).build()) else { return };
        let bytes = pattern(5 * BYTES + 100, 3);
        let file = TestFile::new("managed");
        std::fs::write(&file.0, &bytes).unwrap();
        runtime.block_on(async {
            let file = File::open(&file.0).await.unwrap();
            let (mut at, mut held) = (0, Vec::new());
            while let Some(part) = file.read_managed_at(BYTES, at as u64).await.unwrap() {
                if part.is_empty() {
                    break;
                }
                assert_eq!(part[..], bytes[at..at + part.len()], "at {at}");
                at += part.len();
                held.push(part);
                assert!(POOL.pool().stats().reserved_bytes >= held.len() * BYTES);
            }
            assert_eq!(at, bytes.len());
        });
        drop(runtime);
        POOL.pool().trim();
        assert_eq!(POOL.pool().stats().reserved_bytes, 0, "the runtime gave its buffers back");
    }
}
