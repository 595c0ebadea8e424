//! What cannot be had: absurd sizes, more than there is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bufmirror::bufcore::{Region, ReserveError};
use bufmirror::{Builder, ConfigError, GetError, MirrorRing, RegionError};

#[test]
fn t05_absurd_sizes() {
    const NO_BYTES: ConfigError = ConfigError::Zero { setting: "capacity" };
    assert_eq!(MirrorRing::new(0).unwrap_err(), NO_BYTES);
    assert_eq!(Builder::new().build().unwrap_err(), NO_BYTES);
    for bytes in
        [1 << 47, 1 << 61, usize::MAX / 4, usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX - 1, usize::MAX]
    {
        let refused = Builder::new().capacity(bytes).build().expect_err("no room");
        match refused {
            ConfigError::TooLarge { setting: "capacity", requested, limit } => {
                assert!(requested == bytes && bytes > limit, "{refused}");
            }
            ConfigError::Region(RegionError::TooLarge { requested }) => assert_eq!(requested, bytes),
            ConfigError::Region(RegionError::Refused { errno, .. }) => {
                assert!(errno != 0 && bytes < usize::MAX / 4, "{refused}");
            }
            ConfigError::Region(RegionError::OutOfMemory { requested }) => assert_eq!(requested, 2 * bytes),
            _ => panic!("{refused}"),
        }
    }
}

#[test]
fn regions_that_do_not_do() {
    let region = || Region::heap(100, 1).unwrap();
    let refused = Builder::new().capacity(51).build_in(region()).unwrap_err();
    assert_eq!(refused.error, ConfigError::RegionTooSmall { required: 102, available: 100 });
    assert_eq!(refused.region.len(), 100, "it comes back");
    let refused = Builder::new().capacity(usize::MAX).build_in(refused.region).unwrap_err();
    assert_eq!(
        refused.error,
        ConfigError::TooLarge { setting: "capacity", requested: usize::MAX, limit: usize::MAX / 4 }
    );
    let refused = Builder::new().capacity(0).build_in(region()).unwrap_err();
    assert_eq!(refused.error, ConfigError::Zero { setting: "capacity" });
    let refused = Builder::new().build_static(&mut []).unwrap_err();
    assert_eq!(refused, ConfigError::RegionTooSmall { required: 2, available: 0 });
    assert_eq!(Builder::new().capacity(50).build_in(region()).unwrap().capacity(), 50);
    assert_eq!(Builder::new().capacity(7).build_in(region()).unwrap().capacity(), 7);
}

/// What fails or panics changes nothing.
#[test]
fn t03_more_than_there_is() {
    for mut ring in [crate::mapped(1), crate::copying(4096)] {
        let capacity = ring.capacity();
        ring.put(b"hello").unwrap();
        for n in [capacity - 4, capacity, usize::MAX] {
            let error = ring.reserve(n).unwrap_err();
            assert_eq!(error, ReserveError { requested: n, available: capacity - 5 });
            let panic = catch_unwind(AssertUnwindSafe(|| ring.commit(n))).unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert_eq!(*message, format!("commit({n}) of {} bytes of room", capacity - 5));
        }
        assert_eq!(ring.put(&vec![1; capacity]).unwrap_err().available, capacity - 5);
        for n in [6, capacity, usize::MAX] {
            let panic = catch_unwind(AssertUnwindSafe(|| ring.consume(n))).unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert_eq!(*message, format!("consume({n}) of 5 bytes to read"));
        }
        let error = ring.get(&mut [0; 6]).unwrap_err();
        assert_eq!(error, GetError { requested: 6, available: 5 });
        assert_eq!(error.to_string(), "cannot get 6 bytes: 5 bytes available");
        assert_eq!(ring.peek(), b"hello");
    }
}

/// Room that was never written shows zeros, or what was written by somebody earlier: initialised
/// either way.
#[test]
fn fresh_room_is_zero() {
    for mut ring in [crate::mapped(3 << 12), crate::copying(5000)] {
        let capacity = ring.capacity();
        assert!(ring.reserve(capacity).unwrap().iter().all(|&byte| byte == 0));
        ring.commit(capacity);
        assert!(ring.peek().iter().all(|&byte| byte == 0));
    }
}

/// A ring moves to another thread, and is looked at by several.
#[test]
fn rings_move() {
    let mut ring = crate::mapped(1);
    ring.put(b"from here").unwrap();
    let ring = std::thread::spawn(move || {
        assert_eq!(ring.peek(), b"from here");
        ring.consume(5);
        ring
    });
    let ring = ring.join().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(ring.peek(), b"here"));
        }
    });
}
