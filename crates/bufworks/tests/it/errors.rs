//! What `anyhow` and its kind print: each level of an error says what it knows, once.

use std::error::Error;
use std::io;

use bufworks::frames::FrameError;
use bufworks::{AcquireError, ConfigError, RegionError, ReserveError};

/// The texts of an error and of all its causes, none of which may repeat another. With these
/// numbers, which no two levels share.
#[track_caller]
fn levels(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut levels = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        levels.push(cause.to_string());
        next = cause.source();
    }
    for (at, text) in levels.iter().enumerate() {
        for (other, cause) in levels.iter().enumerate() {
            assert!(at == other || !text.contains(cause.as_str()), "`{text}` repeats `{cause}`");
        }
    }
    levels
}

const REGION: RegionError = RegionError::OutOfMemory { requested: 4321 };
const ACQUIRE: AcquireError = AcquireError::Exhausted { requested: 321, available: 21 };
const REFUSED: AcquireError = AcquireError::OutOfMemory { requested: 77 };
const RESERVE: ReserveError = ReserveError { requested: 5, available: 4 };

/// How often a number is said by the whole chain.
#[track_caller]
fn said_once(error: &(dyn Error + 'static), number: &str) {
    let all = levels(error).join(": ");
    assert_eq!(all.matches(number).count(), 1, "{all}");
}

#[test]
fn of_the_vocabulary() {
    said_once(&REGION, "4321");
    said_once(&ConfigError::Region(REGION), "4321");
    said_once(&bufworks::Error::from(ConfigError::Region(REGION)), "4321");
    said_once(&bufworks::Error::from(ACQUIRE), "321");
    said_once(&bufworks::Error::from(RESERVE), "5");
    said_once(&io::Error::from(RESERVE), "5");
}

#[cfg(feature = "slot")]
#[test]
fn of_the_slot_pool() {
    let region = bufworks::Region::heap(64, 16).expect("the heap has room");
    let error = bufworks::slot::SlotPool::builder()
        .slots(999)
        .build_in(region, bufworks::HeapPool::new())
        .expect_err("too small");
    said_once(&error, "required");
    said_once(&bufworks::Error::from(error), "required");
}

#[cfg(feature = "ring")]
#[test]
fn of_the_ring() {
    use bufworks::ring::LocalError;
    let region = bufworks::Region::heap(8, 8).expect("the heap has room");
    let error = bufworks::ring::RingPool::builder().build_in(region).expect_err("too small");
    said_once(&error, "required");
    said_once(&LocalError::Config(ConfigError::Region(REGION)), "4321");
    said_once(&LocalError::Acquire(ACQUIRE), "321");
}

#[cfg(feature = "mirror")]
#[test]
fn of_the_mirrored_ring() {
    use bufworks::mirror::MirrorRing;
    let region = bufworks::Region::heap(8, 8).expect("the heap has room");
    let error = MirrorRing::builder().capacity(4096).build_in(region).expect_err("too small");
    said_once(&error, "required");
    said_once(&io::Error::from(ConfigError::Region(REGION)), "4321");
    #[cfg(target_os = "linux")]
    said_once(&bufworks::mirror::ShareError::Region(REGION), "4321");
}

#[cfg(feature = "tokio")]
#[test]
fn of_sockets() {
    use bufworks::net::ReadError;
    said_once(&ReadError::Acquire(ACQUIRE), "321");
    said_once(&ReadError::Io(io::Error::other("the cable is out")), "cable");
    said_once(&io::Error::from(ReadError::Acquire(ACQUIRE)), "321");
    testkit::words::says(&ReadError::NoRoom, &["no room"]);
    assert!(ReadError::NoRoom.source().is_none());
    let lost = || io::Error::from(io::ErrorKind::ConnectionReset);
    let errors = [
        (ReadError::Acquire(ACQUIRE), io::Error::from(ACQUIRE).kind()),
        (ReadError::Acquire(REFUSED), io::ErrorKind::OutOfMemory),
        (ReadError::NoRoom, io::ErrorKind::StorageFull),
        (ReadError::from(lost()), io::ErrorKind::ConnectionReset),
    ];
    for (error, kind) in errors {
        let text = error.to_string();
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (kind, text));
    }
}

#[test]
fn of_frames() {
    let broken = || io::Error::new(io::ErrorKind::ConnectionReset, "the cable is out");
    let kinds = [
        (FrameError::TooLong { length: 4096, limit: 100 }, "4096", io::ErrorKind::InvalidData),
        (FrameError::TooShort { length: 3, header: 8 }, "8", io::ErrorKind::InvalidData),
        (FrameError::HasDelimiter { at: 77 }, "77", io::ErrorKind::InvalidData),
        (FrameError::NoRoom { requested: 500, available: 60 }, "500", io::ErrorKind::StorageFull),
        (FrameError::Truncated, "inside a frame", io::ErrorKind::UnexpectedEof),
        (FrameError::from(ACQUIRE), "321", io::Error::from(ACQUIRE).kind()),
        (FrameError::from(REFUSED), "77", io::ErrorKind::OutOfMemory),
        (FrameError::from(broken()), "cable", io::ErrorKind::ConnectionReset),
    ];
    for (error, number, kind) in kinds {
        said_once(&error, number);
        let text = error.to_string();
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (kind, text));
    }
}
