//! Blocks before `main`, in destructors of thread-locals, at exit, in fork handlers, and without
//! addresses. It has no test harness, which would be in the way.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one promise is behind all of a block")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufalloc::Large;

#[global_allocator]
static ALLOC: Large = Large::new();

#[cfg(not(all(target_os = "linux", not(miri))))]
fn main() {
    drop(std::hint::black_box(vec![1_u8; 1 << 20]));
}

#[cfg(all(target_os = "linux", not(miri)))]
fn main() {
    linux::main();
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::cell::RefCell;
    use std::mem::{replace, take};
    use std::process::Command;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Set in a child, to what it does.
    const PART: &str = "BUFALLOC_PART";

    static BEFORE_MAIN: AtomicUsize = AtomicUsize::new(0);
    static HANDLERS: AtomicUsize = AtomicUsize::new(0);
    static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static CHANGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static FREED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    #[used]
    #[unsafe(link_section = ".init_array")]
    static FIRST: extern "C" fn() = before_main;

    /// Exchanges a block. The lock is not held across a call to the allocator, whose lock a thread
    /// that forks has when it comes for this one.
    fn put(place: &Mutex<Vec<u8>>, block: Vec<u8>) -> Vec<u8> {
        replace(&mut *place.lock().unwrap(), block)
    }

    /// A handler that is registered before the heap is made, and so called while it is held.
    unsafe extern "C" fn in_fork() {
        // Allocates, grows, shrinks and frees, blocks of both.
        let changed = put(&CHANGED, Vec::new());
        for mut block in [vec![3_u8; 1 << 20], changed] {
            block.resize(2 << 20, 3);
            block.truncate(40 << 10);
            block.shrink_to_fit();
            assert!(block.iter().all(|byte| *byte == 3));
        }
        drop(put(&FREED, Vec::new()));
        HANDLERS.fetch_add(1, Relaxed);
    }

    extern "C" fn before_main() {
        // SAFETY: functions that do not unwind unless the test fails.
        assert_eq!(unsafe { libc::pthread_atfork(Some(in_fork), None, None) }, 0);
        if std::env::var_os(PART).is_some() {
            return;
        }
        let mut block = vec![5_u8; 1 << 20];
        block.extend_from_within(..);
        assert!(block.iter().all(|byte| *byte == 5));
        *KEPT.lock().unwrap() = block;
        BEFORE_MAIN.store(bufalloc::stats().resident_bytes, Relaxed);
        drop(std::hint::black_box(vec![1_u8; 64 << 10]));
    }

    struct AtEnd(Vec<u8>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            let mut other = take(&mut self.0);
            other.resize(3 << 20, 9);
            assert!(other.iter().all(|byte| *byte == 9));
            drop(std::hint::black_box(vec![0_u8; 40 << 10]));
        }
    }

    thread_local! {
        static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }

    extern "C" fn at_exit() {
        let mut kept = take(&mut *KEPT.lock().unwrap());
        assert!(kept.iter().all(|byte| *byte == 5));
        kept.resize(5 << 20, 5);
        drop(kept);
        println!("at exit");
    }

    pub(super) fn main() {
        // A hang ends.
        // SAFETY: no pointers are passed.
        unsafe { libc::alarm(60) };
        match std::env::var(PART).as_deref() {
            Ok("without addresses") => without_addresses(1 << 30),
            Ok("without many addresses") => without_addresses(4 << 40),
            _ => all(),
        }
    }

    fn all() {
        assert!(BEFORE_MAIN.load(Relaxed) >= 2 << 20, "the heap has it");
        for _ in 0..4 {
            let thread = std::thread::spawn(|| LAST.set(Some(AtEnd(vec![9_u8; 1 << 20]))));
            thread.join().unwrap();
        }
        LAST.set(Some(AtEnd(vec![9_u8; 1 << 20])));
        forks();
        for part in ["without addresses", "without many addresses"] {
            let binary = std::env::current_exe().unwrap();
            let status = Command::new(binary).env(PART, part).status().unwrap();
            assert!(status.success(), "{part}: {status}");
        }
        // SAFETY: a function that does not unwind unless the test fails.
        assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
    }

    /// Forks while other handlers use the allocator, in threads and by turns.
    fn forks() {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        fork();
                    }
                });
            }
        });
        assert_eq!(HANDLERS.load(Relaxed), 40);
        drop((put(&CHANGED, Vec::new()), put(&FREED, Vec::new())));
        bufalloc::trim();
        let stats = bufalloc::stats();
        let used = stats.resident_bytes - stats.dirty_bytes;
        assert!(used <= (2 << 20) + (1 << 20) + (256 << 10), "what was deferred is free: {stats:?}");
    }

    fn fork() {
        // Blocks of the heap, for the handler.
        drop(put(&CHANGED, vec![3_u8; 1 << 20]));
        drop(put(&FREED, vec![3_u8; 1 << 20]));
        // SAFETY: the child allocates, which it may, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut block = vec![8_u8; 1 << 20];
            block.resize(4 << 20, 8);
            let is_right = block.iter().all(|byte| *byte == 8);
            drop(block);
            // SAFETY: ends this process.
            unsafe { libc::_exit(libc::c_int::from(!is_right)) };
        }
        assert!(child > 0);
        let started = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: a live number.
            let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            if ended == child {
                assert_eq!(status, 0, "the child failed");
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the child hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Limits the addresses before the first large block.
    fn without_addresses(bytes: libc::rlim_t) {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: a live structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let mut blocks: Vec<_> = (1_u8..=40).map(|byte| vec![byte; 1 << 20]).collect();
        for (byte, block) in (1..).zip(&mut blocks) {
            block.resize(9 << 20, byte);
            assert!(block.iter().all(|its| *its == byte));
        }
        let stats = bufalloc::stats();
        assert!(stats.address_bytes > 0 && (stats.address_bytes > 1 << 39) == (bytes > 1 << 40), "{stats:?}");
        // Blocks of both shrink, and go.
        for block in &mut blocks {
            block.truncate(50 << 10);
            block.shrink_to_fit();
            block.truncate(5 << 10);
            block.shrink_to_fit();
        }
        drop(blocks);
        let stats = bufalloc::stats();
        assert_eq!(stats.dirty_bytes, stats.resident_bytes, "{stats:?}");
    }
}
