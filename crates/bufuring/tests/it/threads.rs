//! Drivers, operations and receivers on several threads.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use testkit::process::alone;

use crate::{PAGE, SOON, free_pages, page, started};

#[test]
fn a_driver_moves_to_another_thread() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let mut read = driver.read(&far, page(&mut pool), PAGE);
    driver.submit().expect("the kernel takes it");
    near.write_all(b"bytes").expect("the other end is open");
    let done = thread::spawn(move || driver.wait(&mut read)).join().expect("no trial fails");
    assert_eq!(&done.expect("the kernel answers").into_result().expect("it has come")[..], b"bytes");
}

#[test]
fn what_a_thread_that_ends_has_submitted_is_completed_or_cancelled() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let buf = page(&mut pool);
    let (driver, mut read) = thread::spawn(move || {
        let read = driver.read(&far, buf, PAGE);
        driver.submit().expect("the kernel takes it");
        (driver, read)
    })
    .join()
    .expect("no trial fails");
    near.write_all(b"bytes").expect("the other end is open");
    let done = driver.wait(&mut read).expect("the kernel answers");
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

/// A future that waits for something else beside an operation is woken, whether its thread sleeps
/// already or not.
#[test]
fn a_wake_from_another_thread_ends_the_wait_for_completions() {
    alone(module_path!(), "a_wake_from_another_thread_ends_the_wait_for_completions", SOON, || {
        let Some((driver, mut pool, (_near, far))) = started(1) else { return };
        let mut read = pin!(driver.read(&far, page(&mut pool), PAGE));
        let (sender, wakers) = mpsc::channel::<Waker>();
        let waking = thread::spawn(move || {
            for (round, waker) in wakers.into_iter().enumerate() {
                thread::sleep(Duration::from_micros([0, 10, 100, 1000][round % 4]));
                waker.wake();
            }
        });
        let mut wakes = 0;
        driver.block_on(poll_fn(|context| {
            assert!(read.as_mut().poll(context).is_pending(), "nothing was written");
            wakes += 1;
            if wakes > 400 {
                return Poll::Ready(());
            }
            sender.send(context.waker().clone()).expect("the other thread runs");
            Poll::Pending
        }));
        drop(sender);
        waking.join().expect("no trial fails");
        assert_eq!(driver.in_flight(), 1, "the wake_fd is none of them");
    });
}

/// As a future does that lets others go first.
#[test]
fn a_future_that_wakes_itself_is_polled_again() {
    alone(module_path!(), "a_future_that_wakes_itself_is_polled_again", SOON, || {
        let Some((driver, mut pool, (_near, far))) = started(1) else { return };
        let _read = driver.read(&far, page(&mut pool), PAGE);
        let mut left = 100;
        driver.block_on(poll_fn(|context| {
            context.waker().wake_by_ref();
            left -= 1;
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        }));
    });
}

/// Where all operations are done there is nothing to wait for but the wake.
#[test]
fn a_wake_from_another_thread_ends_a_park() {
    alone(module_path!(), "a_wake_from_another_thread_ends_a_park", SOON, || {
        let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
        near.write_all(b"x").expect("the other end is open");
        driver.block_on(async {
            driver.read(&far, page(&mut pool), 1).await.into_result().expect("it has come");
            let mut is_woken = false;
            poll_fn(|context| {
                if is_woken {
                    return Poll::Ready(());
                }
                is_woken = true;
                let waker = context.waker().clone();
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    waker.wake();
                });
                Poll::Pending
            })
            .await;
        });
    });
}
