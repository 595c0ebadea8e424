//! The recorder of the heap, for ThreadSanitizer: recordings begin and end while threads allocate, and
//! free for each other.
//!
//! Without a sanitizer it runs as well, and checks the recordings. Like a test harness, takes
//! `--exact NAME` for one trial.

#[cfg(target_os = "linux")]
mod trials {
    use core::ptr;
    use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    use core::time::Duration;
    use std::alloc::System;
    use std::env;
    use std::fs;
    use std::process;
    use std::thread;

    use buftrace::{Ending, Profile, RecordingAlloc, start_heap_recording};

    #[global_allocator]
    static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);

    const THREADS: u64 = 3;
    const ROUNDS: usize = 20;
    const ROUND: Duration = Duration::from_millis(5);

    /// What threads leave for each other to free.
    static SHARED: [AtomicPtr<Vec<u8>>; 16] = [const { AtomicPtr::new(ptr::null_mut()) }; 16];

    fn free(bytes: *mut Vec<u8>) {
        if !bytes.is_null() {
            // SAFETY: from `Box::into_raw`, and taken out of its place by one thread.
            drop(unsafe { Box::from_raw(bytes) });
        }
    }

    /// The threads are there before the first recording. Nothing but the recorder's own orders tells them of
    /// one.
    pub(crate) fn recordings_begin_and_end() {
        static ENDS: AtomicBool = AtomicBool::new(false);
        let file = env::temp_dir().join(format!("buftrace-{}-races.heap", process::id()));
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| {
                thread::spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    // ORDER: Relaxed: it orders nothing.
                    while !ENDS.load(Ordering::Relaxed) {
                        for _ in 0..100 {
                            drop(vec![1_u8; random.usize(1..4096)]);
                        }
                        let place = &SHARED[random.usize(..SHARED.len())];
                        let bytes = Box::into_raw(Box::new(vec![0_u8; random.usize(1..4096)]));
                        // ORDER: AcqRel pairs with itself: one thread has the bytes after the other.
                        free(place.swap(bytes, Ordering::AcqRel));
                    }
                })
            })
            .collect();
        let mut objects = 0;
        for round in 0..ROUNDS {
            let settings = if round % 2 == 0 { "exact" } else { "" };
            start_heap_recording(&file, settings).expect("it starts");
            thread::sleep(ROUND);
            buftrace::stop_heap_recording();
            let profile = Profile::load(&file).expect("a recording");
            assert_eq!((profile.ending(), profile.lost()), (Ending::Stopped, 0));
            objects += profile.objects().len();
        }
        // ORDER: Relaxed, as above.
        ENDS.store(true, Ordering::Relaxed);
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
        let _ = fs::remove_file(&file);
        assert!(objects > ROUNDS, "{objects} were recorded");
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    {
        let ran = testkit::races::run_own("recordings_begin_and_end", trials::recordings_begin_and_end);
        assert!(ran > 0, "no trial of this name");
    }
}
