//! What errors and modes say.

use std::error::Error;
use std::io;

use bufcore::AcquireError;
use bufuring::{Mode, ReceiveError, Refused};

const ACQUIRE: AcquireError = AcquireError::Exhausted { requested: 321, available: 21 };

#[test]
fn errors_of_receivers_are_those_beneath() {
    let refused = ReceiveError::from(ACQUIRE);
    assert_eq!(refused.to_string(), ACQUIRE.to_string());
    assert!(refused.source().is_none());
    let failed = ReceiveError::from(io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(failed.to_string(), io::Error::from(io::ErrorKind::ConnectionReset).to_string());
}

#[test]
fn modes_say_what_was_refused() {
    let refused = Refused { call: "io_uring_setup", errno: libc::EPERM };
    assert!(refused.to_string().starts_with("io_uring_setup was refused: "), "{refused}");
    assert_eq!(Mode::Registered.to_string(), "registered");
    for (mode, name) in [
        (Mode::Plain { refused: None }, "not registered"),
        (Mode::Blocking { refused: None }, "blocking calls"),
    ] {
        assert_eq!(mode.to_string(), name);
    }
    for (mode, name) in [
        (Mode::Plain { refused: Some(refused) }, "not registered"),
        (Mode::Blocking { refused: Some(refused) }, "blocking calls"),
    ] {
        assert_eq!(mode.to_string(), format!("{name}: {refused}"));
    }
}
