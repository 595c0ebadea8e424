//! What errors say, what they are to `std::io` and `embedded-io`, and what handles print of
//! themselves.

use std::error::Error;
use std::io::{self, ErrorKind};

use bufmirror::bufcore::Region;
use bufmirror::messages::{self, RecvError, SendError};
use bufmirror::{Builder, ConfigError, WaitError, channel};
use testkit::words::says;

const WAITS: [(WaitError, ErrorKind, &[&str]); 5] = [
    (WaitError::Closed { requested: 77, available: 55 }, ErrorKind::BrokenPipe, &["77 bytes", "55 bytes"]),
    (WaitError::TimedOut { requested: 77, available: 55 }, ErrorKind::TimedOut, &["77 bytes", "55 bytes"]),
    (WaitError::Corrupt, ErrorKind::InvalidData, &["other process", "header"]),
    (WaitError::NoTasks, ErrorKind::Unsupported, &["tasks"]),
    (WaitError::TooLong { requested: 77, capacity: 55 }, ErrorKind::InvalidInput, &["77 bytes", "55 bytes"]),
];

#[test]
fn errors_of_waits() {
    for (error, kind, parts) in WAITS {
        says(&error, parts);
        let as_io = io::Error::from(error);
        assert_eq!(as_io.kind(), kind, "{error}");
        let cause = as_io.get_ref().and_then(|cause| cause.downcast_ref::<WaitError>());
        assert_eq!(cause, Some(&error), "it keeps its numbers");
    }
}

#[test]
fn errors_of_messages() {
    let sends: [(SendError, &[&str]); 4] = [
        (SendError::Full { requested: 77, available: 55 }, &["77 bytes", "55 bytes"]),
        (SendError::TimedOut, &["full", "time"]),
        (SendError::Closed, &["closed"]),
        (SendError::TooLong { requested: 77, limit: 55 }, &["77 bytes", "55 bytes"]),
    ];
    sends.into_iter().for_each(|(error, parts)| says(&error, parts));
    let receives: [(RecvError, &[&str]); 4] = [
        (RecvError::Empty, &["empty"]),
        (RecvError::TimedOut, &["empty", "time"]),
        (RecvError::Closed, &["closed"]),
        (RecvError::TooSmall { needed: 77, available: 55 }, &["77 bytes", "55 bytes"]),
    ];
    receives.into_iter().for_each(|(error, parts)| says(&error, parts));
}

#[test]
fn errors_of_rings() {
    let region = Region::heap(100, 1).expect("the heap has room");
    let refused = Builder::new().capacity(51).build_in(region).expect_err("too small");
    let text = "BuildInError { error: RegionTooSmall { required: 102, available: 100 }, \
                region: Region { len: 100, backing: \"heap\", .. }, .. }";
    assert_eq!(format!("{refused:?}"), text);
    says(&refused, &["102 bytes", "100 bytes"]);
    assert!(refused.source().is_none(), "it prints as the error that it has");
    assert_eq!(ConfigError::from(refused), ConfigError::RegionTooSmall { required: 102, available: 100 });
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn errors_of_shared_rings() {
    use bufmirror::{RegionError, ShareError};
    let errors: [(ShareError, ErrorKind, &[&str]); 3] = [
        (ShareError::from(RegionError::TooLarge { requested: 77 }), ErrorKind::InvalidInput, &["77 bytes"]),
        (ShareError::NotARing, ErrorKind::InvalidData, &["not a shared ring"]),
        (ShareError::Taken, ErrorKind::ResourceBusy, &["taken"]),
    ];
    for (error, kind, parts) in errors {
        says(&error, parts);
        assert!(error.source().is_none(), "{error}");
        assert_eq!(io::Error::from(error).kind(), kind, "{error}");
    }
    let refused = ShareError::Region(RegionError::Refused { call: "open", errno: libc::EMFILE });
    assert_eq!(io::Error::from(refused).raw_os_error(), Some(libc::EMFILE), "the system's own error");
}

/// Numbers, and never the bytes.
#[test]
fn handles_print_what_they_know() {
    let mut ring = crate::copying(100);
    ring.put(b"secret").expect("room");
    assert_eq!(format!("{ring:?}"), "MirrorRing { len: 6, capacity: 100, is_mapped: false, .. }");
    let (mut producer, consumer) = channel(4096).expect("the system maps");
    producer.put(b"secret").expect("room");
    let capacity = producer.capacity();
    let end = |name: &str, is_closed: bool| {
        format!("{name} {{ capacity: {capacity}, is_closed: {is_closed}, .. }}")
    };
    assert_eq!(format!("{producer:?}"), end("Producer", false));
    drop(producer);
    assert_eq!(format!("{consumer:?}"), end("Consumer", true));

    let (sender, receiver) = messages::channel(4096).expect("the system maps");
    assert_eq!((sender.send(b"gone"), sender.send(b"secret")), (Ok(0), Ok(1)));
    drop(receiver.recv().expect("sent"));
    let message = receiver.recv().expect("sent");
    assert_eq!(format!("{message:?}"), "Message { sequence: 1, len: 6 }");
    assert_eq!(AsRef::<[u8]>::as_ref(&message), b"secret");
    assert_eq!(
        format!("{sender:?} {receiver:?}"),
        "Sender { is_closed: false, .. } Receiver { is_closed: false, .. }"
    );
    sender.close();
    assert_eq!(
        format!("{sender:?} {receiver:?}"),
        "Sender { is_closed: true, .. } Receiver { is_closed: true, .. }"
    );
}
