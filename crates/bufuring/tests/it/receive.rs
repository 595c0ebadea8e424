//! Buffers that are provided to the kernel for what arrives.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bufcore::{AcquireError, BufferPool, HeapPool, NoFallback, NoLease};
use bufslot::{SlotLease, SlotPool};
use bufuring::{Driver, Group, Receiver};
use testkit::process::{address_space_bytes, alone};

use crate::{LIMIT, PAGE, arena, drivers, free_pages, is_exhausted, pool_in, ring, stream};

type Pages = Group<SlotPool<NoFallback>>;

fn rest(receiver: &mut Receiver<SlotLease<NoLease>>, driver: &Driver, group: &mut Pages) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = receiver.next(driver, group) {
        all.extend_from_slice(&bytes.expect("the stream is in order"));
    }
    all
}

#[test]
fn a_stream_arrives_in_order_in_every_mode() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut group = driver.group(pool_in(&arena, 4), 4, 1000);
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        let sent: Vec<u8> = (0..300_000_usize).map(|at| (at % 251) as u8).collect();
        let bytes = sent.clone();
        let sender = std::thread::spawn(move || near.write_all(&bytes));
        let received = rest(&mut receiver, &driver, &mut group);
        sender.join().expect("no trial fails").expect("the other end is open");
        assert!(received == sent, "{}", driver.mode());
        assert!(receiver.next(&driver, &mut group).is_none(), "the end remains");
        drop(receiver);
        assert!(group.provided() <= 4);
    }
}

#[test]
fn many_streams_share_a_group_within_its_budget() {
    const STREAMS: usize = 20;
    let arena = arena();
    for driver in drivers(&arena) {
        let mut group = driver.group(pool_in(&arena, 8), 4, PAGE);
        let streams: Vec<_> = (0..STREAMS).map(|_| stream()).collect();
        let mut receivers: Vec<_> = streams.iter().map(|(_, far)| driver.receive(far, &group)).collect();
        for (at, (near, _)) in streams.iter().enumerate() {
            (&mut &*near).write_all(&[at as u8; 9]).expect("the other end is open");
        }
        for (at, receiver) in receivers.iter_mut().enumerate() {
            let bytes = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
            assert_eq!(&bytes[..], [at as u8; 9]);
            assert!(group.provided() <= 4);
        }
    }
}

/// The kernel fills about 32 buffers in one go.
#[test]
fn the_end_behind_many_buffers_arrives() {
    alone(module_path!(), "the_end_behind_many_buffers_arrives", LIMIT, || {
        let Some(driver) = ring(&arena()) else { return };
        for (dropped, count) in [31, 32, 33, 34, 35, 64, 65, 66, 100].into_iter().enumerate() {
            let mut group = driver.group(HeapPool::new(), 200, 1);
            let (mut near, far) = stream();
            near.write_all(&vec![7; count]).expect("the other end is open");
            drop(near);
            let mut receiver = driver.receive(&far, &group);
            // Also when the driver has to look for what is to be cancelled.
            let (_near, idle) = stream();
            let buf = || HeapPool::new().acquire(1).expect("the heap has room");
            drop((0..8 * dropped).map(|_| driver.read(&idle, buf(), 1)).collect::<Vec<_>>());
            let started = Instant::now();
            let mut received = 0;
            loop {
                match receiver.poll_next(&mut Context::from_waker(Waker::noop()), &driver, &mut group) {
                    Poll::Ready(Some(buf)) => received += buf.expect("there are buffers").len(),
                    Poll::Ready(None) => break,
                    Poll::Pending => {
                        driver.submit().expect("the kernel takes it");
                        driver.reap();
                    }
                }
                assert!(started.elapsed() < Duration::from_secs(5), "no end behind {received} buffers");
            }
            assert_eq!(received, count);
        }
    });
}

#[test]
fn a_pool_that_is_exhausted_is_an_error_for_a_while() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut group = driver.group(pool_in(&arena, 2), 2, PAGE);
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        near.write_all(&[1; 4 * PAGE]).expect("the other end is open");
        let first = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
        let second = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
        let error = receiver.next(&driver, &mut group).expect("it is open").expect_err("the pool is empty");
        assert!(is_exhausted(&error), "{error}");
        drop((first, second));
        drop(near);
        assert_eq!(rest(&mut receiver, &driver, &mut group).len(), 2 * PAGE);
    }
}

#[test]
fn a_budget_that_another_receiver_has_is_an_error() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let mut group = driver.group(pool_in(&arena, 8), 2, PAGE);
    if group.refused().is_some() {
        return;
    }
    let (mut near, far) = stream();
    let (mut other_near, other_far) = stream();
    let mut receiver = driver.receive(&far, &group);
    let mut other = driver.receive(&other_far, &group);
    other_near.write_all(b"x").expect("the other end is open");
    near.write_all(b"a").expect("the other end is open");
    let first = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
    assert_eq!(&first[..], b"a");
    group.refill(&driver).expect("the pool has pages");
    for count in 1..=2 {
        near.write_all(&[count; PAGE]).expect("the other end is open");
        for _ in 0..1000 {
            driver.reap();
            driver.submit().expect("the kernel takes it");
            if receiver.waiting() == usize::from(count) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    assert_eq!((receiver.waiting(), group.provided()), (2, 0));
    let error = other.next(&driver, &mut group).expect("it is open").expect_err("the budget is used");
    assert!(is_exhausted(&error), "{error}");
    drop(receiver.next(&driver, &mut group));
    let bytes = other.next(&driver, &mut group).expect("it is open").expect("they have come");
    assert_eq!(&bytes[..], b"x");
}

#[test]
fn a_dropped_receiver_closes_its_stream() {
    use std::io::Read;

    let arena = arena();
    for driver in drivers(&arena) {
        let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        drop(far);
        near.write_all(b"x").expect("the other end is open");
        let bytes = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
        near.write_all(b"never read").expect("the other end is open");
        driver.reap();
        drop(receiver);
        while driver.in_flight() > 0 {
            driver.wait_any().expect("the kernel answers");
        }
        let end = near.read(&mut [0; 1]);
        assert!(!matches!(end, Ok(1)), "the stream has ended or was reset");
        drop(bytes);
        // The budget is whole again.
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        for _ in 0..9 {
            near.write_all(b"y").expect("the other end is open");
            drop(receiver.next(&driver, &mut group).expect("it is open").expect("they have come"));
        }
    }
}

/// A pool that the test keeps a share of.
struct Shared(std::sync::Arc<std::sync::Mutex<SlotPool<NoFallback>>>);

impl BufferPool for Shared {
    type Lease = SlotLease<NoLease>;

    fn acquire(&mut self, capacity: usize) -> Result<crate::Page, AcquireError> {
        self.0.lock().expect("nobody panics").acquire(capacity)
    }

    fn max_capacity(&self) -> usize {
        PAGE
    }

    fn stats(&self) -> bufcore::PoolStats {
        bufcore::PoolStats::default()
    }
}

#[test]
fn buffers_come_back_from_the_kernel_whoever_is_dropped_first() {
    let arena = arena();
    for order in
        ["group driver receiver", "driver group receiver", "receiver group driver", "driver receiver group"]
    {
        for driver in drivers(&arena) {
            let pool = std::sync::Arc::new(std::sync::Mutex::new(pool_in(&arena, 4)));
            let mut group = driver.group(Shared(pool.clone()), 4, PAGE);
            let (near, far): (UnixStream, _) = stream();
            let mut receiver = driver.receive(&far, &group);
            (&mut &near).write_all(b"x").expect("the other end is open");
            drop(receiver.next(&driver, &mut group).expect("it is open").expect("they have come"));
            let (mut driver, mut group, mut receiver) = (Some(driver), Some(group), Some(receiver));
            for name in order.split(' ') {
                match name {
                    "group" => group = None,
                    "driver" => driver = None,
                    _ => receiver = None,
                }
                (&mut &near).write_all(b"more").ok();
                if let Some(driver) = &driver {
                    driver.reap();
                    driver.submit().expect("the kernel takes it");
                }
            }
            drop((group, receiver));
            assert_eq!(free_pages(&mut pool.lock().expect("nobody panics")), 4, "{order}");
        }
    }
}

#[test]
fn a_dropped_group_gives_its_buffers_back_at_once() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let pool = std::sync::Arc::new(std::sync::Mutex::new(pool_in(&arena, 4)));
    for _ in 0..100 {
        let mut group = driver.group(Shared(pool.clone()), 3, PAGE);
        group.refill(&driver).expect("the pool has pages");
        let lent = group.provided();
        assert_eq!(free_pages(&mut pool.lock().expect("nobody panics")), 4 - lent);
        drop(group);
        driver.reap();
        assert_eq!(free_pages(&mut pool.lock().expect("nobody panics")), 4);
    }
}

/// Nothing is dropped after the last completion, which the group waits for.
#[test]
fn a_dropped_group_goes_with_its_last_receiver() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let pool = std::sync::Arc::new(std::sync::Mutex::new(pool_in(&arena, 4)));
    for first in ["group", "receivers"] {
        let mut group = driver.group(Shared(pool.clone()), 3, PAGE);
        if group.refused().is_some() {
            return;
        }
        let streams = [stream(), stream()];
        let mut receivers = streams.each_ref().map(|(_, far)| driver.receive(far, &group));
        for receiver in &mut receivers {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
        }
        driver.submit().expect("the kernel takes them");
        match first {
            "group" => (drop(group), drop(receivers)),
            _ => (drop(receivers), drop(group)),
        };
        assert_eq!(driver.in_flight(), 2);
        while driver.in_flight() > 0 {
            driver.wait_any().expect("the kernel answers");
        }
        assert_eq!(free_pages(&mut pool.lock().expect("nobody panics")), 4, "{first} first");
    }
}

/// A server with many connections has one group for all, and may give it a large budget.
#[test]
fn receivers_take_little_whatever_the_budget() {
    const RECEIVERS: usize = 1000;
    alone(module_path!(), "receivers_take_little_whatever_the_budget", LIMIT, || {
        let arena = arena();
        let Some(driver) = ring(&arena) else { return };
        let group = driver.group(HeapPool::new(), 1 << 15, PAGE);
        let (_near, far) = stream();
        let before = address_space_bytes();
        let receivers: Vec<_> = (0..RECEIVERS).map(|_| driver.receive(&far, &group)).collect();
        let each = address_space_bytes().saturating_sub(before) / RECEIVERS;
        drop(receivers);
        assert!(each < PAGE, "each receiver takes {each} bytes");
    });
}

#[test]
fn a_stream_that_fails_says_so() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut group = driver.group(pool_in(&arena, 2), 2, PAGE);
        let folder = bufuring::Descriptor::new(std::fs::File::open(".").expect("the folder is there"));
        let mut receiver = driver.receive(&folder, &group);
        let error = receiver.next(&driver, &mut group).expect("it has not ended").expect_err("no stream");
        assert!(error.raw_os_error().is_some(), "{error}");
    }
}

#[test]
fn a_dropped_receiver_gives_its_budget_back() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let mut group = driver.group(pool_in(&arena, 8), 2, PAGE);
    for _ in 0..10 {
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        near.write_all(&[1; 2 * PAGE]).expect("the other end is open");
        drop(receiver.next(&driver, &mut group).expect("it is open").expect("they have come"));
        for _ in 0..1000 {
            if receiver.waiting() == 1 {
                break;
            }
            group.refill(&driver).expect("the pool has pages");
            driver.reap();
            driver.submit().expect("the kernel takes it");
        }
    }
}
