//! Processes that fork or are killed while operations are in flight.

use buftest::process::alone;
use buftest::sandbox::{Ended, forked};

use bufuring::Descriptor;

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
        let used = forked(LIMIT, || {
            let (driver, _read) = parts.as_ref().expect("they are there");
            let _ = driver.submit();
            driver.reap();
            7
        });
        // AddressSanitizer makes an exit of the signal.
        assert_ne!(used, Ended::With(7), "a child takes no completions of its parent's");
        let (driver, read) = parts.take().expect("the parent has its own");
        near.write_all(b"bytes").expect("the other end is open");
        let done = driver.wait(read).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it has come")[..], b"bytes");
        assert_eq!(free_pages(&mut pool), 1);
    });
}
