//! Recording, from one thread and many.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use bufcore::{AcquireError, Buf, BufferPool, HeapPool, NoFallback};
use bufslot::SlotPool;
use buftrace::{EventKind, Meta, Recorder, Recording, Trace};

fn kinds(trace: &Trace) -> Vec<EventKind> {
    trace.events().iter().map(|event| event.kind).collect()
}

fn finish(recording: &Recording) -> Trace {
    recording.finish(Meta::default())
}

#[test]
fn sizes_are_those_asked_for() {
    let recording = Recording::new();
    let mut pool = Recorder::new(HeapPool::new(), &recording);
    drop(pool.acquire(0).unwrap());
    let mut buf = pool.acquire(1000).unwrap();
    buf.extend_from_slice(b"bytes").unwrap();
    buf.consume(2);
    assert_eq!(&buf[..], b"tes");
    let zeroed = pool.acquire_zeroed(70).unwrap();
    assert_eq!(&zeroed[..], [0; 70]);
    drop(buf);
    drop(zeroed);
    assert_eq!(pool.max_capacity(), HeapPool::new().max_capacity());
    use EventKind::{Acquire, Release};
    let expected = [
        Acquire { id: 0, bytes: 0 },
        Release { id: 0 },
        Acquire { id: 0, bytes: 1000 },
        Acquire { id: 1, bytes: 70 },
        Release { id: 0 },
        Release { id: 1 },
    ];
    assert_eq!(kinds(&finish(&recording)), expected);
}

#[test]
fn refused_requests_leave_no_event() {
    let recording = Recording::new();
    let mut pool = Recorder::new(NoFallback, &recording);
    assert!(matches!(pool.acquire(5), Err(AcquireError::TooLarge { requested: 5, .. })));
    assert!(finish(&recording).events().is_empty());
}

/// A buffer that grows is another one, and the first is released then.
#[test]
fn growth_is_an_acquire_and_a_release() {
    let recording = Recording::new();
    let mut pool = Recorder::new(SlotPool::new(1024, 4).unwrap(), &recording);
    let mut buf = pool.acquire(2).unwrap();
    buf.extend_from_slice(b"ab").unwrap();
    pool.grow(&mut buf, 8).unwrap();
    assert_eq!(buf, "ab");
    drop(buf);
    assert_eq!(
        kinds(&finish(&recording)),
        [
            EventKind::Acquire { id: 0, bytes: 2 },
            EventKind::Acquire { id: 1, bytes: 10 },
            EventKind::Release { id: 0 },
            EventKind::Release { id: 1 }
        ]
    );
}

#[test]
fn frozen_views_are_released_with_the_last() {
    let recording = Recording::new();
    let mut pool = Recorder::new(SlotPool::new(1024, 4).unwrap(), &recording);
    let mut buf = pool.acquire(8).unwrap();
    buf.extend_from_slice(b"12345678").unwrap();
    let view = buf.freeze();
    let clones: Vec<_> = (0..4).map(|_| view.clone()).collect();
    drop(view);
    let threads: Vec<_> =
        clones.into_iter().map(|view| thread::spawn(move || assert_eq!(view.len(), 8))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let trace = finish(&recording);
    assert_eq!(kinds(&trace), [EventKind::Acquire { id: 0, bytes: 8 }, EventKind::Release { id: 0 }]);
    assert_eq!(trace.summary().cross_thread_releases, 1);
    assert_eq!(pool.stats().in_use, 0, "the slot is free again");
}

#[test]
fn buffers_outlive_everything() {
    let recording = Recording::new();
    let mut pool = Recorder::new(SlotPool::new(1024, 4).unwrap(), &recording);
    let mut early = pool.acquire(10).unwrap();
    let mut late = pool.acquire(20).unwrap();
    assert_eq!(pool.get_ref().slots(), 4);
    drop(pool.into_inner());
    early.extend_from_slice(b"x").unwrap();
    drop(early);
    let trace = finish(&recording);
    assert_eq!(trace.out_at_end(), [1]);
    assert_eq!(trace.events().len(), 3);
    assert_eq!(finish(&recording), trace, "finishing again changes nothing");
    drop(recording);
    late.extend_from_slice(b"still here").unwrap();
    thread::spawn(move || assert_eq!(&late[..], b"still here")).join().unwrap();
}

#[test]
fn a_full_recording_is_a_trace_and_pools_go_on() {
    let recording = Recording::with_max_events(5);
    let mut pool = Recorder::new(HeapPool::new(), &recording);
    let held: Vec<_> = (0..4).map(|i| pool.acquire(i).unwrap()).collect();
    assert!(!recording.is_cut());
    drop(held);
    drop(pool.acquire(100).unwrap());
    assert!(recording.is_cut());
    let trace = finish(&recording);
    assert!(trace.meta().cut);
    assert_eq!(trace.events().len(), 5);
    assert_eq!(trace.out_at_end(), [1, 2, 3]);
}

#[test]
fn long_texts_are_shortened() {
    let trace = Recording::new().finish(Meta { made_by: "ä".repeat(3000), ..Meta::new("x".repeat(5000)) });
    assert_eq!((trace.meta().name.len(), trace.meta().made_by.chars().count()), (4096, 2048));
}

/// Buffers on their way to another thread. Not a channel of the standard library: a part of those
/// is precompiled, and the thread sanitizer does not see what it synchronises.
type Mailbox<L> = Mutex<Vec<Buf<L>>>;

/// Several pools on several threads, buffers released elsewhere in another order. `Trace::new`
/// inside `finish` checks the rules: an acquire before its release, an id used again only after
/// that, times that do not go back.
#[test]
fn many_threads() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 4000;
    let recording = Recording::new();
    let mailboxes: [Mailbox<_>; THREADS] = Default::default();
    let all_sent = Barrier::new(THREADS);
    thread::scope(|scope| {
        for (number, mine) in mailboxes.iter().enumerate() {
            let (mailboxes, recording, all_sent) = (&mailboxes, &recording, &all_sent);
            scope.spawn(move || {
                let mut pool = Recorder::new(SlotPool::new(64 * 1024, 64).unwrap(), recording);
                let mut held = Vec::new();
                for round in 0..ROUNDS {
                    let mut buf = pool.acquire(1 + (round * 7 + number) % 900).unwrap();
                    buf.push(number as u8).unwrap();
                    // Some stay, some go to every other thread.
                    match (number + round) % THREADS {
                        to if to == number => drop(buf),
                        to => mailboxes[to].lock().unwrap().push(buf),
                    }
                    held.append(&mut mine.lock().unwrap());
                    while held.len() > 20 {
                        assert_eq!(held.swap_remove(round % 20).len(), 1);
                    }
                }
                all_sent.wait();
                mine.lock().unwrap().clear();
            });
        }
    });
    let trace = finish(&recording);
    let summary = trace.summary();
    assert_eq!((summary.acquires, summary.releases), (THREADS * ROUNDS, THREADS * ROUNDS));
    assert_eq!((summary.threads, summary.out_at_end, summary.distinct_sizes), (THREADS, 0, 900));
    assert!(summary.cross_thread_releases > summary.releases / 2, "{summary}");
    assert_eq!(trace.ids(), summary.max_live, "an id is the smallest that is free");
    assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
}

/// Ends the recording while others are in the middle of it.
#[test]
fn finish_at_any_moment() {
    for _ in 0..30 {
        let recording = Recording::new();
        let mailbox = Mailbox::default();
        let done = AtomicBool::new(false);
        let trace = thread::scope(|scope| {
            scope.spawn(|| {
                let mut pool = Recorder::new(HeapPool::new(), &recording);
                (0..2000).for_each(|i| mailbox.lock().unwrap().push(pool.acquire(i % 50).unwrap()));
                // ORDER: Release pairs with the Acquire below: whoever sees this sees the last
                // buffer in the mailbox.
                done.store(true, Ordering::Release);
            });
            scope.spawn(|| {
                loop {
                    // ORDER: Acquire, as above.
                    let last = done.load(Ordering::Acquire);
                    mailbox.lock().unwrap().clear();
                    if last {
                        break;
                    }
                }
            });
            while recording.events() < 500 {
                thread::yield_now();
            }
            finish(&recording)
        });
        assert!(!trace.events().is_empty());
        assert_eq!(finish(&recording).events(), trace.events());
        let summary = trace.summary();
        assert_eq!(summary.acquires, summary.releases + trace.out_at_end().len());
    }
}

/// Handles of one recorder on several threads, of the pools that serve through a shared reference.
#[test]
fn shared_where_the_pool_is() {
    fn check<P: BufferPool + Clone + Send + Sync>(pool: P)
    where
        for<'a> &'a P: BufferPool,
    {
        let recording = Recording::new();
        let pool = Recorder::new(pool, &recording);
        thread::scope(|scope| {
            let shared = &pool;
            for _ in 0..2 {
                scope.spawn(move || drop(Recorder::acquire(shared, 100).expect("room")));
                let clone = pool.clone();
                scope.spawn(move || drop(Recorder::acquire_zeroed(&clone, 100).expect("room")));
            }
        });
        // Where a `BufferPool` is asked for, a clone is one.
        fn ask(mut pool: impl BufferPool) {
            drop(pool.acquire(100).expect("room"));
        }
        ask(pool.clone());
        let summary = pool.recording().finish(Meta::default()).summary();
        assert_eq!((summary.acquires, summary.releases, summary.out_at_end), (5, 5, 0));
    }
    check(bufshard::ShardPool::new().expect("settings are right"));
    check(bufbump::BumpPool::new().expect("settings are right"));
}

/// A buffer that was split is one buffer of the recording, which goes with its last part.
#[test]
fn parts_are_released_with_the_last() {
    let recording = Recording::new();
    let pool = Recorder::new(bufshard::ShardPool::new().expect("settings are right"), &recording);
    let mut front = pool.acquire(100).expect("room");
    let empty = front.split_off(100);
    let back = front.split_off(40);
    let mut middle = front.split_off(20);
    middle.push(7).expect("room");
    let view = middle.freeze();
    drop((empty, front, back));
    assert_eq!(recording.events(), 1, "a view of a part is out");
    thread::spawn(move || assert_eq!(&view[..], [7])).join().expect("dropping does not panic");
    assert_eq!(
        kinds(&finish(&recording)),
        [EventKind::Acquire { id: 0, bytes: 100 }, EventKind::Release { id: 0 }]
    );
    // Of the recording's own: a part of what was split before is none of its buffers.
    let recording = Recording::new();
    let mut whole = pool.get_ref().acquire(10).expect("room");
    let part = recording.record(whole.split_off(5));
    drop((whole, part));
    assert_eq!(recording.events(), 0);
}

/// What a pool hands out in ways of its own.
#[test]
fn timed_and_async_acquires() {
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use core::time::Duration;

    let recording = Recording::new();
    let pool = bufshard::ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    let pool = Recorder::new(pool, &recording);
    let large = recording.record(pool.get_ref().acquire_timeout(90_000, Duration::ZERO).expect("room"));
    let mut request =
        pin!(async { pool.get_ref().acquire_async(80_000).await.map(|buf| recording.record(buf)) });
    let mut context = Context::from_waker(Waker::noop());
    assert!(request.as_mut().poll(&mut context).is_pending());
    drop(large);
    let Poll::Ready(got) = request.poll(&mut context) else { panic!("there is room now") };
    drop(got.expect("there is room now"));
    use EventKind::{Acquire, Release};
    let expected = [
        Acquire { id: 0, bytes: 90_000 },
        Release { id: 0 },
        Acquire { id: 0, bytes: 80_000 },
        Release { id: 0 },
    ];
    assert_eq!(kinds(&finish(&recording)), expected);
}

#[test]
fn saved_and_loaded() {
    let folder = std::env::temp_dir().join(format!("buftrace-saved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("app.buftrace");
    let recording = Recording::new();
    let mut pool = Recorder::new(HeapPool::new(), &recording);
    let held = pool.acquire(5).expect("room");
    recording.save(&path).expect("it can be written");
    let trace = Trace::load(&path).expect("as it was written");
    assert_eq!((trace.meta().name.as_str(), trace.events().len(), trace.out_at_end()), ("app", 1, vec![0]));
    drop(held);
    std::fs::write(&path, b"no trace").expect("it can be written");
    let error = Trace::load(&path).expect_err("no trace");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("not a buffer trace"), "{error}");
    assert!(Trace::load(folder.join("none")).is_err() && recording.save(&folder).is_err());
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// A recorder, a recording and its leases are what they wrap.
#[test]
fn a_recorder_shows_what_it_wraps() {
    let recording = Recording::default();
    let mut pool = Recorder::new(SlotPool::new(1024, 4).unwrap(), &recording);
    let buf = pool.acquire(100).unwrap();
    assert_eq!(format!("{recording:?}"), "Recording { events: 1, .. }");
    assert_eq!(
        format!("{:?}", buf.lease()),
        format!("RecordedLease {{ lease: {:?}, .. }}", buf.lease().get_ref())
    );
    assert_eq!((recording.events(), pool.get_ref().capacity()), (1, 1024));
}

/// A buffer that is split and joined again is one in the recording, also where the front of it was
/// given up.
#[test]
fn a_recorded_buffer_moves_to_the_front_of_its_memory() {
    let recording = Recording::new();
    let mut pool = Recorder::new(SlotPool::new(1024, 4).unwrap(), &recording);
    let mut buf = pool.acquire(100).unwrap();
    buf.extend_from_slice(b"head body").unwrap();
    let start = buf.as_ptr();
    buf.consume(5);
    buf.compact();
    assert_eq!((buf.as_ptr(), &buf[..], buf.capacity()), (start, &b"body"[..], 100));
    // Parts of no bytes hold nothing, and are not in the recording.
    let empty = buf.split_off(100);
    assert_eq!((empty.capacity(), recording.events()), (0, 1));
    let view = pool.acquire(0).unwrap().freeze();
    assert_eq!(view.clone().slice(..).len(), 0);
    drop((buf, empty, view));
    assert!(finish(&recording).out_at_end().is_empty());
}

/// A text that is too long is cut between two letters.
#[test]
fn names_are_cut_between_letters() {
    for front in 0..4 {
        let recording = Recording::new();
        let name = format!("{}{}", "x".repeat(front), "\u{1F980}".repeat(2000));
        let trace = recording.finish(Meta::new(name.clone()));
        let cut = &trace.meta().name;
        assert!(cut.len() <= 4096 && cut.len() > 4092 && name.starts_with(cut.as_str()), "{}", cut.len());
        assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
    }
}
