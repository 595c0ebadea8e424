//! Processes that fork or are killed while operations are in flight.

use std::fs;
use std::io::ErrorKind;
use std::ptr;

use bufcore::HeapPool;
use buftest::process::alone;
use buftest::sandbox::{Ended, forked};

use bufuring::{Descriptor, ReceiveError};

use crate::{LIMIT, PAGE, arena, file, free_pages, page, pool_in, ring, started, stream};

#[test]
fn a_process_is_killed_with_operations_in_flight() {
    alone(module_path!(), "a_process_is_killed_with_operations_in_flight", LIMIT, || {
        for _ in 0..20 {
            let ended = forked(LIMIT, || {
                let arena = arena();
                let Some(driver) = ring(&arena) else { return 1 };
                let mut pool = pool_in(&arena, 64);
                let file = Descriptor::new(file("killed", libc::O_DIRECT));
                let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
                group.refill(&driver).expect("the pool has pages");
                let (_near, far) = stream();
                let mut all = Vec::new();
                for at in 0..32 {
                    let mut buf = page(&mut pool);
                    buf.resize(PAGE, at).expect("a page is long enough");
                    all.push(driver.write_at(&file, buf, u64::from(at) * PAGE as u64));
                    all.push(driver.read(&far, page(&mut pool), PAGE));
                }
                driver.submit().expect("the kernel takes them");
                // SAFETY: no pointers are passed; it ends this process.
                unsafe { libc::raise(libc::SIGKILL) };
                2
            });
            assert!([Ended::Killed(libc::SIGKILL), Ended::With(1)].contains(&ended), "{ended:?}");
        }
    });
}

#[test]
fn a_forked_child_ends_nothing() {
    alone(module_path!(), "a_forked_child_ends_nothing", LIMIT, || {
        use std::io::Write;

        let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
        let read = driver.read(&far, page(&mut pool), PAGE);
        driver.submit().expect("the kernel takes it");
        let mut parts = Some((driver, read));
        let ended = forked(LIMIT, || {
            let (driver, read) = parts.take().expect("they are there");
            drop(driver);
            u8::from(read.is_done())
        });
        assert_eq!(ended, Ended::With(0), "the child leaves it in flight");
        let (driver, read) = parts.take().expect("the parent has its own");
        near.write_all(b"bytes").expect("the other end is open");
        let done = driver.wait(read).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it has come")[..], b"bytes");
        assert_eq!(free_pages(&mut pool), 1);
    });
}

/// The addresses of the memory that this process shares with the kernel's rings.
fn ring_memory() -> Vec<(usize, usize)> {
    let maps = fs::read_to_string("/proc/self/maps").expect("procfs is mounted");
    let lines = maps.lines().filter(|line| line.contains("io_uring"));
    let numbers = lines.map(|line| line.split(' ').next().and_then(|range| range.split_once('-')));
    let number = |text| usize::from_str_radix(text, 16).expect("it is hexadecimal");
    numbers.flatten().map(|(start, end)| (number(start), number(end) - number(start))).collect()
}

/// Where the child does not see the ring, it may have memory of its own.
#[test]
fn a_forked_child_is_refused_and_writes_nothing() {
    alone(module_path!(), "a_forked_child_is_refused_and_writes_nothing", LIMIT, || {
        use std::io::Write;

        let Some((driver, mut pool, (mut near, far))) = started(2) else { return };
        let mut group = driver.group(HeapPool::new(), 2, 1);
        let mut receiver = driver.receive(&far, &group);
        let read = driver.read(&far, page(&mut pool), PAGE);
        driver.submit().expect("the kernel takes it");
        let memory = ring_memory();
        assert!(!memory.is_empty());
        let mut parts = Some((driver, read));
        let ended = forked(LIMIT, || {
            let own: Vec<_> = memory
                .iter()
                .map(|&(start, len)| {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
                    let (start, access) =
                        (ptr::without_provenance_mut(start), libc::PROT_READ | libc::PROT_WRITE);
                    // SAFETY: it maps new memory, and replaces none.
                    let start = unsafe { libc::mmap(start, len, access, flags, -1, 0) };
                    assert!(start != libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
                    // SAFETY: it was just mapped, and is zero.
                    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) }
                })
                .collect();
            let (driver, read) = parts.take().expect("they are there");
            let new = driver.read(&far, page(&mut pool), PAGE);
            let submitted = driver.submit().expect_err("it is refused");
            let new = driver.wait(new).expect("it is refused").result.expect_err("it is refused");
            let waited = driver.wait(read).expect_err("it is refused").error;
            let Some(Err(ReceiveError::Io(received))) = receiver.next(&driver, &mut group) else { return 1 };
            let errors = [new, submitted, waited, received];
            assert!(errors.iter().all(|error| error.kind() == ErrorKind::Unsupported), "{errors:?}");
            assert_eq!((driver.reap(), driver.in_flight()), (0, 0));
            drop((driver, receiver, group));
            u8::from(own.concat().iter().any(|&byte| byte != 0))
        });
        assert_eq!(ended, Ended::With(0));
        let (driver, read) = parts.take().expect("the parent has its own");
        near.write_all(b"bytes").expect("the other end is open");
        let done = driver.wait(read).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it has come")[..], b"bytes");
    });
}
