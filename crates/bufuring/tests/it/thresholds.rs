//! Sizes and counts at, below and above each threshold of the crate.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use bufcore::HeapPool;
use bufuring::{Descriptor, Driver};

use crate::{arena, drivers, ring, stream};

/// Beyond what the kernel transfers at once, and beyond what a number of 32 bits can hold.
#[test]
fn long_buffers_are_transferred_in_part() {
    const MOST: usize = 0x7fff_f000;
    let null = Descriptor::new(File::options().write(true).open("/dev/null").expect("there is one"));
    let empty = Descriptor::new(File::open("/dev/null").expect("there is one"));
    for driver in drivers(&arena()) {
        for len in [MOST - 1, MOST, MOST + 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1] {
            // Its pages are not touched.
            let mut buf = HeapPool::new().acquire(len).expect("there are addresses");
            let read = driver.wait(&mut driver.read(&empty, buf, len)).expect("the kernel answers");
            assert_eq!(read.result.expect("it is empty"), 0);
            buf = read.buf;
            buf.commit(len);
            let done = driver.wait(&mut driver.write(&null, buf)).expect("the kernel answers");
            assert_eq!(*done.result.as_ref().expect("it takes all"), len.min(MOST), "{}", driver.mode());
            assert_eq!(done.into_result().is_ok(), len <= MOST);
        }
    }
}

#[test]
fn drivers_of_any_number_of_entries_work() {
    for entries in [0, 1, 2, 3, 63, 64, 65, 32_767, 32_768, 32_769, u32::MAX] {
        let driver = Driver::builder().entries(entries).build();
        let mut pool = HeapPool::new();
        let file = Descriptor::new(File::open("Cargo.toml").expect("the manifest is there"));
        let read = |_| driver.read_at(&file, pool.acquire(9).expect("the heap has room"), 9, 0);
        let reads: Vec<_> = (0..300).map(read).collect();
        for mut read in reads {
            let done = driver.wait(&mut read).expect("the kernel answers");
            assert_eq!(&done.into_result().expect("it is there")[..], b"[package]", "{entries}");
        }
        assert_eq!(driver.in_flight(), 0);
    }
}

#[test]
fn groups_of_any_budget_and_size_work() {
    let Some(driver) = ring(&arena()) else { return };
    for budget in [0, 1, 2, 3, 4, 5, 32_767, 32_768, 32_769, u16::MAX] {
        for bytes in [0, 1, 2, 100] {
            let mut group = driver.group(HeapPool::new(), budget, bytes);
            group.refill(&driver).expect("the heap has room");
            assert!(group.refused().is_some() || group.provided() == usize::from(budget.clamp(1, 32_768)));
            let (mut near, far) = stream();
            let mut receiver = driver.receive(&far, &group);
            let sent: Vec<u8> = (0..=255).collect();
            near.write_all(&sent).expect("the other end is open");
            let mut received = Vec::new();
            while received.len() < sent.len() {
                let buf = receiver.next(&driver, &mut group).expect("it is open");
                received.extend_from_slice(&buf.expect("there are buffers"));
            }
            assert!(received == sent, "{budget} {bytes}");
        }
    }
}

/// The driver remembers so many dropped operations one by one, and looks for more.
#[test]
fn any_number_of_dropped_operations_is_cancelled() {
    let Some(driver) = ring(&arena()) else { return };
    let (_near, far) = stream();
    let mut pool = HeapPool::new();
    for count in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 400] {
        let read = |_| driver.read(&far, pool.acquire(1).expect("the heap has room"), 1);
        let reads: Vec<_> = (0..count).map(read).collect();
        drop(reads);
        let started = Instant::now();
        while driver.in_flight() > 0 {
            driver.submit().expect("the kernel takes it");
            driver.reap();
            assert!(started.elapsed() < Duration::from_secs(5), "{count}");
        }
    }
}

/// A dropped driver has more in flight than completions fit.
#[test]
fn a_dropped_driver_cancels_any_number() {
    for entries in [1, 2, 64] {
        for count in [1, 2, 3, 4, 5, 127, 128, 129, 1000] {
            let driver = Driver::builder().entries(entries).build();
            if matches!(driver.mode(), bufuring::Mode::Blocking { .. }) {
                return;
            }
            let (_near, far) = stream();
            let mut pool = HeapPool::new();
            let read = |_| driver.read(&far, pool.acquire(1).expect("the heap has room"), 1);
            let reads: Vec<_> = (0..count).map(read).collect();
            let started = Instant::now();
            drop(driver);
            assert!(started.elapsed() < Duration::from_secs(5), "{entries} {count}");
            assert!(reads.iter().all(bufuring::Operation::is_done), "{entries} {count}");
        }
    }
}
