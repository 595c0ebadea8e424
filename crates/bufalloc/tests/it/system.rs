//! What the system refuses, and what goes back to it.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use testkit::process::{alone, page_bytes, resident_bytes};
use testkit::sandbox::{Ended, MMAP, each_refused, forked, signalled};

use super::blocks::traffic;

const LIMIT: Duration = Duration::from_secs(120);
const STEPS: usize = 1500;

/// Waits until it is so, or for a long time.
fn wait_until(is_so: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

#[test]
fn t12_all_of_it_goes_back() {
    alone(module_path!(), "t12_all_of_it_goes_back", LIMIT, || {
        let before = resident_bytes();
        for _ in 0..3 {
            let blocks: Vec<_> = (1_u8..=64).map(|byte| vec![byte; 1 << 20]).collect();
            assert!(resident_bytes() >= before + (64 << 20));
            drop(blocks);
            // The thread does that.
            assert!(wait_until(|| bufalloc::stats().dirty_bytes == 0), "{:?}", bufalloc::stats());
            assert!(resident_bytes() < before + (4 << 20), "{} of {before}", resident_bytes());
            // It sleeps then, until it is woken.
            std::thread::sleep(Duration::from_secs(1));
        }
        let blocks: Vec<_> = (1_u8..=64).map(|byte| vec![byte; 1 << 20]).collect();
        drop(blocks);
        bufalloc::trim();
        assert_eq!(bufalloc::stats().dirty_bytes, 0);
    });
}

#[test]
fn a_block_that_grows_keeps_the_pages_it_has() {
    alone(module_path!(), "a_block_that_grows_keeps_the_pages_it_has", LIMIT, || {
        let before = bufalloc::stats();
        let (mut bytes, mut behind) = (Vec::new(), Vec::new());
        while bytes.len() < 64 << 20 {
            bytes.push(bytes.len() as u64);
            if bytes.len() == bytes.capacity() && bytes.len() >= 32 << 10 {
                // Right behind it, so that it moves.
                behind.push(vec![1_u8; 32 << 10]);
            }
            if bytes.len() == 1 << 20 {
                break;
            }
        }
        assert!(bytes.iter().enumerate().all(|(at, word)| at as u64 == *word));
        let stats = bufalloc::stats();
        assert!(stats.moved_bytes > before.moved_bytes, "{stats:?}");
        let faulted = stats.faulted_bytes - before.faulted_bytes;
        assert!(faulted < 10 << 20, "{faulted} for 8 MiB and blocks behind");
    });
}

#[test]
fn t12_zeroed_blocks_are_not_touched() {
    alone(module_path!(), "t12_zeroed_blocks_are_not_touched", LIMIT, || {
        drop(vec![1_u8; 16 << 20]);
        let before = resident_bytes();
        let block = vec![0_u8; 1 << 30];
        assert!(resident_bytes() < before + (4 << 20));
        assert_eq!(block[1 << 29], 0);
    });
}

#[test]
fn t18_t25_refused_calls_are_survived() {
    alone(module_path!(), "t18_t25_refused_calls_are_survived", LIMIT, || {
        let calls = [
            ("mmap", MMAP),
            ("munmap", libc::SYS_munmap),
            ("madvise", libc::SYS_madvise),
            ("mremap", libc::SYS_mremap),
            ("clone", libc::SYS_clone3),
        ];
        traffic(1, false, STEPS);
        each_refused(
            &calls,
            LIMIT,
            || (),
            |_, (), begin| {
                traffic(2, false, STEPS / 4);
                begin();
                traffic(3, true, STEPS);
                bufalloc::trim();
                traffic(4, true, STEPS / 4);
            },
        );
    });
}

/// The process has all mappings that it may, or a few less.
#[test]
fn t18_no_more_mappings() {
    const PAGES: usize = 1 << 18;
    alone(module_path!(), "t18_no_more_mappings", LIMIT, || {
        traffic(1, false, STEPS / 4);
        let page = page_bytes();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let start = unsafe { libc::mmap(ptr::null_mut(), PAGES * page, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // Pages of other rights than their neighbours are mappings of their own.
        // SAFETY: of the mapping, to which nobody refers.
        let set =
            |at: usize, rights| unsafe { libc::mprotect(start.byte_add(2 * at * page), page, rights) } == 0;
        let Some(most) = (0..PAGES / 2).find(|at| !set(*at, libc::PROT_READ)) else {
            eprintln!("too many mappings to make them all");
            return;
        };
        for left in 0..8 {
            traffic(10 + left, true, STEPS);
            assert!(set(most - 1 - left as usize, libc::PROT_NONE));
        }
        // SAFETY: likewise.
        assert_eq!(unsafe { libc::munmap(start, PAGES * page) }, 0);
        traffic(2, false, STEPS / 4);
    });
}

/// What threads had that ended goes back.
#[test]
fn t12_dead_threads() {
    alone(module_path!(), "t12_dead_threads", LIMIT, || {
        let before = resident_bytes();
        for _ in 0..1000 {
            std::thread::spawn(|| drop(vec![1_u8; 1 << 20])).join().unwrap();
        }
        assert!(wait_until(|| bufalloc::stats().dirty_bytes == 0), "{:?}", bufalloc::stats());
        assert!(resident_bytes() < before + (4 << 20), "{} of {before}", resident_bytes());
    });
}

#[test]
fn t25_signals_interrupt_nothing() {
    alone(module_path!(), "t25_signals_interrupt_nothing", LIMIT, || {
        signalled(200, || traffic(5, false, 100));
    });
}

/// The thread that gives memory back has all signals blocked, and the one that started it has not.
#[test]
fn t25_signals_are_not_for_the_thread() {
    alone(module_path!(), "t25_signals_are_not_for_the_thread", LIMIT, || {
        drop(vec![1_u8; 1 << 20]);
        let blocked = |name: &str| {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let mut texts = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")));
            let text = texts.find_map(|text| text.ok().filter(|text| text.contains(name)))?;
            let bits = text.lines().find_map(|line| line.strip_prefix("SigBlk:\t"));
            Some(u64::from_str_radix(bits.unwrap(), 16).unwrap())
        };
        let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
        let some = [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGPROF].map(bit);
        assert!(wait_until(|| blocked("alloc-keeper").is_some()));
        let bits = blocked("alloc-keeper").unwrap();
        assert!(some.iter().all(|bit| bits & bit != 0), "{bits:x}");
        let tid = format!(
            "Pid:\t{}\n",
            std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().display()
        );
        let bits = blocked(&tid).unwrap();
        assert!(some.iter().all(|bit| bits & bit == 0), "{bits:x}");
    });
}

#[test]
fn t25_forked_children_go_on() {
    alone(module_path!(), "t25_forked_children_go_on", LIMIT, || {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        traffic(10 + seed, false, 50);
                    }
                });
            }
            let kept = vec![7_u8; 1 << 20];
            // With this the thread starts.
            drop(kept.clone());
            let first_bad = (0..24).find_map(|seed| {
                let ended = forked(LIMIT / 3, || {
                    traffic(seed, false, 100);
                    drop(vec![1_u8; 8 << 20]);
                    // Without the thread, calls give it back.
                    let has_gone = seed > 0
                        || wait_until(|| {
                            drop(vec![1_u8; 64 << 10]);
                            bufalloc::stats().dirty_bytes < 1 << 20
                        });
                    u8::from(!has_gone || kept.iter().any(|byte| *byte != 7))
                });
                (ended != Ended::With(0)).then_some(ended)
            });
            is_over.store(true, Relaxed);
            assert_eq!(first_bad, None);
        });
    });
}
