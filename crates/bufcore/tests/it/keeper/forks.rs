//! Keepers in a child that was forked.

use std::hint;

use buftest::process::alone;
use buftest::sandbox::{Ended, forked};

use super::*;

/// A forked child has no keeper: what is left of the parent's does nothing there, and a new one
/// works.
#[test]
fn t25_forks() {
    alone(module_path!(), "t25_forks", LIMIT, || {
        let pool = Fake::with_bell();
        let mut running =
            Some(keeper().age(Duration::from_millis(10)).watch(&pool).spawn().expect("a thread starts"));
        // It watches another pool: the lock of the first one may be held in the child for ever.
        let mut early = Some(keeper().age(Duration::from_millis(10)).watch(&Arc::new(Fake::default())));
        for round in 0..50 {
            thread::sleep(Duration::from_millis(round % 7));
            let ended = forked(LIMIT / 4, || {
                let running = running.take().expect("it is there");
                pool.bell.as_ref().expect("it has one").ring();
                running.watch(&Arc::new(Fake::default()));
                drop(running);
                // One of its own, made before the fork or after it.
                let other = Arc::new(Fake::default());
                let own = early.take().expect("it is there").watch(&other).spawn().expect("a thread starts");
                wait_until("it does not look", || other.looks() > 0);
                drop(own);
                7
            });
            assert_eq!(ended, Ended::With(7), "the child of round {round}");
        }
        // The parent's continues.
        pool.events();
        pool.set_reserved(5);
        pool.bell.as_ref().expect("it has one").ring();
        wait_until("the parent's looks no more", || pool.looks() > 0);
        drop(running);
    });
}

/// A keeper that a program calls continues in a child of that program, with all its handles: a
/// daemon forks after its start.
#[test]
fn t25_a_keeper_that_ticks_goes_on_in_a_child() {
    alone(module_path!(), "t25_a_keeper_that_ticks_goes_on_in_a_child", LIMIT, || {
        let first = Arc::new(Fake::default());
        let mut ticking = keeper();
        let handle = ticking.handle();
        handle.watch(&first); // and not looked at before the fork
        let mut unused = Some(keeper());
        let early_handle = unused.as_ref().expect("it is there").handle();
        let ended = forked(LIMIT / 4, || {
            let [second, third, lost] = [(); 3].map(|()| Arc::new(Fake::default()));
            let now = Instant::now();
            handle.watch(&lost); // it cannot know yet that the keeper came along
            ticking.handle().watch(&second);
            ticking.tick(now);
            handle.watch(&third);
            ticking.tick(now);
            assert_eq!([&first, &second, &third, &lost].map(|pool| pool.looks()), [1, 1, 1, 0]);
            // And in a child of that child.
            let forth = Arc::new(Fake::default());
            let ended = forked(LIMIT / 4, || {
                ticking.tick(now);
                handle.watch(&forth);
                ticking.tick(now);
                forth.looks() as u8
            });
            assert_eq!((ended, forth.looks()), (Ended::With(1), 0));
            // One that ends there.
            let handles = [unused.as_ref().expect("it is there").handle(), early_handle.clone()];
            drop(unused.take());
            handles.iter().for_each(|handle| handle.watch(&forth));
            assert_eq!(Arc::weak_count(&forth), 0, "it keeps what it is given after its end");
            ticking.watched() as u8
        });
        assert_eq!(ended, Ended::With(3));
        ticking.tick(Instant::now());
        assert_eq!((first.looks(), ticking.watched()), (1, 1), "the parent's continues");
    });
}

/// The child's other threads, which it lacks, were giving the keeper pools: no call waits for them.
#[test]
fn t25_forks_amid_calls() {
    /// More than are made while a thread forks.
    const CALLS: usize = 5000;

    /// A pool that has ended.
    struct Gone;
    impl WeakPool for Gone {
        fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
            false
        }
    }
    impl Watch for Gone {
        fn downgrade(&self) -> Box<dyn WeakPool> {
            Box::new(Self)
        }
    }

    alone(module_path!(), "t25_forks_amid_calls", LIMIT, || {
        let mut ticking = keeper();
        let mut early = Some(keeper());
        let handles = [ticking.handle(), early.as_ref().expect("it is there").handle()];
        let is_over = AtomicBool::new(false);
        // Calls that are still to come: without a bound the keepers would soon have millions of
        // pools.
        let calls = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                // ORDER: SeqCst, for ease.
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        let is_due = calls.fetch_update(SeqCst, SeqCst, |calls| calls.checked_sub(1));
                        if is_due.is_ok() {
                            handles.iter().for_each(|handle| handle.watch(&Gone));
                        }
                    }
                });
            }
            // A fork amid a locked call is rare: one in a hundred.
            let started = Instant::now();
            let mut rounds = (0..1000).take_while(|_| started.elapsed() < LIMIT / 4).map(|_| {
                // ORDER: SeqCst, for ease.
                calls.store(CALLS, SeqCst);
                // A thread that has not begun holds no lock while this one forks.
                while calls.load(SeqCst) == CALLS {
                    hint::spin_loop();
                }
                let ended = forked(LIMIT / 20, || {
                    ticking.tick(Instant::now());
                    handles[0].watch(&Gone);
                    ticking.tick(Instant::now());
                    drop(ticking.handle());
                    let running = early.take().expect("it is there").spawn().expect("a thread starts");
                    handles[1].watch(&Gone);
                    drop(running);
                    7
                });
                ticking.tick(Instant::now());
                early.as_mut().expect("it is there").tick(Instant::now());
                ended
            });
            let wrong = rounds.find(|ended| *ended != Ended::With(7));
            // ORDER: SeqCst, for ease.
            is_over.store(true, SeqCst);
            assert_eq!(wrong, None);
        });
    });
}
