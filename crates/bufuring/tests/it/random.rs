//! Random programs: streams that are polled, waited for and dropped at any point, also by wakers that call the driver.

use std::any::Any;
use std::cell::RefCell;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bufcore::{Buf, NoFallback, NoLease};
use bufslot::{SlotLease, SlotPool};
use bufuring::{Arena, Descriptor, Driver, Group, Operation, Receiver};
use testkit::process::alone;

use crate::{LIMIT, PAGE, free_pages, page, pool_in, ring};

type Lease = SlotLease<NoLease>;

thread_local! {
    static DRIVER: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) };
    /// What the next waker drops.
    static TRASH: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A waker that does one of several things.
struct Does(u8);

impl Wake for Does {
    fn wake(self: Arc<Self>) {
        if self.0 & 1 != 0 {
            drop(TRASH.take());
        }
        let Some(driver) = DRIVER.with_borrow(Clone::clone) else { return };
        if self.0 & 2 != 0 {
            driver.submit().expect("the kernel takes it");
        }
        if self.0 & 4 != 0 {
            driver.reap();
        }
        if self.0 & 8 != 0 {
            drop(TRASH.take());
        }
    }
}

/// A stream on which each byte is one more than that before.
struct Stream {
    near: UnixStream,
    far: Descriptor,
    sent: u8,
    receiver: Option<Receiver<Lease>>,
    read: Option<Operation<Lease>>,
    /// The next byte, if no one was dropped.
    next: Option<u8>,
}

impl Stream {
    fn new() -> Self {
        let (near, far) = UnixStream::pair().expect("the system has sockets");
        near.set_nonblocking(true).expect("a socket can be");
        Self { near, far: Descriptor::new(far), sent: 0, receiver: None, read: None, next: Some(0) }
    }

    fn check(&mut self, bytes: &Buf<Lease>) {
        let mut next = self.next.unwrap_or(bytes[0]);
        for &byte in bytes.iter() {
            assert_eq!(byte, next, "in order");
            next = next.wrapping_add(1);
        }
        self.next = Some(next);
    }
}

/// Runs a program. `false` where the system has no io_uring.
fn run(seed: u64, arena: &Arena) -> bool {
    let mut rng = fastrand::Rng::with_seed(seed);
    let entries = [1, 2, 4, 64][rng.usize(..4)];
    if ring(arena).is_none() {
        return false;
    }
    // Few entries, so that completions do not fit.
    let driver = Rc::new(Driver::builder().arena(arena).entries(entries).register(rng.bool()).build());
    DRIVER.set(Some(Rc::clone(&driver)));
    let budget = rng.u16(0..6);
    let slots = usize::from(budget) + rng.usize(0..3);
    let new_group = || driver.group(pool_in(arena, slots.max(1)), budget, PAGE);
    let mut group: Group<SlotPool<NoFallback>> = new_group();
    let mut pool = pool_in(arena, 40);
    let mut streams: Vec<_> = (0..5).map(|_| Stream::new()).collect();
    for _ in 0..2000 {
        let at = rng.usize(..streams.len());
        let stream = &mut streams[at];
        let waker = match rng.u8(..) & 31 {
            does @ 0..16 => Waker::from(Arc::new(Does(does))),
            _ => Waker::noop().clone(),
        };
        let mut context = Context::from_waker(&waker);
        match rng.u8(..20) {
            0..4 => {
                let len = [1, 7, PAGE, 3 * PAGE][rng.usize(..4)];
                let bytes: Vec<u8> = (0..len).map(|at| stream.sent.wrapping_add(at as u8)).collect();
                if let Ok(count) = stream.near.write(&bytes) {
                    stream.sent = stream.sent.wrapping_add(count as u8);
                }
            }
            4..9 if stream.read.is_none() => {
                let mut receiver =
                    stream.receiver.take().unwrap_or_else(|| driver.receive(&stream.far, &group));
                match receiver.poll_next(&mut context, &driver, &mut group) {
                    Poll::Ready(Some(Ok(bytes))) => stream.check(&bytes),
                    Poll::Ready(Some(Err(error))) => {
                        assert!(crate::is_exhausted(&error), "{error}")
                    }
                    Poll::Ready(None) => panic!("it is open"),
                    Poll::Pending => {}
                }
                stream.receiver = Some(receiver);
            }
            9 => {
                if let Some(receiver) = stream.receiver.take() {
                    // The bytes that its request takes until it is cancelled are lost.
                    drop(receiver);
                    *stream = Stream::new();
                }
            }
            10 => {
                if let Some(receiver) = stream.receiver.take() {
                    TRASH.with_borrow_mut(|trash| trash.push(Box::new(receiver)));
                    *stream = Stream::new();
                }
            }
            11..14 if stream.receiver.is_none() => {
                let mut read = match stream.read.take() {
                    Some(read) => read,
                    None if free_pages(&mut pool) == 0 => continue,
                    None => driver.read(&stream.far, page(&mut pool), rng.usize(1..=PAGE)),
                };
                match Pin::new(&mut read).poll(&mut context) {
                    Poll::Ready(done) => {
                        let bytes = done.into_result().expect("it is open");
                        stream.check(&bytes);
                    }
                    Poll::Pending => stream.read = Some(read),
                }
            }
            14 => {
                if let Some(read) = stream.read.take() {
                    match rng.bool() {
                        true => drop(read),
                        false => TRASH.with_borrow_mut(|trash| trash.push(Box::new(read))),
                    }
                    *stream = Stream::new();
                }
            }
            15 if rng.u8(..8) == 0 => {
                for stream in &mut streams {
                    if stream.receiver.take().is_some() {
                        *stream = Stream::new();
                    }
                }
                let old = std::mem::replace(&mut group, new_group());
                TRASH.with_borrow_mut(|trash| trash.push(Box::new(old)));
            }
            16 => driver.submit().expect("the kernel takes it"),
            17 | 18 => drop(driver.reap()),
            19 if rng.u8(..4) == 0 => drop(TRASH.take()),
            _ => {}
        }
    }
    let ends_first = rng.bool();
    DRIVER.take();
    if ends_first {
        drop(streams);
        drop(group);
        drop(TRASH.take());
        let started = Instant::now();
        while driver.in_flight() > 0 {
            driver.submit().expect("the kernel takes it");
            driver.reap();
            assert!(started.elapsed() < Duration::from_secs(5), "{} in flight", driver.in_flight());
        }
        assert_eq!(free_pages(&mut pool), 40);
        drop(driver);
    } else {
        let started = Instant::now();
        drop(driver);
        assert!(started.elapsed() < Duration::from_secs(5));
        for stream in &mut streams {
            assert!(stream.read.as_ref().is_none_or(Operation::is_done));
        }
        drop(TRASH.take());
        drop((streams, group));
        assert_eq!(free_pages(&mut pool), 40);
    }
    true
}

#[test]
fn random_programs_lose_nothing() {
    alone(module_path!(), "random_programs_lose_nothing", LIMIT, || {
        for seed in 0..if cfg!(debug_assertions) { 8 } else { 200 } {
            let arena = Arena::mapped(64 << 20, bufcore::MapOptions::new()).expect("the system maps");
            println!("seed {seed}");
            if !run(seed, &arena) {
                return;
            }
            assert_eq!(arena.spare_bytes(), arena.len(), "all parts come back");
        }
    });
}
