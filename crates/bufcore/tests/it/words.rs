//! What errors say, what stands behind them, and what handles print of themselves.

use std::error::Error as _;
use std::io;

use bufcore::{
    AcquireError, ByteSource, ConfigError, Error, HeapPool, Region, RegionError, ReserveError, Writer,
};
use testkit::words::says;

const REGIONS: [(RegionError, &[&str]); 5] = [
    (RegionError::Empty, &["one byte"]),
    (RegionError::TooLarge { requested: 111 }, &["111 bytes"]),
    (RegionError::BadAlignment { alignment: 333 }, &["333", "power of two"]),
    (RegionError::OutOfMemory { requested: 222 }, &["222 bytes", "refused"]),
    (RegionError::Refused { call: "mlock", errno: 12 }, &["mlock", "12"]),
];

#[test]
fn errors_say_their_numbers() {
    for (error, parts) in REGIONS {
        says(&error, parts);
        says(&ConfigError::from(error), parts);
        says(&Error::from(error), parts);
        assert_eq!(Error::from(error), Error::Config(ConfigError::Region(error)));
    }
    let configs: [(ConfigError, &[&str]); 5] = [
        (ConfigError::Zero { setting: "slots" }, &["slots", "at least 1"]),
        (ConfigError::TooLarge { setting: "slots", requested: 77, limit: 55 }, &["slots", "77", "55"]),
        (ConfigError::TooSmall { setting: "slots", requested: 22, least: 33 }, &["slots", "22", "33"]),
        (ConfigError::BadAlignment { alignment: 333 }, &["333", "power of two"]),
        (ConfigError::RegionTooSmall { required: 77, available: 55 }, &["77 bytes", "55 bytes"]),
    ];
    for (error, parts) in configs {
        says(&error, parts);
        says(&Error::from(error), parts);
    }
    let acquires: [(AcquireError, &[&str]); 3] = [
        (AcquireError::Exhausted { requested: 77, available: 55 }, &["77 bytes", "55 bytes"]),
        (AcquireError::TooLarge { requested: 77, limit: 55 }, &["77 bytes", "55 bytes"]),
        (AcquireError::OutOfMemory { requested: 77 }, &["77 bytes"]),
    ];
    for (error, parts) in acquires {
        says(&error, parts);
        says(&Error::from(error), parts);
    }
    let reserve = ReserveError { requested: 77, available: 55 };
    says(&reserve, &["77 bytes", "55 bytes"]);
    says(&Error::from(reserve), &["77 bytes", "55 bytes"]);
}

/// What prints as another error has that one's cause, so that no level repeats another. These have
/// none.
#[test]
fn errors_that_pass_others_on_have_no_other_cause() {
    let config = ConfigError::Region(RegionError::Empty);
    assert!(config.source().is_none() && ConfigError::Zero { setting: "slots" }.source().is_none());
    let acquire = AcquireError::OutOfMemory { requested: 1 };
    let reserve = ReserveError { requested: 1, available: 0 };
    for error in [Error::from(config), acquire.into(), reserve.into()] {
        assert!(error.source().is_none(), "{error}");
    }
    let error = io::Error::from(reserve);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<ReserveError>());
    assert_eq!((error.kind(), cause), (io::ErrorKind::StorageFull, Some(&reserve)));
}

#[test]
fn kinds_for_std_io() {
    let refused = |errno| ConfigError::Region(RegionError::Refused { call: "mmap", errno });
    for (error, kind) in [
        (RegionError::Empty.into(), io::ErrorKind::InvalidInput),
        (RegionError::OutOfMemory { requested: 77 }.into(), io::ErrorKind::OutOfMemory),
        (refused(0), io::ErrorKind::Unsupported),
        (ConfigError::RegionTooSmall { required: 77, available: 55 }, io::ErrorKind::InvalidInput),
    ] {
        let as_io = io::Error::from(error);
        assert_eq!((as_io.kind(), as_io.to_string()), (kind, error.to_string()));
    }
    assert_eq!(io::Error::from(refused(12)).raw_os_error(), Some(12), "the system's own error");
}

#[cfg(feature = "embedded-io-0_7")]
#[test]
fn kinds_for_embedded_io() {
    use embedded_io::{Error as _, ErrorKind};
    assert_eq!(ReserveError { requested: 1, available: 0 }.kind(), ErrorKind::WriteZero);
    assert_eq!(AcquireError::TooLarge { requested: 2, limit: 1 }.kind(), ErrorKind::InvalidInput);
    for error in
        [AcquireError::Exhausted { requested: 2, available: 1 }, AcquireError::OutOfMemory { requested: 2 }]
    {
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }
}

#[test]
fn handles_print_what_they_know() {
    let pool = HeapPool::new().with_alignment(64).expect("a power of two");
    assert_eq!(format!("{pool:?}"), "HeapPool { alignment: 64, .. }");
    assert_eq!(format!("{:?}", HeapPool::default()), format!("{:?}", HeapPool::new()));
    let mut frames = Writer::new(pool);
    frames.extend_from_slice(b"abc").expect("room");
    let room = frames.writable(0).expect("no more").len();
    assert_eq!(format!("{frames:?}"), format!("Writer {{ len: 3, room: {room}, .. }}"));
    let mut source = &b"one\ntwo"[..];
    let mut pieces = source.pieces(b'\n');
    let mut iter = pieces.into_iter();
    assert_eq!(iter.next(), Some(&b"one"[..]));
    assert_eq!(format!("{iter:?}"), "PiecesIter { delimiter: 10, rest: 3, .. }");
    assert_eq!(format!("{pieces:?}"), "Pieces { delimiter: 10, taken: 4, .. }");
    let buf = frames.finish();
    assert_eq!(format!("{:?}", buf.lease()), "HeapLease { tagged: TaggedPtr { is_shared: false, .. } }");
}

#[test]
fn regions_print_where_they_are_from() {
    let regions = [
        (Region::from_static(Box::leak(vec![0; 100].into())), "static", true),
        (Region::heap(100, 1).expect("the heap has room"), "heap", false),
        #[cfg(feature = "mmap")]
        (Region::mapped(4096, bufcore::MapOptions::new()).expect("the system maps"), "mapped", false),
    ];
    for (region, backing, is_static) in regions {
        let text = format!("Region {{ len: {}, backing: \"{backing}\", .. }}", region.len());
        assert_eq!(format!("{region:?}"), text);
        assert_eq!((region.is_static(), region.is_empty()), (is_static, false));
    }
    assert!(Region::from_static(&mut []).is_empty());
}
