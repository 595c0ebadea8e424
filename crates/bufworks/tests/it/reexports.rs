//! One test for each thing that is passed on.

use bufworks::HeapPool;

#[test]
fn vocabulary() {
    let mut buf = HeapPool::new().acquire(5).expect("the heap has room");
    buf.extend_from_slice(b"hello").expect("five bytes were asked for");
    let view: bufworks::Frozen<bufworks::HeapLease> = buf.freeze();
    assert_eq!(&view[..], b"hello");
    let error: bufworks::Error = bufworks::ReserveError { requested: 2, available: 1 }.into();
    assert!(error.to_string().contains('2'));
}

#[cfg(all(feature = "bytes", feature = "slot"))]
#[test]
fn bytes_without_a_copy() {
    let mut pool = bufworks::slot::SlotPool::new(4096, 4).expect("settings are right");
    let mut buf = pool.acquire(8).expect("there is room");
    buf.extend_from_slice(b"12345678").expect("there is room");
    let place = buf.as_ptr();
    let bytes: bytes::Bytes = buf.into_bytes();
    assert_eq!((&bytes[..], bytes.as_ptr()), (&b"12345678"[..], place));
}

/// Every crate of the table is a module here, with the vocabulary at its root.
macro_rules! modules {
    ({} $($module:ident $feature:literal $package:ident;)*) => {
        $(
            #[cfg(feature = $feature)]
            const _: fn(bufworks::ConfigError) -> bufworks::$module::ConfigError = |error| error;
        )*
    };
}
crates!(modules! {});

#[cfg(feature = "slot")]
#[test]
fn slot() {
    let pool = bufworks::slot::SlotPool::new(4096, 4).expect("settings are right");
    let mut writer = bufworks::Writer::new(pool);
    writer.extend_from_slice(b"abc").expect("there is room");
    assert_eq!(&writer.finish()[..], b"abc");
}

#[cfg(feature = "ring")]
#[test]
fn ring() {
    let mut ring = bufworks::ring::RingPool::new(4096).expect("settings are right");
    let mut numbers = ring.acquire_vec::<u64>(3).expect("there is room");
    numbers.push(7).expect("there is room");
    assert_eq!(numbers[..], [7]);
}

#[cfg(feature = "bump")]
#[test]
fn bump() {
    let pool = bufworks::bump::BumpPool::new().expect("settings are right");
    let mut buf = pool.acquire(10).expect("there is room");
    buf.extend_from_slice(b"head body").expect("there is room");
    assert_eq!((&buf.split_to(4)[..], &buf[..]), (&b"head"[..], &b" body"[..]));
}

#[cfg(feature = "shard")]
#[test]
fn shard() {
    let pool = bufworks::shard::ShardPool::new().expect("settings are right");
    let other = pool.clone();
    let buf =
        std::thread::spawn(move || other.acquire(100)).join().expect("it ends well").expect("there is room");
    assert!(buf.capacity() >= 100);
}

#[cfg(feature = "mirror")]
#[test]
fn mirror() {
    let mut ring = bufworks::mirror::MirrorRing::new(4096).expect("the system maps");
    bufworks::ByteSink::reserve(&mut ring, 3).expect("there is room")[..3].copy_from_slice(b"abc");
    bufworks::ByteSink::commit(&mut ring, 3);
    assert_eq!(bufworks::ByteSource::peek(&mut ring), b"abc");
}

#[cfg(feature = "bytes")]
#[test]
fn bytes() {
    let mut buf = HeapPool::new().acquire(4).expect("the heap has room");
    bytes::BufMut::put_u32(&mut buf, 7);
    assert_eq!(bytes::Bytes::from(buf.freeze())[..], [0, 0, 0, 7]);
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn embedded_io() {
    let mut buf = HeapPool::new().acquire(4).expect("the heap has room");
    embedded_io::Write::write_all(&mut buf, b"abcd").expect("there is room");
    assert_eq!(&buf[..], b"abcd");
}

#[cfg(feature = "serde")]
#[test]
fn serde() {
    let buf = HeapPool::new().acquire_zeroed(2).expect("the heap has room");
    assert_eq!(serde_json::to_string(&buf).expect("numbers"), "[0,0]");
}

#[cfg(feature = "mmap")]
#[test]
fn mmap() {
    let region = bufworks::Region::mapped(8192, bufworks::MapOptions::new()).expect("the system maps");
    assert!(region.len() >= 8192);
}

/// The features that are about pools reach every strategy that is there.
#[test]
fn forwarded_to_all() {
    for name in bufworks::any::AnyBuilder::NAMES {
        let mut pool = super::any::built(name);
        let buf = pool.acquire(100).expect("there is room");
        let counted = u64::from(cfg!(feature = "stats"));
        assert_eq!(pool.stats().acquired, counted, "{name}");
        #[cfg(feature = "track")]
        assert_eq!(pool.outstanding().len(), 1, "{name}");
        drop(buf);
    }
}
