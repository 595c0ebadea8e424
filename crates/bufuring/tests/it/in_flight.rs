//! Operations that are in flight while their handles and drivers go.

use std::io::{Read, Write};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use bufcore::HeapPool;
use bufuring::{Descriptor, Driver, Operation};
use testkit::process::ThreadTimer;

use crate::{PAGE, arena, file, free_pages, page, pool_in, ring, started, stream};

#[test]
fn a_dropped_operation_keeps_its_memory_until_it_is_completed() {
    let Some((driver, mut pool, (mut near, far))) = started(1) else { return };
    let read = driver.read(&far, page(&mut pool), PAGE);
    driver.submit().expect("the kernel takes it");
    drop(read);
    assert_eq!((driver.in_flight(), free_pages(&mut pool)), (1, 0));
    driver.wait_any().expect("the kernel answers");
    assert_eq!((driver.in_flight(), free_pages(&mut pool)), (0, 1));
    // It was cancelled, so the bytes are the next one's.
    near.write_all(b"next").expect("the other end is open");
    let done = driver.wait(&mut driver.read(&far, page(&mut pool), PAGE)).expect("the kernel answers");
    assert_eq!(&done.into_result().expect("it has come")[..], b"next");
}

#[test]
fn one_that_was_never_submitted_is_dropped_likewise() {
    let Some((driver, mut pool, (_near, far))) = started(1) else { return };
    drop(driver.read(&far, page(&mut pool), PAGE));
    assert_eq!(free_pages(&mut pool), 0);
    while driver.in_flight() > 0 {
        driver.wait_any().expect("the kernel answers");
    }
    assert_eq!(free_pages(&mut pool), 1);
}

/// What a drop costs does not depend on what else is in flight.
#[test]
fn a_drop_looks_at_what_was_dropped() {
    const DROPS: usize = 200;
    let Some((driver, _, (_near, far))) = started(1) else { return };
    let mut pool = HeapPool::new();
    // The best of several, and the thread's own time: others have the processor too.
    let mut cost = |others: usize| {
        let mut read = || driver.read(&far, pool.acquire(1).expect("the heap has room"), 1);
        let _others: Vec<_> = (0..others).map(|_| read()).collect();
        let mut turn = || {
            let reads: Vec<_> = (0..DROPS).map(|_| read()).collect();
            driver.submit().expect("the kernel takes them");
            let timer = ThreadTimer::start();
            for read in reads {
                drop(read);
                driver.submit().expect("the kernel takes it");
            }
            let took = timer.elapsed();
            while driver.in_flight() > others {
                driver.wait_any().expect("the kernel answers");
            }
            took
        };
        (0..8).map(|_| turn()).min().expect("eight turns")
    };
    let (few, many) = (cost(100), cost(10_000));
    println!("{few:?} for {DROPS} drops beside 100 operations, {many:?} beside 10 000");
    assert!(many < 5 * few, "{few:?} beside 100, {many:?} beside 10 000");
}

#[test]
fn a_dropped_driver_ends_what_is_in_flight() {
    let arena = arena();
    for submits in [false, true] {
        let Some(driver) = ring(&arena) else { return };
        let mut pool = pool_in(&arena, 3);
        let (_near, far) = stream();
        let mut reads: Vec<_> = (0..3).map(|_| driver.read(&far, page(&mut pool), PAGE)).collect();
        if submits {
            driver.submit().expect("the kernel takes them");
        }
        drop(reads.pop());
        drop(driver);
        assert_eq!(free_pages(&mut pool), 1, "that of the dropped one");
        let other = Driver::new(&arena);
        for mut read in reads {
            assert!(read.is_done());
            let done = other.wait(&mut read).expect("the result is there");
            let error = done.result.expect_err("it was cancelled");
            assert!([libc::ECANCELED, libc::EINTR].contains(&error.raw_os_error().unwrap_or(0)), "{error}");
        }
        assert_eq!(free_pages(&mut pool), 3);
    }
}

#[test]
fn what_is_forgotten_keeps_its_memory() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let mut pool = pool_in(&arena, 2);
    let (mut near, far) = stream();
    mem::forget(driver.read(&far, page(&mut pool), PAGE));
    driver.submit().expect("the kernel takes it");
    near.write_all(b"bytes").expect("the other end is open");
    assert_eq!(driver.wait_any().expect("the kernel answers"), 1);
    assert_eq!(free_pages(&mut pool), 1, "the forgotten handle has the other");
    let read = driver.read(&far, page(&mut pool), PAGE);
    driver.submit().expect("the kernel takes it");
    mem::forget(driver);
    drop(read);
    drop(arena);
    // The kernel writes into memory that is still there.
    near.write_all(b"bytes").expect("the other end is open");
    assert_eq!(free_pages(&mut pool), 0);
}

/// A step of a program of operations.
#[derive(Debug, Clone, Copy)]
enum Step {
    Start,
    Submit,
    Write,
    Reap,
    Wait,
}

#[test]
fn all_can_be_dropped_at_every_point() {
    use Step::{Reap, Start, Submit, Wait, Write};

    const STEPS: [Step; 10] = [Start, Start, Submit, Write, Start, Reap, Submit, Write, Wait, Reap];
    let arena = arena();
    for cut in 0..=STEPS.len() {
        for operations_first in [true, false] {
            let Some(driver) = ring(&arena) else { return };
            let mut pool = pool_in(&arena, 3);
            let (mut near, far) = stream();
            let mut reads: Vec<Operation<_>> = Vec::new();
            for step in &STEPS[..cut] {
                match step {
                    Start => reads.push(driver.read(&far, page(&mut pool), 1)),
                    Submit => driver.submit().expect("the kernel takes it"),
                    Write => near.write_all(b"x").expect("the other end is open"),
                    Reap => drop(driver.reap()),
                    Wait => drop(driver.wait_any().expect("the kernel answers")),
                }
            }
            if operations_first {
                drop(reads);
                drop(driver);
            } else {
                drop(driver);
                assert!(reads.iter().all(Operation::is_done));
                drop(reads);
            }
            assert_eq!(free_pages(&mut pool), 3, "{cut} {operations_first}");
        }
    }
}

#[test]
fn a_full_queue_of_completions_loses_none() {
    const READS: usize = 64;
    let arena = arena();
    // Two completions fit.
    let driver = Driver::builder().arena(&arena).entries(1).build();
    if ring(&arena).is_none() {
        return;
    }
    let mut pool = pool_in(&arena, READS);
    let streams: Vec<_> = (0..READS).map(|_| stream()).collect();
    let reads: Vec<_> = streams.iter().map(|(_, far)| driver.read(far, page(&mut pool), PAGE)).collect();
    driver.submit().expect("the kernel takes them");
    for (at, (near, _)) in streams.iter().enumerate() {
        (&mut &*near).write_all(&[at as u8]).expect("the other end is open");
    }
    for (at, mut read) in reads.into_iter().enumerate() {
        let done = driver.wait(&mut read).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it has come")[..], [at as u8]);
    }
    // Full again, and dropped so.
    let reads: Vec<_> = streams.iter().map(|(_, far)| driver.read(far, page(&mut pool), PAGE)).collect();
    driver.submit().expect("the kernel takes them");
    for (near, _) in &streams {
        (&mut &*near).write_all(b"x").expect("the other end is open");
    }
    drop(driver);
    assert!(reads.iter().all(Operation::is_done));
    drop(reads);
    assert_eq!(free_pages(&mut pool), READS);
}

/// 128 completions fit by default; the kernel keeps the others until it is entered.
#[test]
fn reap_fetches_completions_that_did_not_fit() {
    const READS: usize = 400;
    let Some((driver, _, _)) = started(1) else { return };
    let (mut pool, file) = (HeapPool::new(), Descriptor::new(file("overflow", 0)));
    for submits_again in [true, false] {
        let read = |_| driver.read_at(&file, pool.acquire(1).expect("the heap has room"), 1, 0);
        let reads: Vec<_> = (0..READS).map(read).collect();
        driver.submit().expect("the kernel takes them");
        for _ in 0..1000 {
            if submits_again {
                driver.submit().expect("nothing is refused");
            }
            driver.reap();
        }
        let done = reads.iter().filter(|read| read.is_done()).count();
        assert_eq!((done, driver.in_flight()), (READS, 0));
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

fn poll_once(read: &mut Operation<bufslot::SlotLease<bufcore::NoLease>>, waker: &Waker) {
    let polled = std::future::Future::poll(Pin::new(read), &mut Context::from_waker(waker));
    assert!(polled.is_pending());
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let arena = arena();
    for drops_driver in [false, true] {
        let Some(driver) = ring(&arena) else { return };
        let mut pool = pool_in(&arena, 2);
        let (mut near, far) = stream();
        let waker = Waker::from(Arc::new(Panics));
        let mut first = driver.read(&far, page(&mut pool), 1);
        let mut second = driver.read(&far, page(&mut pool), 1);
        poll_once(&mut first, &waker);
        poll_once(&mut second, &waker);
        if drops_driver {
            drop(driver);
            assert!(first.is_done() && second.is_done());
        } else {
            near.write_all(b"xy").expect("the other end is open");
            let mut panics = 0;
            while !(first.is_done() && second.is_done()) {
                panics += usize::from(catch_unwind(AssertUnwindSafe(|| driver.wait_any())).is_err());
            }
            assert_eq!(panics, 2);
            assert!(driver.wait(&mut first).expect("it is done").result.is_ok());
            assert!(driver.wait(&mut second).expect("it is done").result.is_ok());
        }
        assert!(drops_driver || free_pages(&mut pool) == 2);
    }
}

#[test]
fn operations_are_those_of_their_driver() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let other = Driver::new(&arena);
    let mut pool = pool_in(&arena, 1);
    let (mut near, far) = stream();
    let mut read = driver.read(&far, page(&mut pool), PAGE);
    let refused = catch_unwind(AssertUnwindSafe(|| other.wait(&mut read)));
    assert!(refused.is_err());
    assert_eq!(free_pages(&mut pool), 0, "its driver has it");
    drop(read);
    driver.wait_any().expect("the kernel answers");
    assert_eq!(free_pages(&mut pool), 1);
    near.write_all(b"x").expect("the other end is open");
}

#[test]
fn a_write_in_flight_has_its_bytes() {
    let Some((driver, mut pool, (mut near, far))) = started(2) else { return };
    // Until the socket takes no more.
    let mut sent = 0;
    let last = loop {
        let mut buf = page(&mut pool);
        buf.resize(PAGE, (sent % 251) as u8).expect("a page is long enough");
        let mut write = driver.write(&far, buf);
        driver.submit().expect("the kernel takes it");
        driver.reap();
        if !write.is_done() {
            break write;
        }
        assert_eq!(driver.wait(&mut write).expect("it is done").result.expect("the stream is open"), PAGE);
        sent += 1;
    };
    drop(last);
    // Others use the pool meanwhile.
    let mut other = page(&mut pool);
    other.resize(PAGE, 0xEE).expect("a page is long enough");
    drop(driver);
    drop(far);
    let mut all = Vec::new();
    near.read_to_end(&mut all).expect("the stream ends");
    assert!(all.len() >= sent * PAGE);
    assert!(all.iter().enumerate().all(|(at, &byte)| byte == (at / PAGE % 251) as u8));
}
