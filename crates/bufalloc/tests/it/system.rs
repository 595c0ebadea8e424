//! What the system refuses, and what goes back to it.

use std::hint::black_box;
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
        drop(black_box(vec![1_u8; 16 << 20]));
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

/// As many mappings as a process may have, and no more until it ends.
struct AllMappings {
    start: *mut libc::c_void,
    made: usize,
}

impl AllMappings {
    const PAGES: usize = 1 << 18;

    /// Makes them, if they are not too many.
    fn new() -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        let bytes = Self::PAGES * page_bytes();
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let mut all = Self { start, made: 0 };
        while all.made < Self::PAGES / 2 {
            if !all.set(libc::PROT_READ) {
                return Some(all);
            }
            all.made += 1;
        }
        None
    }

    /// Makes a page a mapping of its own, or one with its neighbours: each counts for two.
    fn set(&self, rights: libc::c_int) -> bool {
        let (page, bytes) = (page_bytes(), 2 * self.made * page_bytes());
        // SAFETY: of the mapping, to which nobody refers.
        unsafe { libc::mprotect(self.start.byte_add(bytes), page, rights) == 0 }
    }

    fn free_two(&mut self) {
        self.made -= 1;
        assert!(self.set(libc::PROT_NONE));
    }
}

impl Drop for AllMappings {
    fn drop(&mut self) {
        // SAFETY: its own, which was made above.
        assert_eq!(unsafe { libc::munmap(self.start, Self::PAGES * page_bytes()) }, 0);
    }
}

/// The system moves a part of a block, and refuses to move the next.
#[test]
fn t18_no_more_mappings() {
    alone(module_path!(), "t18_no_more_mappings", LIMIT, || {
        for left in 0..16 {
            bufalloc::trim();
            // Of several mappings, as it moved when it grew: another block is right behind it.
            let (mut words, mut others) = (Vec::<u64>::with_capacity(32 << 10), Vec::new());
            let mut block = |end: *const u64| {
                let is_behind = |other: &Vec<u8>| other.as_ptr() == end.cast();
                while others.len() < 1000 && !others.iter().any(is_behind) {
                    others.push(Vec::with_capacity(32 << 10));
                }
            };
            while words.len() < 256 << 10 {
                block(words.as_ptr_range().start.wrapping_add(words.capacity()));
                words.reserve_exact(words.len().max(1));
                words.extend(words.len() as u64..words.capacity() as u64);
            }
            block(words.as_ptr_range().end);
            let Some(mut all) = AllMappings::new() else {
                eprintln!("too many mappings to make them all");
                return;
            };
            (0..left / 2).for_each(|_| all.free_two());
            if left % 2 == 1 {
                let flags = libc::MAP_SHARED | libc::MAP_ANON;
                // SAFETY: at an address of the system's choice. It goes with the process.
                unsafe { libc::mmap(ptr::null_mut(), page_bytes(), libc::PROT_READ, flags, -1, 0) };
            }
            let _refused = words.try_reserve_exact(words.len());
            traffic(left, true, STEPS / 8);
            drop(all);
            assert!(words.iter().enumerate().all(|(at, word)| at as u64 == *word), "{left}");
        }
    });
}

/// What threads had that ended goes back.
#[test]
fn t12_dead_threads() {
    alone(module_path!(), "t12_dead_threads", LIMIT, || {
        let before = resident_bytes();
        for _ in 0..1000 {
            std::thread::spawn(|| drop(black_box(vec![1_u8; 1 << 20]))).join().unwrap();
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
        drop(black_box(vec![1_u8; 1 << 20]));
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
            drop(black_box(kept.clone()));
            let first_bad = (0..24).find_map(|seed| {
                let ended = forked(LIMIT / 3, || {
                    traffic(seed, false, 100);
                    drop(black_box(vec![1_u8; 8 << 20]));
                    // Without the thread, calls give it back.
                    let has_gone = seed > 0
                        || wait_until(|| {
                            drop(black_box(vec![1_u8; 64 << 10]));
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
