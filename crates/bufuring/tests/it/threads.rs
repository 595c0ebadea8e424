//! Drivers, operations and receivers on several threads.

use std::io::Write;
use std::thread;

use crate::{PAGE, free_pages, page, started};

#[test]
fn a_driver_moves_to_another_thread() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let read = driver.read(&far, page(&mut pool), PAGE);
    driver.submit().expect("the kernel takes it");
    near.write_all(b"bytes").expect("the other end is open");
    let done = thread::spawn(move || driver.wait(read)).join().expect("no trial fails");
    assert_eq!(&done.expect("the kernel answers").into_result().expect("it has come")[..], b"bytes");
}

#[test]
fn what_a_thread_that_ends_has_submitted_is_completed_or_cancelled() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let buf = page(&mut pool);
    let (driver, read) = thread::spawn(move || {
        let read = driver.read(&far, buf, PAGE);
        driver.submit().expect("the kernel takes it");
        (driver, read)
    })
    .join()
    .expect("no trial fails");
    near.write_all(b"bytes").expect("the other end is open");
    let done = driver.wait(read).expect("the kernel answers");
    assert_eq!(&done.buf[..], if done.result.is_ok() { &b"bytes"[..] } else { b"" });
    drop(done);
    assert_eq!(free_pages(&mut pool), 1);
}

#[test]
fn handles_are_dropped_on_other_threads() {
    const ROUNDS: usize = 200;
    let Some((driver, mut pool, (mut near, far))) = started(4) else { return };
    for _ in 0..ROUNDS {
        let reads: Vec<_> = (0..4).map(|_| driver.read(&far, page(&mut pool), 1)).collect();
        let dropper = thread::spawn(move || drop(reads));
        near.write_all(b"x").expect("the other end is open");
        while driver.in_flight() > 0 {
            driver.reap();
            driver.submit().expect("the kernel takes it");
            thread::yield_now();
        }
        dropper.join().expect("no trial fails");
        assert_eq!(free_pages(&mut pool), 4);
    }
}

#[test]
fn an_operation_is_awaited_on_another_thread() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let read = driver.read(&far, page(&mut pool), PAGE);
    driver.submit().expect("the kernel takes it");
    let other = thread::spawn(move || {
        let idle = bufuring::Driver::builder().blocking(true).build();
        idle.block_on(read).into_result().expect("it has come").to_vec()
    });
    near.write_all(b"bytes").expect("the other end is open");
    driver.wait_any().expect("the kernel answers");
    assert_eq!(other.join().expect("no trial fails"), b"bytes");
}
