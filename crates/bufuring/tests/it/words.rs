//! What modes say.

use bufuring::{Mode, Refused};

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
