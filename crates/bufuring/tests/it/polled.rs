//! Receivers that are polled, many of them in one future.

use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use bufcore::{HeapPool, NoFallback};
use bufslot::SlotPool;
use bufuring::{Arena, Descriptor, Driver, Group, Mode};
use testkit::process::alone;
use testkit::sandbox::refuse;

use crate::{PAGE, SOON, arena, drivers, free_pages, pool_in, ring, stream};

/// Drivers that wait for many streams at once: not those of blocking calls.
fn rings(arena: &Arena) -> impl Iterator<Item = Driver> {
    drivers(arena).into_iter().filter(|driver| !matches!(driver.mode(), Mode::Blocking { .. }))
}

/// Receives all that 20 streams have, each in some parts, in whatever order they arrive.
fn serve(driver: &Driver, mut group: Group<SlotPool<NoFallback>>) {
    const STREAMS: usize = 20;
    const PARTS: usize = 30;
    let (mut nears, fars): (Vec<_>, Vec<_>) = (0..STREAMS).map(|_| stream()).unzip();
    let mut receivers: Vec<_> = fars.iter().map(|far| Some(driver.receive(far, &group))).collect();
    let sender = thread::spawn(move || {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..STREAMS * PARTS {
            // Those that are behind stay so for a while: most streams are idle.
            let at = rng.usize(0..STREAMS);
            nears[at].write_all(&[at as u8; 7]).expect("the other end is open");
            if round % 50 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut received = 0;
    driver.block_on(poll_fn(|context| {
        for (at, place) in receivers.iter_mut().enumerate() {
            while let Some(receiver) = place {
                match receiver.poll_next(context, driver, &mut group) {
                    Poll::Ready(Some(bytes)) => {
                        let bytes = bytes.expect("there are buffers");
                        assert!(bytes.iter().all(|&byte| usize::from(byte) == at), "bytes of another stream");
                        received += bytes.len();
                    }
                    Poll::Ready(None) => *place = None,
                    Poll::Pending => break,
                }
            }
        }
        if receivers.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!(received, STREAMS * PARTS * 7);
    sender.join().expect("no trial fails");
    drop(group);
}

#[test]
fn streams_are_served_in_the_order_of_what_arrives() {
    alone(module_path!(), "streams_are_served_in_the_order_of_what_arrives", SOON, || {
        let arena = arena();
        for driver in rings(&arena) {
            for budget in [1, 2, 40] {
                // A buffer is returned before another one is asked for.
                let group = driver.group(pool_in(&arena, usize::from(budget) + 1), budget, PAGE);
                serve(&driver, group);
            }
        }
    });
}

#[test]
fn where_each_buffer_needs_a_request() {
    alone(module_path!(), "where_each_buffer_needs_a_request", SOON, || {
        let arena = arena();
        if ring(&arena).is_none() || !refuse(libc::SYS_io_uring_register, libc::EPERM) {
            return eprintln!("no filters here");
        }
        let driver = Driver::new(&arena);
        let group = driver.group(pool_in(&arena, 20), 20, PAGE);
        assert!(group.refused().is_some());
        serve(&driver, group);
    });
}

/// A read that is in flight is not lost, whichever way the receiver is asked next.
#[test]
fn polled_and_then_waited_for() {
    let arena = arena();
    for driver in rings(&arena) {
        let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        let mut context = Context::from_waker(Waker::noop());
        assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
        near.write_all(b"bytes").expect("the other end is open");
        let bytes = receiver.next(&driver, &mut group).expect("it is open").expect("they have come");
        assert_eq!(&bytes[..], b"bytes");
        assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
        drop(near);
        assert!(receiver.next(&driver, &mut group).is_none());
        assert!(matches!(receiver.poll_next(&mut context, &driver, &mut group), Poll::Ready(None)));
    }
}

/// Counts its wakes.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        // ORDER: SeqCst, for ease.
        self.0.fetch_add(1, SeqCst);
    }
}

/// A waker and what counts its wakes.
fn counting() -> (Waker, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    (Waker::from(Arc::clone(&counts)), counts)
}

/// The future is not the driver's own, so nothing but its waker has it polled.
#[test]
fn a_task_is_woken_by_what_arrives() {
    let arena = arena();
    for driver in rings(&arena) {
        let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
        let (mut near, far) = stream();
        let mut receiver = driver.receive(&far, &group);
        for wakes in 1..=3 {
            let (waker, counts) = counting();
            let mut context = Context::from_waker(&waker);
            assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
            near.write_all(b"x").expect("the other end is open");
            driver.wait_any().expect("the kernel answers");
            assert_eq!(counts.0.load(SeqCst), 1, "{wakes}");
            assert!(receiver.poll_next(&mut context, &driver, &mut group).is_ready());
        }
    }
}

/// Bytes that another receiver has take the whole budget. They are taken, or dropped.
#[test]
fn a_task_is_woken_when_the_budget_allows_another_buffer() {
    let arena = arena();
    for is_dropped in [false, true] {
        let Some(driver) = ring(&arena) else { return };
        let mut group = driver.group(pool_in(&arena, 2), 1, PAGE);
        if group.refused().is_some() {
            return;
        }
        let ((mut near, far), (_other_near, other_far)) = (stream(), stream());
        let mut receiver = driver.receive(&far, &group);
        let mut other = driver.receive(&other_far, &group);
        let mut context = Context::from_waker(Waker::noop());
        assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
        near.write_all(b"x").expect("the other end is open");
        while receiver.waiting() == 0 {
            driver.wait_any().expect("the kernel answers");
        }
        let starved = [counting(), counting(), counting()];
        for (waker, _) in &starved {
            for _ in 0..2 {
                let polled = other.poll_next(&mut Context::from_waker(waker), &driver, &mut group);
                assert!(polled.is_pending());
            }
        }
        if is_dropped {
            drop(receiver);
        } else {
            assert!(receiver.poll_next(&mut context, &driver, &mut group).is_ready());
        }
        assert_eq!(starved.map(|(_, counts)| counts.0.load(SeqCst)), [1; 3]);
        assert!(other.poll_next(&mut context, &driver, &mut group).is_pending());
        assert_eq!(group.provided(), 1);
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

/// The bytes are there nevertheless, and the buffers come back.
#[test]
fn t22_the_waker_of_a_receiver_panics() {
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
    if group.refused().is_some() {
        return;
    }
    let (mut near, far) = stream();
    let mut receiver = driver.receive(&far, &group);
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    assert!(receiver.poll_next(&mut context, &driver, &mut group).is_pending());
    near.write_all(b"bytes").expect("the other end is open");
    assert!(catch_unwind(AssertUnwindSafe(|| driver.wait_any())).is_err());
    match receiver.poll_next(&mut context, &driver, &mut group) {
        Poll::Ready(Some(Ok(bytes))) => assert_eq!(&bytes[..], b"bytes"),
        other => panic!("{other:?}"),
    }
    drop((receiver, group, driver));
    let mut pool = pool_in(&arena, 4);
    assert_eq!(free_pages(&mut pool), 4);
}

/// A waker that drops what was polled, and calls the driver that is waking it.
struct Drops;

thread_local! {
    static DRIVER: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) };
    static DROPPED: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        drop(DROPPED.take());
        let driver = DRIVER.take().expect("it is woken once");
        driver.submit().expect("the kernel takes it");
    }
}

/// Also when so many operations are dropped with it that the driver looks for them.
#[test]
fn a_receiver_that_its_waker_drops_is_cancelled() {
    for others in [0, 1, 31, 32, 33] {
        let arena = arena();
        let Some(driver) = ring(&arena).map(Rc::new) else { return };
        let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
        if group.refused().is_some() {
            return;
        }
        let ((mut near, far), (_other_near, other_far)) = (stream(), stream());
        let mut receiver = driver.receive(&far, &group);
        drop(far);
        let waker = Waker::from(Arc::new(Drops));
        assert!(receiver.poll_next(&mut Context::from_waker(&waker), &driver, &mut group).is_pending());
        let buf = || HeapPool::new().acquire(1).expect("the heap has room");
        let others = (0..others).map(|_| Box::new(driver.read(&other_far, buf(), 1)) as Box<dyn Any>);
        DROPPED.set(others.chain([Box::new(receiver) as Box<dyn Any>]).collect());
        DRIVER.set(Some(Rc::clone(&driver)));
        near.write_all(b"x").expect("the other end is open");
        driver.wait_any().expect("the kernel answers");
        for _ in 0..1000 {
            driver.submit().expect("the kernel takes it");
            driver.reap();
        }
        assert_eq!(driver.in_flight(), 0);
        let error = near.write_all(b"x").expect_err("the other end is closed");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

/// Wakers go when their receiver does, and when another one takes their place.
#[test]
fn wakers_are_not_kept() {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let arena = arena();
    let Some(driver) = ring(&arena) else { return };
    let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
    let (_near, far) = stream();
    let mut receiver = driver.receive(&far, &group);
    let shares = [Arc::new(Nothing), Arc::new(Nothing)];
    for share in &shares {
        let waker = Waker::from(Arc::clone(share));
        let polled = receiver.poll_next(&mut Context::from_waker(&waker), &driver, &mut group);
        assert!(polled.is_pending());
    }
    let [first, second] = &shares;
    assert_eq!((Arc::strong_count(first), Arc::strong_count(second)), (1, 2));
    drop(receiver);
    assert_eq!(Arc::strong_count(second), 1);
    // Those of operations as well.
    let mut read = driver.read(&far, HeapPool::new().acquire(1).expect("the heap has room"), 1);
    let waker = Waker::from(Arc::clone(first));
    assert!(Pin::new(&mut read).poll(&mut Context::from_waker(&waker)).is_pending());
    drop((waker, read));
    assert_eq!(Arc::strong_count(first), 1);
}

#[test]
#[should_panic(expected = "the receiver is another group's")]
fn another_group_is_not_polled() {
    let driver = Driver::builder().blocking(true).build();
    let [group, mut other] = [0, 1].map(|_| driver.group(bufcore::HeapPool::new(), 1, 1));
    let (_near, far) = std::os::unix::net::UnixStream::pair().expect("the system has sockets");
    let mut receiver = driver.receive(&Descriptor::new(far), &group);
    drop(receiver.poll_next(&mut Context::from_waker(Waker::noop()), &driver, &mut other));
}
