//! A ring for each thread, also while the thread ends.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use bufcore::{AcquireError, Buf, ConfigError};
use bufring::{Builder, LocalAcquire, LocalError, LocalRing, RingLease, Writer};

thread_local! {
    static RING: LocalRing = const { LocalRing::new(1 << 16) };
}

#[test]
fn each_thread_has_its_own() {
    let mut here = RING.acquire(100).expect("room");
    here.extend_from_slice(b"here").expect("room");
    let there = thread::spawn(|| {
        let mut there = RING.acquire(100).expect("room");
        there.extend_from_slice(b"there").expect("room");
        there
    });
    // Its thread, and so its ring, are gone.
    let there = there.join().expect("the thread ends well");
    assert_eq!((&here[..], &there[..]), (&b"here"[..], &b"there"[..]));
    let mut numbers = RING.acquire_vec::<u64>(4).expect("room");
    numbers.push(7).expect("room");
    thread::spawn(move || assert_eq!(numbers[0], 7)).join().expect("the value is right");
}

#[test]
fn errors_are_typed() {
    thread_local! {
        static NONE: LocalRing = const { LocalRing::new(0) };
        static SMALL: LocalRing = const { LocalRing::with_settings(Builder::new().capacity(64).alignment(64)) };
    }
    assert_eq!(NONE.acquire(1).err(), Some(LocalError::Config(ConfigError::Zero { setting: "capacity" })));
    assert!(matches!(
        SMALL.acquire(1 << 20).err(),
        Some(LocalError::Acquire(AcquireError::TooLarge { requested: 1_048_576, .. }))
    ));
    let inside = SMALL.with_ring(|ring| {
        let _writer = Writer::new(ring);
        (SMALL.acquire(1).err(), SMALL.acquire_vec::<u8>(1).err(), SMALL.with_ring(|_| ()).err())
    });
    assert_eq!(inside, Ok((Some(LocalError::InUse), Some(LocalError::InUse), Some(LocalError::InUse))));
    for error in [LocalError::Gone, LocalError::InUse] {
        assert!(!error.to_string().is_empty());
    }
    assert!(SMALL.acquire(64).is_ok());
    // A panic inside does not lock the others out.
    let panicked = std::panic::catch_unwind(|| SMALL.with_ring(|_| panic!("on purpose")));
    assert!(panicked.is_err() && SMALL.acquire(64).is_ok());
}

/// What a thread-local's destructor finds, wherever it stands in the order: a buffer or an error,
/// no abort.
#[test]
fn destructors_of_other_thread_locals() {
    struct AtEnd(mpsc::Sender<Result<(), LocalError>>, Option<Buf<RingLease>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            if let Some(buf) = &self.1 {
                assert_eq!(&buf[..], b"held");
            }
            let _ = self.0.send(RING.acquire(100).map(drop));
            let _ = self.0.send(RING.acquire_vec::<String>(3).map(drop));
            let _ = self.0.send(RING.with_ring(|ring| drop(ring.acquire(10))));
        }
    }
    thread_local! {
        static BEFORE: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
        static AFTER: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }
    for held in [false, true] {
        let (sender, receiver) = mpsc::channel();
        let ended = thread::spawn(move || {
            BEFORE.with(|_| ());
            let hold = || {
                let mut buf = RING.acquire(100).expect("room");
                buf.extend_from_slice(b"held").expect("room");
                held.then_some(buf)
            };
            let (first, second) = (hold(), hold());
            AFTER.with(|_| ());
            BEFORE.with(|place| *place.borrow_mut() = Some(AtEnd(sender.clone(), first)));
            AFTER.with(|place| *place.borrow_mut() = Some(AtEnd(sender, second)));
        });
        ended.join().expect("no abort, no panic");
        let found: Vec<_> = receiver.iter().collect();
        assert_eq!(found.len(), 6);
        assert!(found.iter().all(|found| matches!(found, Ok(()) | Err(LocalError::Gone))), "{found:?}");
        // The order is the system's: on Windows both come before it.
        let one_is_late = found.contains(&Err(LocalError::Gone));
        assert!(one_is_late || cfg!(windows), "one of the two comes after the ring");
    }
}

#[cfg(feature = "track")]
#[test]
fn the_tracker_names_the_caller() {
    let _buf = RING.acquire(100).expect("room");
    let _vec = RING.acquire_vec::<u8>(100).expect("room");
    let files =
        RING.with_ring(|ring| ring.outstanding().iter().map(|one| one.location.file()).collect::<Vec<_>>());
    assert!(files.expect("it is there").iter().all(|file| file.ends_with("locals.rs")));
}
