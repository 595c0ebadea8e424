//! What errors say, and what handles print of themselves.

use std::error::Error;

use bufcore::{AcquireError, ConfigError, Region, RegionError};
use bufring::{Builder, LocalError, PushError, RingPool, Writer};
use testkit::words::says;

#[test]
fn errors() {
    let acquire = AcquireError::Exhausted { requested: 77, available: 55 };
    let config = ConfigError::Region(RegionError::OutOfMemory { requested: 77 });
    let errors: [(LocalError, &[&str]); 4] = [
        (LocalError::Gone, &["gone"]),
        (LocalError::InUse, &["in use"]),
        (LocalError::Config(config), &["77 bytes"]),
        (LocalError::Acquire(acquire), &["77 bytes", "55 bytes"]),
    ];
    for (error, parts) in errors {
        says(&error, parts);
        assert!(error.source().is_none(), "{error}: none of them has another one behind it");
    }
    says(&PushError(7), &["full"]);
    assert_eq!(format!("{:?}", PushError("secret")), "PushError { .. }");

    let refused =
        Builder::new().build_in(Region::heap(8, 8).expect("the heap has room")).expect_err("too small");
    let text = format!("{refused:?}");
    assert!(text.starts_with("BuildInError { error: RegionTooSmall { required: "), "{text}");
    assert!(text.ends_with("region: Region { len: 8, backing: \"heap\", .. }, .. }"), "{text}");
    says(&refused, &["region too small", "available"]);
    let error = refused.error;
    assert_eq!(ConfigError::from(refused), error);
}

/// Numbers and places, and never the bytes.
#[test]
fn handles_print_what_they_know() {
    let mut ring = RingPool::new(4096).expect("settings are right");
    assert!(format!("{ring:?}").starts_with("RingPool {"));
    let mut writer = Writer::new(&mut ring);
    writer.extend_from_slice(b"secret").expect("room");
    let room = writer.writable(0).expect("no more").len();
    assert_eq!(format!("{writer:?}"), format!("Writer {{ len: 6, room: {room}, .. }}"));
    drop(writer);
    let mut vec = ring.acquire_vec::<u16>(4).expect("room");
    (1..4).for_each(|value| vec.push(value).expect("room"));
    assert_eq!(format!("{vec:?}"), "[1, 2, 3]");
    let mut values = vec.into_iter();
    assert_eq!((values.next(), format!("{values:?}")), (Some(1), "IntoIter([2, 3])".to_owned()));
}
