//! Panics of pools, of what finds them and of wakers, which stop nothing else.

use super::*;

/// A pool whose own code panics, in a look or in the drop of what finds it.
struct Panics {
    in_drop: bool,
}

impl WeakPool for Panics {
    fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        assert!(self.in_drop, "in a look, on purpose");
        false
    }
}

impl Watch for Panics {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(Self { ..*self })
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                panic!("in the drop of a payload, on purpose");
            }
        }
        // Not that of the test's own.
        if self.in_drop && thread::current().name() == Some("buffer-keeper") {
            std::panic::panic_any(Payload);
        }
    }
}

/// A pool of which what finds it panics when it is dropped.
struct Lasts;

impl Watch for Lasts {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        struct Panicking;
        impl WeakPool for Panicking {
            fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
                true
            }
        }
        impl Drop for Panicking {
            fn drop(&mut self) {
                panic!("at the end, on purpose");
            }
        }
        Box::new(Panicking)
    }
}

/// A pool beside one whose code panics is looked at as ever.
#[track_caller]
fn stops_none_but_its_pool(panics: &Panics) {
    let pool = Arc::new(Fake::default());
    let running = keeper().purge_delay(Duration::from_millis(10)).watch(panics).watch(&pool).spawn();
    let running = running.expect("a thread starts");
    let mut looks = 0;
    wait_until("the other pool is not looked at", || {
        looks += pool.looks();
        looks >= 4
    });
    drop(running);
}

#[test]
fn a_panic_in_a_look_stops_none_but_its_pool() {
    stops_none_but_its_pool(&Panics { in_drop: false });
}

#[test]
fn a_panic_in_a_drop_stops_none_but_its_pool() {
    stops_none_but_its_pool(&Panics { in_drop: true });
}

/// All are woken, whichever of them panic, and no panic comes out.
#[test]
fn a_panic_in_a_waker_keeps_none_asleep() {
    struct Panicking;
    impl std::task::Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("a waker panics");
        }
    }

    let growth = GrowthSignal::default();
    let (wakes, counting) = testkit::tasks::counting();
    let panicking = || Waker::from(Arc::new(Panicking));
    for waker in [panicking(), panicking(), counting] {
        assert!(growth.register(&waker));
    }
    growth.notify();
    growth.notify();
    assert_eq!(wakes.count(), 1);
}

/// What a keeper has when it ends may panic when it is dropped.
#[test]
fn a_panic_in_a_drop_does_not_come_out_of_its_end() {
    for is_new in [true, false] {
        let ended = std::panic::catch_unwind(|| {
            let keeper = if is_new { keeper() } else { keeper().watch(&Lasts).watch(&Lasts) };
            if is_new {
                keeper.handle().watch(&Lasts);
                keeper.handle().watch(&Lasts);
            }
        });
        assert!(ended.is_ok());
    }
}
