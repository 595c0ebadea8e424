//! What the system refuses is a value, and everything works without.

use std::fs::File;

use bufcore::{MapOptions, RegionError};
use bufuring::{Arena, Descriptor, Driver, Mode};
use testkit::process::alone;
use testkit::sandbox::refuse;

use crate::{LIMIT, PAGE, arena, free_pages, page, pool_in, ring, started, stream};

/// Reads, writes and receives, in whatever way the driver has.
fn works(arena: &Arena, driver: &Driver) {
    use std::io::Write;

    let mut pool = pool_in(arena, 2);
    let file = Descriptor::new(File::open("Cargo.toml").expect("the manifest is there"));
    let done = driver.wait(&mut driver.read_at(&file, page(&mut pool), 9, 0)).expect("it answers");
    assert_eq!(&done.into_result().expect("it is there")[..], b"[package]");
    let mut group = driver.group(pool, 2, PAGE);
    let (mut near, far) = stream();
    let mut receiver = driver.receive(&far, &group);
    near.write_all(b"hello").expect("the other end is open");
    let bytes = receiver.next(driver, &mut group).expect("it is open").expect("they have come");
    assert_eq!(&bytes[..], b"hello");
}

#[test]
fn a_system_without_io_uring() {
    alone(module_path!(), "a_system_without_io_uring", LIMIT, || {
        if !refuse(libc::SYS_io_uring_setup, libc::EPERM) {
            return eprintln!("no filters here");
        }
        let arena = arena();
        let driver = Driver::new(&arena);
        let Mode::Blocking { refused: Some(refused) } = driver.mode() else { panic!("{}", driver.mode()) };
        assert_eq!((refused.call, refused.errno), ("io_uring_setup", libc::EPERM));
        works(&arena, &driver);
    });
}

#[test]
fn a_system_that_registers_nothing() {
    alone(module_path!(), "a_system_that_registers_nothing", LIMIT, || {
        let arena = arena();
        if ring(&arena).is_none() || !refuse(libc::SYS_io_uring_register, libc::EPERM) {
            return eprintln!("no filters here");
        }
        let driver = Driver::new(&arena);
        let Mode::Plain { refused: Some(refused) } = driver.mode() else { panic!("{}", driver.mode()) };
        assert_eq!((refused.call, refused.errno), ("io_uring_register", libc::EPERM));
        assert!(driver.group(bufcore::HeapPool::new(), 2, PAGE).refused().is_some());
        works(&arena, &driver);
    });
}

#[test]
fn a_limit_of_locked_memory() {
    alone(module_path!(), "a_limit_of_locked_memory", LIMIT, || {
        let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: the pointer is to a live limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) }, 0);
        // The superuser has no limit. Others cannot become another user, and need not.
        // SAFETY: no pointers are passed.
        let _ = unsafe { libc::setuid(65_534) };
        let arena = Arena::mapped(1 << 20, MapOptions::new().lock(true)).expect("the system maps");
        let Some(RegionError::Refused { call: "mlock", .. }) = arena.refused() else {
            return eprintln!("this process may lock any memory");
        };
        assert_eq!(arena.granted(), MapOptions::new());
        let driver = Driver::new(&arena);
        match driver.mode() {
            Mode::Plain { refused: Some(refused) } => {
                assert_eq!((refused.call, refused.errno), ("io_uring_register", libc::ENOMEM));
            }
            Mode::Blocking { refused: Some(_) } => {}
            other => panic!("{other}"),
        }
        works(&arena, &driver);
    });
}

#[test]
fn a_system_that_answers_no_more() {
    alone(module_path!(), "a_system_that_answers_no_more", LIMIT, || {
        let Some((driver, mut pool, (_near, far))) = started(3) else { return };
        let mut read = driver.read(&far, page(&mut pool), PAGE);
        driver.submit().expect("the kernel takes it");
        if !refuse(libc::SYS_io_uring_enter, libc::EPERM) {
            return eprintln!("no filters here");
        }
        let late = driver.read(&far, page(&mut pool), PAGE);
        let refused = driver.wait(&mut read).expect_err("it cannot be waited for");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        drop(read);
        assert!(driver.submit().is_err() && !late.is_done());
        assert_eq!(driver.in_flight(), 2);
        // What the kernel may write to is leaked, not freed.
        drop(driver);
        drop(late);
        assert_eq!(free_pages(&mut pool), 1);
    });
}
